import { getEventListeners } from "node:events";
import test from "ava";
import { obtain, withLock } from "../../runtime/with-lock";
import { configure } from "../../runtime/config/configure";
import { LockOptionError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { replyLate, replyLost } from "../support/tampered-store";

// Waits that their caller aborts.

const fleet = new Fleet();
const warnings: string[] = [];
const PATIENT = { retryTimes: 100, waitTime: "60s" } as const;

test.before(() => {
  process.on("warning", ({ message }) => warnings.push(message));
  configure(
    { store: fleet.store, clock: fleet.clock, logger: { warn: (line) => warnings.push(line) } },
    "woven",
  );
});

test.afterEach(async (t) => {
  await fleet.clock.settle();
  t.is(fleet.clock.pendingTimers, 0);
  t.deepEqual(warnings, []);
});

test.serial("a wait ends immediately with the signal's reason and leaves nothing behind", async (t) => {
  await fleet.acquireElsewhere("abort-1", 60_000);
  const controller = new AbortController();
  const waiting = withLock("abort-1", { ...PATIENT, signal: controller.signal }, () => t.fail());
  await fleet.clock.advance(2_000);
  const reason = new Error("the client went away");
  controller.abort(reason);
  t.is(await t.throwsAsync(waiting), reason);
  await fleet.releaseElsewhere("abort-1");
  t.true(await fleet.isForgotten("abort-1"));
});

test.serial("a wait that is aborted without a reason throws an AbortError", async (t) => {
  await fleet.acquireElsewhere("abort-2", 60_000);
  const controller = new AbortController();
  const waiting = obtain("abort-2", { ...PATIENT, onFailure: "skip", signal: controller.signal });
  await fleet.clock.settle();
  controller.abort();
  t.like(await t.throwsAsync(waiting, { any: true }), { name: "AbortError" });
  await fleet.releaseElsewhere("abort-2");
  t.true(await fleet.isForgotten("abort-2"));
});

test.serial(
  "a wait whose signal knows no reasons, as in old libraries, ends with an AbortError",
  async (t) => {
    await fleet.acquireElsewhere("abort-2b", 60_000);
    const controller = new AbortController();
    Object.defineProperty(controller.signal, "reason", { value: undefined });
    const waiting = withLock("abort-2b", { ...PATIENT, signal: controller.signal }, () => t.fail());
    await fleet.clock.settle();
    controller.abort();
    t.like(await t.throwsAsync(waiting, { any: true }), { name: "AbortError" });
    await fleet.releaseElsewhere("abort-2b");
    t.true(await fleet.isForgotten("abort-2b"));
  },
);

test.serial("a call with an already aborted signal throws and sends no command", async (t) => {
  const before = fleet.store.commands;
  const signal = AbortSignal.abort(new Error("too late"));
  await t.throwsAsync(
    withLock("abort-3", { signal }, () => t.fail()),
    { message: "too late" },
  );
  t.is(fleet.store.commands, before);
  t.true(await fleet.isForgotten("abort-3"));
});

test.serial("a reentrant call with an already aborted signal does not run its body", async (t) => {
  const reentrant = { reentrant: true } as const;
  const reason = new Error("too late");
  await withLock("abort-3b", reentrant, async (outer) => {
    const inner = withLock("abort-3b", { ...reentrant, signal: AbortSignal.abort(reason) }, () => t.fail());
    t.is(await t.throwsAsync(inner), reason);
    outer.assertHeld();
  });
  t.true(await fleet.isForgotten("abort-3b"));
});

test.serial("a grant that arrives after the abort is released", async (t) => {
  const replies = deferred();
  fleet.store.onAcquire = replyLate(replies.promise);
  const controller = new AbortController();
  const waiting = withLock("abort-4", { ...PATIENT, signal: controller.signal }, () => t.fail());
  await fleet.clock.settle();
  t.false(await fleet.isFree("abort-4"));
  controller.abort(new Error("enough"));
  await t.throwsAsync(waiting, { message: "enough" });
  replies.resolve();
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.settle();
  t.true(await fleet.isForgotten("abort-4"));
});

test.serial("a grant whose reply is lost is released after the abort", async (t) => {
  fleet.store.onAcquire = replyLost;
  const controller = new AbortController();
  const waiting = withLock("abort-5", { ...PATIENT, signal: controller.signal }, () => t.fail());
  await fleet.clock.settle();
  controller.abort(new Error("enough"));
  fleet.store.onAcquire = (send) => send();
  await t.throwsAsync(waiting, { message: "enough" });
  await fleet.clock.advance(1_000);
  t.true(await fleet.isForgotten("abort-5"));
});

test.serial("the next waiter gets the lock after the waiter before it aborts", async (t) => {
  await fleet.acquireElsewhere("abort-6", 60_000);
  const controller = new AbortController();
  const first = withLock("abort-6", { ...PATIENT, signal: controller.signal }, () => t.fail());
  const second = withLock("abort-6", PATIENT, () => "second");
  await fleet.clock.settle();
  controller.abort(new Error("enough"));
  await t.throwsAsync(first, { message: "enough" });
  await fleet.releaseElsewhere("abort-6");
  await fleet.clock.advance(1_000);
  t.is(await second, "second");
});

test.serial("an abort while the body runs does not affect the lock", async (t) => {
  const controller = new AbortController();
  const result = await withLock("abort-7", { signal: controller.signal }, async (lock) => {
    controller.abort();
    await fleet.clock.settle();
    lock.assertHeld();
    t.false(lock.signal.aborted);
    return "done";
  });
  t.is(result, "done");
  t.true(await fleet.isForgotten("abort-7"));
});

test.serial(
  "a thousand waits that one signal aborts leave no timer, listener, ticket, or warning",
  async (t) => {
    const keys = ["abort-8", "abort-8b", "abort-8c"];
    for (const key of keys) await fleet.acquireElsewhere(key, 60_000);
    const controller = new AbortController();
    const options = { ...PATIENT, signal: controller.signal };
    const waiting = Array.from({ length: 1_000 }, (_, n) =>
      withLock(keys[n % keys.length] ?? "", options, () => t.fail()),
    );
    await fleet.clock.advance(5_000);
    controller.abort(new Error("enough"));
    const ends = await Promise.allSettled(waiting);
    t.true(ends.every((end) => end.status === "rejected" && end.reason === controller.signal.reason));
    t.is(getEventListeners(controller.signal, "abort").length, 0);
    for (const key of keys) {
      await fleet.releaseElsewhere(key);
      t.true(await fleet.isForgotten(key));
    }
  },
);

for (const [what, signal] of [
  ["null", null],
  ["a string", "abort"],
  ["an object", {}],
  ["a controller", new AbortController()],
] as const) {
  test.serial(`withLock() rejects a signal that is not an AbortSignal: ${what}`, async (t) => {
    await t.throwsAsync(
      withLock("abort-9", { signal: signal as unknown as AbortSignal }, () => t.fail()),
      { instanceOf: LockOptionError, message: /^Expected `signal` to be an AbortSignal, got / },
    );
  });
}
