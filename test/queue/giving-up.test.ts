import test from "ava";
import { Fleet } from "../support/fleet";
import { idle } from "../support/jobs";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a waiter that gives up behind another wakes nobody and sends no command", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const first = process.call(KEY, {}, idle);
  await fleet.clock.settle();
  const controller = new AbortController();
  const second = t.throwsAsync(process.call(KEY, {}, idle, { signal: controller.signal }), { any: true });
  await fleet.clock.settle();
  const { commands, looks } = fleet.store;
  controller.abort();
  await second;
  await fleet.clock.settle();
  t.deepEqual([fleet.store.commands, fleet.store.looks], [commands, looks]);
  await fleet.foreignerLeaves(KEY);
  await fleet.clock.advance(SECOND);
  t.is(await first, "done");
});
