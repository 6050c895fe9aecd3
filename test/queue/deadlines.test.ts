import test from "ava";
import { Deadlines } from "../../runtime/queue/renewals";
import { Lease } from "../../runtime/queue/lease";
import { leaseQueue } from "../support/lease-queue";
import { VirtualClock } from "../support/virtual-clock";

const SECOND = 1_000;

function leaseFor(clock: VirtualClock, lockTimeMs: number): Lease {
  const lease = new Lease(leaseQueue("LOCK_payOrder_1"), "a".repeat(32), lockTimeMs, undefined, true);
  lease.prove(clock.now(), lockTimeMs);
  return lease;
}

test("a lease is lost at its deadline and no longer watched", async (t) => {
  const clock = new VirtualClock();
  const deadlines = new Deadlines(clock);
  const lease = leaseFor(clock, SECOND);
  deadlines.watch(lease, { error: new Error("connection refused") });
  await clock.advance(lease.untilDeadline(clock.now()) - 1);
  t.is(lease.loss, undefined);
  t.true(deadlines.isWatched(lease));
  await clock.advance(1);
  t.regex(lease.loss?.because ?? "", /connection refused/);
  t.false(deadlines.isWatched(lease));
  t.is(clock.pendingTimers, 0);
});

test("a forgotten lease can be watched again", async (t) => {
  const clock = new VirtualClock();
  const deadlines = new Deadlines(clock);
  const lease = leaseFor(clock, SECOND);
  deadlines.watch(lease);
  deadlines.forget(lease);
  t.false(deadlines.isWatched(lease));
  t.is(clock.pendingTimers, 0);
  await clock.advance(SECOND);
  t.is(lease.loss, undefined);
  lease.prove(clock.now(), SECOND);
  deadlines.watch(lease);
  await clock.advance(SECOND);
  t.is(lease.loss?.outcome, "expired");
});
