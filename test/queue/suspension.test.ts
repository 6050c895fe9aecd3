import test from "ava";
import { LockLostError } from "../../runtime/base/errors";
import type { LockOptions } from "../../runtime/lock/settings";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { inTheMiddleOf } from "../support/in-the-middle-of";
import { idle, passes } from "../support/jobs";
import { Machine } from "../support/machine";
import { connectionRefused } from "../support/tampered-store";

// A machine is suspended while it holds locks. Its monotonic clock stops, and the clock of the store does not.

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

/** Creates a process on a machine that can be suspended. The process has run for a second. */
async function suspendable(): Promise<{ fleet: Fleet; machine: Machine; process: FleetProcess }> {
  const fleet = new Fleet();
  const machine = new Machine(fleet.clock);
  const process = fleet.process({ clock: machine });
  await fleet.clock.advance(SECOND);
  return { fleet, machine, process };
}

test("a lock that was granted before a suspension counts only after the store confirms it again", async (t) => {
  const { fleet, machine, process } = await suspendable();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    fleet.clock.freeze(5);
    machine.suspend(60 * SECOND); // Between the store's answer and our reading it.
    fleet.store.onAcquire = (go) => go();
    return reply;
  };
  const [inside, stored] =
    (await process.call(KEY, { lockTime: "10s" }, async (lock) => [
      lock.storeValue,
      await fleet.valueOf(KEY),
    ])) ?? [];
  t.is(typeof inside, "string");
  t.is(inside, stored);
  await fleet.leftNothing(t, KEY, process);
});

test("a caller notices a suspension before it enters even if the boot time is unreadable at first", async (t) => {
  const { fleet, machine, process } = await suspendable();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    fleet.clock.freeze(5);
    machine.suspend(60 * SECOND);
    machine.unreadable = 1;
    fleet.store.onAcquire = (go) => go();
    return reply;
  };
  const [inside, stored] =
    (await process.call(KEY, { lockTime: "10s" }, async (lock) => [
      lock.storeValue,
      await fleet.valueOf(KEY),
    ])) ?? [];
  t.is(typeof inside, "string");
  t.is(inside, stored);
  await fleet.leftNothing(t, KEY, process);
});

test("a suspension that a grant listener notices also applies to the granted lock", async (t) => {
  const { fleet, machine, process } = await suspendable();
  const key = "LOCK_suspended_1";
  const other = process.lock("LOCK_suspended_1b", { lockTime: "10s" });
  t.true(await other.acquire());
  await fleet.clock.advance(SECOND);
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    t.true(other.remaining() > 0); // The clock was just read, and is not read again for 20 ms.
    machine.suspend(60 * SECOND);
    return reply;
  };
  inTheMiddleOf(t, "lockweave:grant", key, () => {
    fleet.clock.freeze(25);
    t.is(other.remaining(), 0);
  });
  const lock = process.lock(key, { lockTime: "10s" });
  await lock.acquire();
  t.is(lock.remaining(), 0);
  t.throws(() => lock.assertHeld(), { instanceOf: LockLostError });
  fleet.store.onAcquire = (send) => send();
  t.true(await fleet.isFree(key));
  const next = fleet.process().call(key, {}, () => lock.remaining());
  await fleet.clock.advance(SECOND);
  t.is(await next, 0);
  await t.throwsAsync(lock.release(), { instanceOf: LockLostError });
  await t.throwsAsync(other.release(), { instanceOf: LockLostError });
  await fleet.leftNothing(t, key, process);
});

const UNREPORTED: readonly (readonly [what: string, options: LockOptions, isCutOff: boolean])[] = [
  ["autoUnlock=false", { lockTime: "10s", autoUnlock: false, watchdog: false }, false],
  ["released while the network is down", { lockTime: "10s" }, true],
];

for (const [what, options, isCutOff] of UNREPORTED) {
  for (const looks of [true, false]) {
    const how = looks ? "after a check" : "unchecked";
    test(`a lock that expired during a suspension counts as lost (${what}, ${how})`, async (t) => {
      const { fleet, machine, process } = await suspendable();
      const lock = process.lock(KEY, options);
      t.true(await lock.acquire());
      await fleet.clock.advance(SECOND);
      machine.suspend(60 * SECOND);
      t.is(await fleet.process().call(KEY, {}, idle), "done", "another caller has held the key meanwhile");
      if (isCutOff) fleet.store.onAny = connectionRefused;
      if (looks) t.is(lock.remaining(), 0);
      await t.throwsAsync(lock.release(), { instanceOf: LockLostError });
      fleet.store.onAny = (send) => send();
      await fleet.clock.advance(20 * SECOND);
      await fleet.leftNothing(t, KEY, process);
    });
  }
}

