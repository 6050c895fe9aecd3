import test from "ava";
import { LockClosedError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job } from "../support/jobs";
import { replyLate } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a closing process grants no lock and releases one that is granted meanwhile", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = replyLate(arrival.promise);
  const call = t.throwsAsync(process.call(KEY, {}, idle), { instanceOf: LockClosedError });
  await fleet.clock.settle();
  process.close();
  arrival.resolve();
  await call;
  await fleet.clock.settle();
  t.true(await fleet.isFree(KEY));
  await t.throwsAsync(process.call(KEY, {}, idle), { instanceOf: LockClosedError });
  t.is(fleet.clock.pendingTimers, 0);
});

test("a closing process hands off no lock and frees the key", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const holder = process.call(KEY, {}, body);
  await running;
  const next = t.throwsAsync(process.call(KEY, {}, idle), { code: "LOCK_CLOSED" });
  await fleet.clock.settle();
  process.close();
  end();
  t.is(await holder, "done");
  await next;
  await fleet.leftNothing(t, KEY, process);
});

test("a lock that is handed off when closing begins is released", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRelease = async (send) => {
    const released = await send();
    process.close();
    return released;
  };
  const { body, running, end } = job();
  const holder = process.call(KEY, { watchdog: false }, body); // So the hand-off goes through the store.
  await running;
  const next = t.throwsAsync(process.call(KEY, {}, idle), { code: "LOCK_CLOSED" });
  end();
  await Promise.all([holder, next]);
  t.is(fleet.store.releases, 2, "one release for each hold");
  await fleet.leftNothing(t, KEY, process);
});

test("a waiter that a shutdown rejects sends no more commands", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    process.close();
    return reply;
  };
  await t.throwsAsync(process.call(KEY, {}, idle), { code: "LOCK_CLOSED" });
  t.is(fleet.store.enqueueRequests.length, 0);
});

test("a closed process no longer listens for wake-ups", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const holder = job();
  const held = process.call(KEY, {}, holder.body);
  await holder.running;
  t.is(fleet.store.listeners, 1);
  process.close();
  t.is(fleet.store.listeners, 0);
  holder.end();
  t.is(await held, "done");
});
