import test from "ava";
import { LockOptionError, LockUnreachableError } from "../../runtime/base/errors";
import { batching } from "../support/batching-store";
import { Fleet } from "../support/fleet";
import { idle, job } from "../support/jobs";
import { replyLost, type AnyFate } from "../support/tampered-store";
import { replacing } from "../support/flat-store";

// A faulty third-party store in JavaScript. One of its methods lacks a `return`, or returns null.

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

/** Executes the command and replies with this value. */
function replies(nothing: undefined | null): AnyFate {
  return async (send) => {
    await send();
    return nothing as never;
  };
}

for (const nothing of [undefined, null]) {
  for (const command of ["onAcquire", "onEnqueue"] as const) {
    test(`a store that replies ${nothing} to ${command} is reported as unreachable`, async (t) => {
      const fleet = new Fleet();
      const process = fleet.process();
      if (command === "onEnqueue") await fleet.acquireElsewhere(KEY, 60 * SECOND);
      fleet.store[command] = replies(nothing);
      const call = process.call(KEY, { retryTimes: 1, waitTime: "1s" }, () => t.fail());
      const outcome = t.throwsAsync(call, { instanceOf: LockUnreachableError, message: /sent no reply/ });
      await fleet.clock.advance(2 * SECOND);
      await outcome;
      if (command === "onEnqueue") await fleet.releaseElsewhere(KEY);
      fleet.store[command] = (send) => send();
      await fleet.leftNothing(t, KEY, process);
    });
  }

  test(`a release is sent again if the store replies ${nothing}`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    fleet.store.onRelease = replies(nothing);
    t.is(await process.call(KEY, {}, idle), "done");
    t.regex(fleet.warnings.join("\n"), /the store sent no reply/);
    fleet.store.onRelease = (send) => send();
    await fleet.clock.advance(SECOND);
    await fleet.leftNothing(t, KEY, process);
  });

  test(`a renewal is sent again if the store replies ${nothing} or anything but a list of replies`, async (t) => {
    for (const reply of [nothing, [nothing], {}, true, [true], ["OK"], { renewed: true }]) {
      const fleet = new Fleet();
      const process = fleet.process();
      const { body, running, end } = job();
      const call = t.throwsAsync(process.call(KEY, { lockTime: "30s" }, body), { code: "LOCK_LOST" });
      await running;
      fleet.store.onRenew = async () => reply as never;
      await fleet.clock.advance(15 * SECOND);
      t.true(fleet.store.renewals > 2);
      await fleet.clock.advance(20 * SECOND);
      end();
      await call;
    }
  });

  test(`a caller that handed off does not hang if the store replies ${nothing} to a peek`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    fleet.store.onPeek = async () => nothing as never;
    const { body, running, end } = job();
    const [first, second] = [process.call(KEY, {}, body), process.call(KEY, {}, idle)];
    await running;
    end();
    await fleet.clock.advance(SECOND);
    t.deepEqual(await Promise.all([first, second]), ["done", "done"]);
  });

  test(`a store that replies ${nothing} for one request of a batch fails only that request`, async (t) => {
    const fleet = new Fleet();
    const store = batching(fleet.store);
    const faulty = replacing(store, {
      async acquireMany(...args) {
        const all = (await store.acquireMany?.(...args)) ?? [];
        return [all[0], nothing] as typeof all;
      },
    });
    const process = fleet.process({ store: faulty });
    const [one, other] = ["LOCK_1", "LOCK_2"].map((key) => process.call(key, { retryTimes: 0 }, idle));
    await fleet.clock.settle();
    t.is(await one, "done");
    await t.throwsAsync(other ?? Promise.resolve(), { instanceOf: LockUnreachableError });
  });
}

test("a store that sends nonsense when it must confirm a found hold is reported as unreachable", async (t) => {
  for (const reply of [{}, true, [true], ["OK"], [], undefined]) {
    const fleet = new Fleet();
    const process = fleet.process();
    fleet.store.onAcquire = replyLost;
    fleet.store.onEnqueue = (send) => send();
    fleet.store.onRenew = async () => reply as never;
    const call = t.throwsAsync(
      process.call(KEY, { retryTimes: 1, waitTime: "5s" }, () => t.fail()),
      {
        instanceOf: LockUnreachableError,
        message: /the store sent (?:no|fewer|.*, expected )/,
      },
    );
    await fleet.clock.advance(10 * SECOND);
    await call;
  }
});

test("a store whose listen() returns no function is rejected immediately", (t) => {
  const fleet = new Fleet();
  const deaf = replacing(fleet.store, { listen: () => undefined as never });
  t.throws(() => fleet.process({ store: deaf }), {
    instanceOf: LockOptionError,
    message: /listen\(\) to return a function that unsubscribes, got undefined/,
  });
});

function refuse(): never {
  throw new Error("announce() failed");
}

test("a store whose announce() throws or returns no promise does not affect locks", async (t) => {
  for (const announce of [refuse, (): undefined => undefined]) {
    const fleet = new Fleet();
    const store = replacing(fleet.store, { announce: announce as () => never });
    const process = fleet.process({ store, announce: true });
    t.is(await process.call(KEY, {}, idle), "done");
    await fleet.clock.advance(30 * SECOND);
    process.locker.all.stopAnnouncing();
    await fleet.leftNothing(t, KEY, process);
  }
});
