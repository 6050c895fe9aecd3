import test from "ava";
import { Fleet } from "../support/fleet";
import { idle, job } from "../support/jobs";
import { inTheMiddleOf } from "../support/in-the-middle-of";

// Application code that runs in the middle of a runtime operation, in an event listener. All tests in the process share the
// channels, so each test has its own key.

test("a waiter that is aborted during its hand-off gets the lock and releases it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const key = "LOCK_middle_1";
  const { body, running, end } = job();
  const holder = process.call(key, {}, body);
  await running;
  const stop = new AbortController();
  const next = process.call(key, {}, idle, { signal: stop.signal });
  await fleet.clock.settle();
  inTheMiddleOf(
    t,
    "lockweave:release",
    key,
    () => stop.abort(),
    ({ outcome }) => outcome === "handed off",
  );
  end();
  t.deepEqual(await Promise.all([holder, next]), ["done", "done"]);
  t.true(stop.signal.aborted);
  await fleet.leftNothing(t, key, process);
});

test("a caller that is aborted while it is granted a free lock gets the lock and releases it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const key = "LOCK_middle_2";
  const stop = new AbortController();
  inTheMiddleOf(t, "lockweave:grant", key, () => stop.abort());
  t.is(await process.call(key, {}, idle, { signal: stop.signal }), "done");
  t.true(stop.signal.aborted);
  await fleet.leftNothing(t, key, process);
});

test("a caller keeps a lock that was released in its acquire event, even if its signal aborts", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const key = "LOCK_middle_3";
  const held = process.lock(key);
  t.true(await held.acquire());
  let released: Promise<void> | undefined;
  inTheMiddleOf(t, "lockweave:acquire", key, () => (released = held.release()));
  const stop = new AbortController();
  const body = async (): Promise<boolean> => {
    stop.abort();
    await fleet.clock.settle();
    return await fleet.isFree(key);
  };
  t.false(await process.call(key, {}, body, { signal: stop.signal }));
  await released;
  await fleet.leftNothing(t, key, process);
});

test("a first retryCheck() does not wait for a lock that is released in its acquire event", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const key = "LOCK_middle_4";
  const held = process.lock(key);
  t.true(await held.acquire());
  inTheMiddleOf(t, "lockweave:acquire", key, () => void held.release());
  const lock = process.lock(key, { retryTimes: 0 });
  t.true(await lock.retryCheck());
  t.true(lock.remaining() > 0);
  await lock.release();
  await fleet.leftNothing(t, key, process);
});

test("a waiter that is released during its hand-off does not hand the lock to itself", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const key = "LOCK_middle_5";
  const [held, next] = [process.lock(key), process.lock(key)];
  t.true(await held.acquire());
  t.false(await next.acquire());
  const waiting = next.retryCheck();
  let released: Promise<void> | undefined;
  inTheMiddleOf(t, "lockweave:grant", key, () => (released = next.release()));
  await Promise.all([held.release(), waiting]);
  await released;
  t.is(next.remaining(), 0);
  await fleet.leftNothing(t, key, process);
});

test("a lock that is released in its own grant event leaves the key free", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const key = "LOCK_middle_6";
  const lock = process.lock(key);
  let released: Promise<void> | undefined;
  inTheMiddleOf(t, "lockweave:grant", key, () => (released = lock.release()));
  await lock.acquire();
  await released;
  t.is(lock.remaining(), 0);
  await fleet.leftNothing(t, key, process);
});
