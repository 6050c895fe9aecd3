import test from "ava";
import { LockUnreachableError } from "../../runtime/base/errors";
import { Fleet } from "../support/fleet";
import { idle, passes } from "../support/jobs";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a waiter that gives up behind another wakes nobody and sends no command", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const first = process.call(KEY, {}, idle);
  await fleet.clock.settle();
  const controller = new AbortController();
  const second = t.throwsAsync(process.call(KEY, {}, idle, { signal: controller.signal }), { any: true });
  await fleet.clock.settle();
  const { commands, peeks } = fleet.store;
  controller.abort();
  await second;
  await fleet.clock.settle();
  t.deepEqual([fleet.store.commands, fleet.store.peeks], [commands, peeks]);
  await fleet.releaseElsewhere(KEY);
  await fleet.clock.advance(SECOND);
  t.is(await first, "done");
});

test("a try ends if its command acquires the lock for another waiter after its own caller gave up", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await passes(fleet.clock, 150);
    return reply;
  };
  const hasty = process.lock(KEY, { wait: "100ms" });
  const attempt = hasty.acquire();
  const next = process.lock(KEY, { wait: "1m" });
  t.false(await next.acquire());
  await fleet.clock.advance(120);
  await t.throwsAsync(hasty.retryCheck(), { instanceOf: LockUnreachableError });
  await fleet.clock.advance(50);
  t.false(await attempt);
  t.true(next.isHeld);
  await next.release();
  await fleet.leftNothing(t, KEY, process);
});