test("a lock without a watchdog is lost before the next caller of the process enters", async (t) => {
  const { fleet, machine, process } = await suspendable();
  const late = process.lock(KEY, { lockTime: "10s", watchdog: false });
  t.true(await late.acquire());
  const { signal } = late;
  await fleet.clock.advance(SECOND);
  machine.suspend(60 * SECOND);
  t.false(signal.aborted);
  t.true(await process.call(KEY, { lockTime: "10s" }, () => signal.aborted));
  t.true(signal.reason instanceof LockLostError);
  await t.throwsAsync(late.release(), { instanceOf: LockLostError });
  await fleet.leftNothing(t, KEY, process);
});

test("a suspension while a reentrant call enters does not take its fencing token and lock time from it", async (t) => {
  const { fleet, machine, process } = await suspendable();
  const reply = deferred();
  fleet.store.onRenew = async (send) => {
    fleet.store.onRenew = (go) => go();
    const replies = await send();
    await reply.promise;
    return replies;
  };
  const call = process.call(KEY, { reentrant: true, lockTime: "10s" }, async (outer) => {
    await passes(fleet.clock, SECOND);
    const inner = process.call(
      KEY,
      { reentrant: true, lockTime: "60s", fencing: true },
      (lock) => [lock.fencingToken, lock.remaining()] as const,
    );
    await passes(fleet.clock, 50);
    machine.suspend(2 * SECOND);
    t.is(outer.remaining(), 0);
    await passes(fleet.clock, 50);
    t.true(outer.remaining() > 0, "a renewal has confirmed it");
    reply.resolve();
    return await inner;
  });
  await fleet.clock.advance(5 * SECOND);
  const [token, remainingMs] = (await call) ?? [];
  t.is(typeof token, "number");
  t.true((remainingMs ?? 0) > 50 * SECOND, `${remainingMs} ms`);
  await fleet.leftNothing(t, KEY, process);
});

test("a waiter that joined the store queue leaves it when the lock is handed off to it", async (t) => {
  const { fleet, machine, process } = await suspendable();
  fleet.store.onRenew = async (send) => {
    await passes(fleet.clock, 25);
    return await send();
  };
  const held = process.lock(KEY);
  t.true(await held.acquire());
  await fleet.clock.advance(25);
  machine.suspend(2 * SECOND);
  t.is(held.remaining(), 0); // Its renewal is in flight.
  const next = process.call(KEY, {}, (lock) => lock.storeValue);
  await fleet.clock.advance(10);
  t.is(fleet.store.enqueueRequests.length, 1);
  await fleet.clock.advance(20);
  t.true(held.remaining() > 0);
  const { storeValue } = held;
  const released = held.release();
  t.is(await next, storeValue);
  await released;
  t.is(fleet.store.dequeues, 1);
  await fleet.leftNothing(t, KEY, process);
});

test("a suspension that is noticed only during an unconfirmed release is reported as a loss", async (t) => {
  const { fleet, machine, process } = await suspendable();
  const lock = process.lock(KEY, { lockTime: "10s" });
  t.true(await lock.acquire());
  await fleet.clock.advance(SECOND);
  t.true(lock.remaining() > 0); // The clock was just read, and is not read again for 20 ms.
  machine.suspend(60 * SECOND);
  fleet.store.onRelease = async () => {
    fleet.clock.freeze(25);
    return await connectionRefused();
  };
  await t.throwsAsync(lock.release(), { instanceOf: LockLostError, message: /connect ECONNREFUSED/ });
});

test("an unconfirmed release without a suspension does not fail a body that succeeded", async (t) => {
  const { fleet, process } = await suspendable();
  const lock = process.lock(KEY, { lockTime: "10s" });
  t.true(await lock.acquire());
  await fleet.clock.advance(SECOND);
  fleet.store.onRelease = async () => {
    fleet.clock.freeze(25);
    return await connectionRefused();
  };
  await t.notThrowsAsync(lock.release());
});
