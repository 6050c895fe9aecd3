import test from "ava";
import { LockUnreachableError, LockWaitTimeoutError } from "../../runtime/base/errors";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { lostOnTheWay, type AnyFate } from "../support/tampered-store";

// Calls with no wait budget, which try the lock once.

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
const TRY = { retryTimes: 0 } as const;
const SKIP = { ...TRY, onFailure: "skip" } as const;

test("the first of several simultaneous tries gets the lock, and the others skip their bodies", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = async (send) => {
    await passes(fleet.clock, 20);
    return await send();
  };
  const { body, end } = job();
  const first = process.call(KEY, SKIP, body);
  const behind = Array.from({ length: 5 }, () => process.call(KEY, SKIP, () => t.fail()));
  await fleet.clock.settle();
  t.deepEqual(await Promise.all(behind), Array.from({ length: 5 })); // No time passes here.
  await fleet.clock.advance(20);
  end();
  t.is(await first, "done");
  t.is(fleet.store.acquireRequests.length, 1);
  await fleet.leftNothing(t, KEY, process);
});

test("a try behind another local call reports that call, not an unreachable store", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = async (send) => {
    await passes(fleet.clock, 20);
    return await send();
  };
  const first = process.call(KEY, TRY, idle);
  await t.throwsAsync(
    process.call(KEY, TRY, () => t.fail()),
    {
      instanceOf: LockWaitTimeoutError,
      message:
        "LOCK_WAIT_TIME_OUT: LOCK_payOrder_1 has an earlier waiter in this process and did not become free within 0 ms (retryTimes=0, waitTime=5000ms). Fix: allow a longer wait (wait, or retryTimes and waitTime), shorten the bodies, or set onFailure",
    },
  );
  await fleet.clock.advance(20);
  t.is(await first, "done");
});

test("a try sends nothing while its own process holds the lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const holder = job();
  const held = process.call(KEY, {}, holder.body);
  await holder.running;
  t.is(await process.call(KEY, SKIP, () => t.fail()), undefined);
  t.is(fleet.store.commands, 1);
  holder.end();
  await held;
});

test("a try waits the whole commandTimeout for its reply, so it succeeds with 250 ms of latency", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAny = async (send) => {
    await passes(fleet.clock, 250);
    return await send();
  };
  const process = fleet.process();
  for (const options of [TRY, { waitTime: "0ms" }, SKIP] as const) {
    const call = process.call(KEY, options, idle);
    await fleet.clock.advance(500);
    t.is(await call, "done");
  }
  t.is(fleet.store.acquireRequests.length, 3);
  await fleet.leftNothing(t, KEY, process);
});

test("a try without a reply within commandTimeout reports an unreachable store", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = lostOnTheWay;
  let isOver = false;
  const outcome = t
    .throwsAsync(fleet.process({ commandTimeout: "3s" }).call(KEY, SKIP, idle), {
      instanceOf: LockUnreachableError,
      message: /: no reply from the store within 3000 ms$/,
    })
    .finally(() => (isOver = true));
  await fleet.clock.advance(3 * SECOND - 1);
  t.false(isOver);
  await fleet.clock.advance(1);
  await outcome;
});

// The store answers after the current tick, like a real one. So the call behind tries again before the reply.

for (const onFailure of ["throw", "skip"] as const) {
  test(`a try behind a call that aborts in the same tick asks the store itself (${onFailure})`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    fleet.store.onAcquire = late(fleet);
    for (const isHeld of [true, false]) {
      const leaving = new AbortController();
      if (isHeld) await fleet.acquireElsewhere(KEY, 60 * SECOND);
      const first = t.throwsAsync(process.lock(KEY).acquire(leaving.signal), { message: "gone home" });
      const second = process.call(KEY, { ...TRY, onFailure }, () => "had it");
      const outcome =
        isHeld && onFailure === "throw"
          ? t.throwsAsync(second, { instanceOf: LockWaitTimeoutError, message: /is held by another/ })
          : second;
      leaving.abort(new Error("gone home"));
      await fleet.clock.advance(100);
      if (!isHeld) t.is(await outcome, "had it");
      else if (onFailure === "skip") t.is(await outcome, undefined);
      await Promise.all([first, outcome]);
      if (isHeld) await fleet.releaseElsewhere(KEY);
    }
    await fleet.leftNothing(t, KEY, process);
  });
}

for (const lockTime of ["30s", "60s"] as const) {
  test(`a try for several keys gets a key that was granted to an aborted call (lockTime=${lockTime})`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    fleet.store.onAny = late(fleet);
    const leaving = new AbortController();
    const first = t.throwsAsync(process.lock("b").acquire(leaving.signal), { message: "gone home" });
    const locks = process.locks(["a", "b"], { ...SKIP, lockTime });
    const second = (async () => {
      while (!(await locks.acquire())) if (!(await locks.retryCheck())) return false;
      return true;
    })();
    await fleet.clock.settle();
    leaving.abort(new Error("gone home"));
    await fleet.clock.advance(200);
    t.true(await second);
    await first;
    const released = locks.release();
    await fleet.clock.advance(200);
    await released;
    t.true(process.isIdle);
  });
}

test("a try waits for the renewal of a lock that was granted to aborted calls before it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAny = late(fleet);
  const [leavesFirst, leavesNext] = [new AbortController(), new AbortController()];
  const gone = [leavesFirst, leavesNext].map((signal, index) =>
    t.throwsAsync(process.call(KEY, { lockTime: `${(index + 1) * 30}s` }, () => t.fail(), signal)),
  );
  leavesFirst.abort(new Error("gone home"));
  await fleet.clock.advance(30); // The first was granted the key, and it is being renewed for the second.
  const tried = process.call(KEY, { ...SKIP, lockTime: "90s" }, () => "had it");
  leavesNext.abort(new Error("gone home"));
  await fleet.clock.advance(200);
  t.is(await tried, "had it");
  await Promise.all(gone);
  await fleet.leftNothing(t, KEY, process);
});

/** Delays each command by 20 ms on its way to the store. */
function late(fleet: Fleet): AnyFate {
  return async (send) => {
    await passes(fleet.clock, 20);
    return await send();
  };
}
