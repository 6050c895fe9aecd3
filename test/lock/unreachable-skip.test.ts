import test from "ava";
import {
  LockMisconfiguredError,
  LockUnreachableError,
  LockWaitTimeoutError,
} from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle } from "../support/jobs";
import { connectionRefused, lostOnTheWay, replyLate, replyLost } from "../support/tampered-store";

// Callers that skip their body if the store does not reply.

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
const SKIP = { wait: "2s", onUnreachable: "skip" } as const;

for (const [title, fate] of Object.entries({ connectionRefused, lostOnTheWay, replyLost })) {
  test(`onUnreachable=skip skips the body at the end of the wait budget (${title})`, async (t) => {
    const fleet = new Fleet();
    fleet.store.onAcquire = fate;
    let isOver = false;
    const call = fleet.process().call(KEY, SKIP, () => t.fail("no body runs unlocked"));
    void call.then(() => (isOver = true));
    await fleet.clock.advance(1_999);
    t.false(isOver);
    await fleet.clock.advance(1);
    t.true(isOver);
    t.is(await call, undefined);
    fleet.store.onAcquire = (send) => send();
    await fleet.clock.advance(5 * SECOND);
    t.true(await fleet.isForgotten(KEY), "a hold whose reply was lost is released");
  });
}

test("onUnreachable=skip does not skip if the store replies within the wait budget", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  const call = fleet.process().call(KEY, SKIP, idle);
  await fleet.clock.advance(SECOND);
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(500);
  t.is(await call, "done");
});

test("a lock that is granted after the skip is released", async (t) => {
  const fleet = new Fleet();
  const replies = deferred();
  fleet.store.onAcquire = replyLate(replies.promise);
  const process = fleet.process();
  const call = process.call(KEY, SKIP, () => t.fail("no body runs after the skip"));
  await fleet.clock.advance(2 * SECOND);
  t.is(await call, undefined);
  replies.resolve();
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.settle();
  await fleet.leftNothing(t, KEY, process);
});

test("onUnreachable=skip does not apply to a busy lock, and onFailure=skip does not apply to a silent store", async (t) => {
  class OrderBusyError extends Error {}
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const process = fleet.process();
  const busy = t.throwsAsync(process.call(KEY, SKIP, idle), { instanceOf: LockWaitTimeoutError });
  const failed = t.throwsAsync(process.call(KEY, SKIP, idle, { Failure: OrderBusyError }), {
    instanceOf: OrderBusyError,
  });
  await fleet.clock.advance(2 * SECOND);
  await Promise.all([busy, failed]);

  fleet.store.onAcquire = connectionRefused;
  const silent = t.throwsAsync(process.call("LOCK_other", { wait: "2s", onFailure: "skip" }, idle), {
    instanceOf: LockUnreachableError,
  });
  const both = process.call("LOCK_both", { ...SKIP, onFailure: "skip" }, idle);
  await fleet.clock.advance(2 * SECOND);
  await silent;
  t.is(await both, undefined);
});

test("LOCK_MISCONFIGURED is thrown despite onUnreachable=skip", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = () => Promise.reject(new LockMisconfiguredError("no rights"));
  await t.throwsAsync(fleet.process().call(KEY, SKIP, idle), { instanceOf: LockMisconfiguredError });
});

test("an aborted signal rejects despite onUnreachable=skip", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  const controller = new AbortController();
  const call = fleet.process().call(KEY, SKIP, idle, { signal: controller.signal });
  await fleet.clock.advance(SECOND);
  const reason = new Error("the client went away");
  controller.abort(reason);
  t.is(await t.throwsAsync(call), reason);
});

test("an aborted signal rejects a reentrant call despite onUnreachable=skip, whatever its reason is", async (t) => {
  const process = new Fleet().process();
  const reason = new LockUnreachableError("another lock of the request was unreachable");
  const options = { ...SKIP, reentrant: true } as const;
  const outer = process.call(KEY, options, () =>
    process.call(KEY, options, () => t.fail("the signal ends the call"), {
      signal: AbortSignal.abort(reason),
    }),
  );
  t.is(await t.throwsAsync(outer), reason);
});

test("waiters with and without onUnreachable=skip share a queue, and each gets its own outcome", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  const process = fleet.process();
  const skipped = process.call(KEY, SKIP, idle);
  const thrown = t.throwsAsync(process.call(KEY, { wait: "2s" }, idle), { instanceOf: LockUnreachableError });
  const alsoSkipped = process.call(KEY, SKIP, idle);
  await fleet.clock.advance(3 * SECOND);
  t.is(await skipped, undefined);
  await thrown;
  t.is(await alsoSkipped, undefined);
  t.is(fleet.clock.pendingTimers, 0);
});

/** Acquires several keys as woven code does. Returns whether it holds them. */
async function enter(fleet: Fleet, keys: readonly string[], options: object): Promise<boolean> {
  const locks = fleet.process().locks(keys, options);
  while (!(await locks.acquire())) if (!(await locks.retryCheck())) return false;
  return true;
}

test("several keys are skipped together, and none stays held", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  const entering = enter(fleet, ["a", "b"], SKIP);
  await fleet.clock.advance(3 * SECOND);
  t.false(await entering);
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(SECOND);
  t.true((await fleet.isForgotten("a")) && (await fleet.isForgotten("b")));
});

test("several keys are skipped if the last renewal before the body gets no reply", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere("b", 500);
  fleet.store.onRenew = lostOnTheWay;
  const entering = enter(fleet, ["a", "b"], SKIP);
  await fleet.clock.advance(3_500);
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(2 * SECOND);
  t.false(await entering);
  await fleet.clock.advance(SECOND);
  t.true((await fleet.isFree("a")) && (await fleet.isFree("b")));
});

test("a reentrant call skips its body if the store cannot apply its options, and the outer lock stays held", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const reentrant = { reentrant: true } as const;
  const outer = process.call(KEY, { ...reentrant, lockTime: "30s" }, async (lock) => {
    fleet.store.onRenew = connectionRefused;
    const longer = { ...reentrant, lockTime: "60s" } as const;
    const skipped = process.call(KEY, { ...longer, onUnreachable: "skip" }, () => t.fail());
    const thrown = t.throwsAsync(
      process.call(KEY, longer, () => t.fail()),
      {
        instanceOf: LockUnreachableError,
      },
    );
    await fleet.clock.advance(SECOND);
    t.is(await skipped, undefined);
    await thrown;
    fleet.store.onRenew = (send) => send();
    lock.assertHeld();
    return "done";
  });
  await fleet.clock.advance(2 * SECOND);
  t.is(await outer, "done");
  await fleet.leftNothing(t, KEY, process);
});
