import test from "ava";
import { LockClosedError } from "../../runtime/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job } from "../support/jobs";
import { replyLate } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("once closing has begun no lock is given, and one that is granted meanwhile is given back", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onTake = replyLate(arrival.promise);
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

test("while shutting down nothing is handed on, and the key is free at the end", async (t) => {
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

test("what is handed on while shutting down begins is given back", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onDrop = async (send) => {
    const released = await send();
    process.close();
    return released;
  };
  const { body, running, end } = job();
  const holder = process.call(KEY, { watchdog: false }, body); // So it goes by the store.
  await running;
  const next = t.throwsAsync(process.call(KEY, {}, idle), { code: "LOCK_CLOSED" });
  end();
  await Promise.all([holder, next]);
  t.is(fleet.store.releases, 2, "the end of the one hold, and of the other");
  await fleet.leftNothing(t, KEY, process);
});

test("who is sent home by a shutdown asks nothing more", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  fleet.store.onTake = async (send) => {
    const reply = await send();
    process.close();
    return reply;
  };
  await t.throwsAsync(process.call(KEY, {}, idle), { code: "LOCK_CLOSED" });
  t.is(fleet.store.placed.length, 0);
});

test("a process that is closed listens for no hints any more", async (t) => {
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
