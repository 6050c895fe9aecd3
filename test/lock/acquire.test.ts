import test from "ava";
import { LockLostError, LockMisconfiguredError } from "../../runtime/base/errors";
import { Fleet } from "../support/fleet";
import { idle } from "../support/jobs";
import { lostOnTheWay } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a call acquires a free lock with one command and releases it at the end", async (t) => {
  const fleet = new Fleet();
  t.is(await fleet.process().call(KEY, {}, () => "result"), "result");
  t.is(fleet.store.acquireRequests.length, 1);
  t.is(fleet.store.releases, 1);
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("each acquisition has a new requestId of 32 hex characters", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  for (let n = 0; n < 20; n += 1) await process.call(KEY, {}, idle);
  const ids = fleet.store.acquireRequests.map(({ requestId }) => requestId);
  t.true(ids.every((id) => /^[0-9a-f]{32}$/.test(id)));
  t.is(new Set(ids).size, 20);
});

test("an acquire asks for the given lockTime, or for 30 seconds by default", async (t) => {
  const fleet = new Fleet();
  await fleet.process().call(KEY, {}, idle);
  await fleet.process().call(KEY, { lockTime: "20s" }, idle);
  t.deepEqual(
    fleet.store.acquireRequests.map(({ lockTimeMs }) => lockTimeMs),
    [30_000, 20_000],
  );
});

test("a permanent error from the store ends the wait immediately, and names the lock", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = () => Promise.reject(new LockMisconfiguredError("NOAUTH"));
  const process = fleet.process();
  await t.throwsAsync(process.call(KEY, {}, idle), {
    instanceOf: LockMisconfiguredError,
    message: `${KEY}: NOAUTH`,
  });
  t.is(fleet.store.acquireRequests.length, 1);
  t.true(process.isIdle);
  t.is(fleet.clock.pendingTimers, 0);
});

test("a released lock cannot be acquired again", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY);
  t.true(await lock.acquire());
  await lock.release();
  await t.throwsAsync(lock.acquire(), {
    instanceOf: LockLostError,
    message: /is not held: it was released$/,
  });
  await t.throwsAsync(lock.retryCheck(), { instanceOf: LockLostError });
  await lock.release();
  t.true(await fleet.isForgotten(KEY));
});

test("a release during the wait ends the wait and leaves the queue", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const lock = fleet.process().lock(KEY);
  t.false(await lock.acquire());
  const waiting = t.throwsAsync(lock.retryCheck(), { instanceOf: LockLostError });
  await lock.release();
  await waiting;
  await fleet.releaseElsewhere(KEY);
  await fleet.clock.settle();
  t.true(await fleet.isForgotten(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("two acquire() calls on one lock settle with the same result", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const lock = process.lock(KEY);
  t.deepEqual(await Promise.all([lock.acquire(), lock.acquire()]), [true, true]);
  t.is(fleet.store.acquireRequests.length, 1);
  const behind = process.lock(KEY);
  t.deepEqual(await Promise.all([behind.acquire(), behind.acquire()]), [false, false]);
  await Promise.all([lock.release(), behind.release()]);
  await fleet.leftNothing(t, KEY, process);
});

test("an abort rejects all pending acquire() and retryCheck() calls of a lock, even repeated ones", async (t) => {
  const fleet = new Fleet();
  const controller = new AbortController();
  fleet.store.onAcquire = lostOnTheWay;
  const lock = fleet.process().lock(KEY);
  const calls = [
    lock.acquire(controller.signal),
    lock.acquire(),
    lock.retryCheck(),
    lock.retryCheck(),
    lock.acquire(),
  ];
  await fleet.clock.settle();
  const reason = new Error("the client went away");
  controller.abort(reason);
  const ends = await Promise.allSettled(calls); // No time passes here.
  t.true(ends.every((end) => end.status === "rejected" && end.reason === reason));
});
