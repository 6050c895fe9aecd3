import test from "ava";
import { LockLostError } from "../../runtime/base/errors";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { connectionRefused, lostOnTheWay } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
const PATIENT = { retryTimes: 1_000, waitTime: "60s" } as const;

test("local waiters proceed when the holder loses its lock, and its late release does not affect them", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [late, next] = [job(), job()];
  const overdue = t.throwsAsync(process.call(KEY, { lockTime: "6s" }, late.body), {
    instanceOf: LockLostError,
  });
  await late.running;
  const waiting = [process.call(KEY, PATIENT, next.body), process.call(KEY, PATIENT, idle)];
  fleet.store.onRenew = lostOnTheWay;
  await fleet.clock.advance(6 * SECOND);
  await next.running;
  fleet.store.onRenew = (send) => send();
  late.end();
  await overdue;
  await fleet.clock.advance(60 * SECOND);
  t.false(await fleet.isFree(KEY));
  next.end();
  t.deepEqual(await Promise.all(waiting), ["done", "done"]);
  await fleet.leftNothing(t, KEY, process);
});

test("a body that outlasts its lock still counts as running after another caller gets the key", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const late = job();
  const overdue = t.throwsAsync(process.call(KEY, { lockTime: "2s", watchdog: false }, late.body));
  await late.running;
  const next = process.call(KEY, {}, idle);
  await fleet.clock.advance(2 * SECOND);
  t.is(await next, "done");
  t.false(process.isIdle, "shutdown() waits for it");
  late.end();
  await overdue;
  await fleet.leftNothing(t, KEY, process);
});

test("local waiters proceed as soon as the holder learns that its lock is gone", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const overdue = t.throwsAsync(process.call(KEY, { lockTime: "30s" }, body), { instanceOf: LockLostError });
  await running;
  const startedAt = fleet.clock.now();
  const next = process.call(KEY, PATIENT, () => fleet.clock.now());
  await fleet.endHold(KEY);
  await fleet.clock.advance(10 * SECOND); // It is renewed then.
  t.is(await next, startedAt + 10 * SECOND);
  end();
  await overdue;
  await fleet.leftNothing(t, KEY, process);
});

test("a lock is neither renewed nor reported as lost while its release is in flight", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "20s" });
  const holder = process.call(KEY, { lockTime: "30s" }, () => passes(fleet.clock, 9 * SECOND));
  const next = process.call(KEY, PATIENT, idle);
  fleet.store.onRelease = async (send) => {
    const released = await send();
    await passes(fleet.clock, 5 * SECOND);
    return released;
  };
  await fleet.clock.advance(30 * SECOND);
  await Promise.all([holder, next]);
  t.is(fleet.store.renewals, 0);
  t.deepEqual(fleet.warnings, []);
  await fleet.leftNothing(t, KEY, process);
});

test("a lock whose lock time is half over is not handed off but acquired again", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRenew = connectionRefused;
  const holder = process.call(KEY, { lockTime: "100ms" }, () => passes(fleet.clock, 60));
  const remaining = process.call(KEY, { lockTime: "100ms" }, (lock) => lock.remaining());
  await fleet.clock.advance(60);
  await holder;
  t.is(await remaining, 100 * 0.99 - 2);
});
