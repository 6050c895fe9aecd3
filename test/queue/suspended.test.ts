import test from "ava";
import { LockLostError } from "../../runtime/base/errors";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { SuspendableClock } from "../support/suspendable-clock";
import { lostOnTheWay } from "../support/tampered-store";

// The machine of a process is suspended. Its clock stops, and the clock of the store goes on.

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

interface Machine {
  readonly fleet: Fleet;
  readonly clock: SuspendableClock;
}

function machine(): Machine {
  const clock = new SuspendableClock();
  return { fleet: new Fleet(clock), clock };
}

test("a lock is neither held nor lost after a suspension until a renewal is answered", async (t) => {
  const { fleet, clock } = machine();
  const lock = fleet.process().lock(KEY, { lockTime: "30s" });
  t.true(await lock.acquire());
  const { signal } = lock;
  await clock.advance(SECOND);
  fleet.store.onRenew = async (send) => {
    await passes(clock, 300);
    return await send();
  };
  clock.suspend(20 * SECOND);
  t.is(lock.remaining(), 0);
  t.throws(() => lock.assertHeld(), { instanceOf: LockLostError });
  await clock.advance(299);
  t.is(fleet.store.renewals, 1, "sent immediately");
  t.is(lock.remaining(), 0);
  t.false(signal.aborted);
  await clock.advance(1);
  t.is(lock.remaining(), 30_000 * 0.99 - 2 - 300, "the lock time counts from that renewal");
  t.notThrows(() => lock.assertHeld());
  t.false(signal.aborted);
  await lock.release();
  t.deepEqual(fleet.warnings, []);
  await fleet.leftNothing(t, KEY);
});

test("the first renewal after a suspension that outlasted the lock reports the loss", async (t) => {
  const { fleet, clock } = machine();
  const lock = fleet.process().lock(KEY, { lockTime: "30s" });
  t.true(await lock.acquire());
  const { signal } = lock;
  await clock.advance(SECOND);
  clock.suspend(60 * SECOND);
  await fleet.endHold(KEY); // The clock of the store went on.
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  t.is(lock.remaining(), 0);
  t.false(signal.aborted);
  await clock.settle();
  t.true(signal.aborted);
  await t.throwsAsync(lock.release(), { instanceOf: LockLostError, message: /another caller holds it/ });
});

test("a suspension is noticed at the next renewal even if nobody checks the lock", async (t) => {
  const { fleet, clock } = machine();
  const lock = fleet.process().lock(KEY, { lockTime: "30s" });
  t.true(await lock.acquire());
  const { signal } = lock;
  clock.suspend(60 * SECOND);
  await fleet.endHold(KEY);
  await clock.advance(10 * SECOND);
  t.true(signal.aborted);
  await t.throwsAsync(lock.release(), { instanceOf: LockLostError });
});

test("a renewal that was sent before a suspension does not confirm the lock after it", async (t) => {
  const { fleet, clock } = machine();
  const lock = fleet.process().lock(KEY, { lockTime: "30s" });
  t.true(await lock.acquire());
  fleet.store.onRenew = async (send) => {
    const replies = await send();
    await passes(clock, 500);
    return replies;
  };
  await clock.advance(10_100);
  t.is(fleet.store.renewals, 1);
  clock.suspend(20 * SECOND);
  fleet.store.onRenew = lostOnTheWay;
  await clock.advance(900);
  t.is(lock.remaining(), 0);
  t.false(lock.signal.aborted);
  fleet.store.onRenew = (send) => send();
  await clock.advance(2 * SECOND);
  t.true(lock.remaining() > 0);
  await lock.release();
});

test("a grant that was requested before a suspension is renewed before the body runs", async (t) => {
  const { fleet, clock } = machine();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await passes(clock, 300);
    return reply;
  };
  const { body, running, end } = job();
  let remainingMs = 0;
  const call = fleet.process().call(KEY, { lockTime: "30s" }, (lock) => {
    remainingMs = lock.remaining();
    return body();
  });
  await clock.advance(100);
  clock.suspend(20 * SECOND);
  await clock.advance(200);
  await running;
  t.is(fleet.store.renewals, 1);
  t.is(remainingMs, 30_000 * 0.99 - 2);
  end();
  // The key is still ours at the release. The time before the renewal does not matter, because no body ran then.
  t.is(await call, "done");
  await fleet.leftNothing(t, KEY);
});

