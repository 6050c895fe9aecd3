import test from "ava";
import { LockLostError } from "../../runtime/base/errors";
import type { Lock } from "../../runtime/lock/lock";
import { MOST_AT_ONCE, type StoreListener } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";
import { replacing } from "../support/flat-store";
import { Fleet, FleetProcess } from "../support/fleet";
import { connectionRefused, replyLate } from "../support/tampered-store";

// After a reconnect the store may have lost its data.

const KEY = "LOCK_payOrder_1";

async function hold(process: FleetProcess, count: number): Promise<Lock[]> {
  const locks = Array.from({ length: count }, (_, n) => process.lock(`${KEY}_${n}`, { onLost: "warn" }));
  for (const lock of locks) await lock.acquire();
  return locks;
}

test("a reconnect verifies all leases immediately and reports the lost ones", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const locks = await hold(process, 3);
  const signals = locks.map(({ signal }) => signal);
  await fleet.endHold(`${KEY}_1`);
  await fleet.endHold(`${KEY}_2`);
  await fleet.acquireElsewhere(`${KEY}_2`, 60_000);
  fleet.store.reconnect();
  await fleet.clock.settle(); // No time passes here.
  t.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false, true, true],
  );
  t.regex(String(signals[1]?.reason), /its key disappeared early/);
  t.regex(String(signals[2]?.reason), /another caller holds it/);
  t.is(fleet.store.peeks, 1);
  t.deepEqual(
    locks.map((lock) => lock.remaining() > 0),
    [true, false, false],
  );
  await Promise.all(locks.map((lock) => lock.release()));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a waiter behind a lock that a reconnect finds lost enters immediately", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const holder = process.lock(KEY);
  t.true(await holder.acquire());
  const waiter = process.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(100);
  await fleet.endHold(KEY);
  fleet.store.reconnect();
  t.is(await waiter, fleet.clock.now());
  await t.throwsAsync(holder.release(), { instanceOf: LockLostError });
  await fleet.leftNothing(t, KEY, process);
});

test("many leases are verified in as few commands as possible", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const locks = await hold(process, MOST_AT_ONCE + 1);
  fleet.store.reconnect();
  await fleet.clock.settle();
  t.is(fleet.store.peeks, 2);
  t.true(locks.every((lock) => lock.remaining() > 0));
  await Promise.all(locks.map((lock) => lock.release()));
});

test("an unanswered peek changes nothing", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [lock] = await hold(process, 1);
  fleet.store.onPeek = connectionRefused;
  fleet.store.reconnect();
  await fleet.clock.settle();
  fleet.store.onPeek = () => Promise.resolve([new Error("LOADING")]);
  fleet.store.reconnect();
  await fleet.clock.settle();
  t.true((lock?.remaining() ?? 0) > 0);
  await lock?.release();
  t.deepEqual(fleet.warnings, []);
});

test("an unanswered peek is repeated until the store answers", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [lost, kept] = await hold(process, 2);
  const signal = lost?.signal;
  await fleet.endHold(`${KEY}_0`);
  fleet.store.onPeek = connectionRefused;
  fleet.store.reconnect();
  await fleet.clock.advance(1_000);
  fleet.store.onPeek = () => Promise.resolve([new Error("LOADING"), kept?.storeValue]);
  await fleet.clock.advance(200);
  t.false(signal?.aborted);
  fleet.store.onPeek = (send) => send();
  const { peeks } = fleet.store;
  await fleet.clock.advance(200);
  t.true(signal?.aborted);
  await fleet.clock.advance(1_000);
  t.is(fleet.store.peeks, peeks + 1, "no more after the answer");
  await Promise.all([lost?.release(), kept?.release()]);
  t.is(fleet.clock.pendingTimers, 0);
});

test("a peek over the old connection does not count for what the store has lost since", async (t) => {
  const fleet = new Fleet();
  const [lock] = await hold(fleet.process(), 1);
  const signal = lock?.signal;
  const before = deferred();
  fleet.store.onPeek = replyLate(before.promise);
  fleet.store.reconnect();
  await fleet.clock.settle();
  await fleet.endHold(`${KEY}_0`);
  fleet.store.onPeek = connectionRefused;
  fleet.store.reconnect();
  before.resolve();
  await fleet.clock.settle();
  fleet.store.onPeek = (send) => send();
  await fleet.clock.advance(200);
  t.true(signal?.aborted);
  await lock?.release();
});

test("a peek is not repeated for a lock that was released meanwhile", async (t) => {
  const fleet = new Fleet();
  const [lock] = await hold(fleet.process(), 1);
  fleet.store.onPeek = connectionRefused;
  fleet.store.reconnect();
  await fleet.clock.settle();
  await lock?.release();
  t.is(fleet.clock.pendingTimers, 0);
});

test("a peek that is answered after the release reports nothing", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [lock] = await hold(process, 1);
  fleet.store.onPeek = async (send) => {
    await lock?.release();
    return await send();
  };
  fleet.store.reconnect();
  await fleet.clock.settle();
  t.deepEqual(fleet.warnings, []);
});

test("the store learns the shortest time left of all holders and waiters", async (t) => {
  const { clock, memory } = new Fleet();
  let shortest = (): number | undefined => undefined;
  const listen = (listener: StoreListener): (() => void) => {
    shortest = () => listener.shortestTimeLeftMs?.();
    return memory.listen(listener);
  };
  const process = new FleetProcess({ clock, store: replacing(memory, { listen }) });
  t.is(shortest(), Infinity);
  const holder = process.lock(KEY, { lockTime: "20s" });
  t.true(await holder.acquire());
  t.true(Number(shortest()) > 19_000 && Number(shortest()) <= 20_000);
  const waiting = process.call(KEY, { retryTimes: 1, waitTime: "2s" }, () => t.fail());
  const gaveUp = t.throwsAsync(waiting, { code: "LOCK_WAIT_TIME_OUT" });
  await clock.advance(500);
  t.is(shortest(), 1_500);
  await clock.advance(1_500);
  await gaveUp;
  t.true(Number(shortest()) > 10_000);
  await holder.release();
  t.is(shortest(), Infinity);
});