test("a lock without a watchdog is lost as soon as a suspension is noticed", async (t) => {
  const { fleet, clock } = machine();
  const lock = fleet.process().lock(KEY, { lockTime: "30s", watchdog: false });
  t.true(await lock.acquire());
  const { signal } = lock;
  await clock.advance(SECOND);
  clock.suspend(10 * SECOND);
  t.false(signal.aborted);
  t.is(lock.remaining(), 0);
  t.true(signal.aborted);
  t.regex(String(signal.reason), /the machine was suspended/);
  t.is(clock.pendingTimers, 0);
  await clock.advance(30 * SECOND);
  t.is(fleet.store.renewals, 0);
  await t.throwsAsync(lock.release(), { instanceOf: LockLostError, message: /the machine was suspended/ });
});

test("a lock without a watchdog reports no loss after a suspension if its release finds the key", async (t) => {
  const { fleet, clock } = machine();
  const lock = fleet.process().lock(KEY, { lockTime: "30s", watchdog: false });
  t.true(await lock.acquire());
  await clock.advance(SECOND);
  clock.suspend(10 * SECOND);
  t.is(lock.remaining(), 0);
  await t.notThrowsAsync(lock.release());
  await fleet.leftNothing(t, KEY);
});

test("a signal that is first read after a suspension reports the loss", async (t) => {
  const { fleet, clock } = machine();
  const process = fleet.process();
  const [kept, other] = [
    process.lock(KEY, { lockTime: "30s" }),
    process.lock("LOCK_other_1", { lockTime: "30s", watchdog: false }),
  ];
  t.true(await kept.acquire());
  t.true(await other.acquire());
  await clock.advance(SECOND);
  clock.suspend(60 * SECOND);
  await fleet.endHold(KEY); // The clock of the store went on.
  t.true(other.signal.aborted);
  t.false(kept.signal.aborted, "the read triggers a renewal, which decides");
  await clock.settle();
  t.true(kept.signal.aborted);
  await t.throwsAsync(kept.release(), { instanceOf: LockLostError });
});

test("a lock is not handed off after a suspension, and its release is logged once", async (t) => {
  const { fleet, clock } = machine();
  const lines: string[] = [];
  const process = fleet.process({ logger: { warn: () => t.fail(), debug: (line) => void lines.push(line) } });
  const { body, running, end } = job();
  const holder = process.call(KEY, {}, body);
  await running;
  const next = process.call(KEY, {}, idle);
  await clock.advance(50);
  clock.suspend(10 * SECOND);
  end();
  t.is(await holder, "done");
  t.is(await next, "done");
  t.deepEqual(
    lines.filter((line) => / after \d+ ms$/.test(line)).map((line) => line.split(" ").slice(2).join(" ")),
    [
      "holds the lock after 0 ms",
      "released after 50 ms",
      "holds the lock after 50 ms",
      "released after 0 ms",
    ],
  );
  await fleet.leftNothing(t, KEY, process);
});

test("a reentrant call right after a suspension throws without running its body", async (t) => {
  const { fleet, clock } = machine();
  const process = fleet.process();
  const reentrant = { reentrant: true } as const;
  await process.call(KEY, reentrant, async (lock) => {
    await clock.advance(50);
    clock.suspend(10 * SECOND);
    await t.throwsAsync(
      process.call(KEY, reentrant, () => t.fail()),
      { instanceOf: LockLostError },
    );
    await clock.settle();
    t.is(fleet.store.renewals, 1, "the suspension triggers one renewal");
    lock.assertHeld();
    t.is(await process.call(KEY, reentrant, idle), "done");
    t.is(fleet.store.commands, 2, "the reentrant calls send nothing");
  });
  await fleet.leftNothing(t, KEY, process);
});
