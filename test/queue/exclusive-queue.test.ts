import test from "ava";
import { LockLostError, LockWaitTimeoutError } from "../../runtime/base/errors";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("callers of one process get the lock first come, first served", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const order: number[] = [];
  const calls = Array.from({ length: 10 }, (_, n) =>
    process.call(KEY, {}, async () => {
      order.push(n);
      await fleet.clock.settle(); // Let the others try to get in between.
    }),
  );
  await Promise.all(calls);
  t.deepEqual(order, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  t.is(fleet.clock.pendingTimers, 0);
});

test("many callers in one process cost the store fewer commands than separate calls", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await Promise.all(Array.from({ length: 100 }, () => process.call(KEY, {}, idle)));
  t.is(fleet.store.acquireRequests.length, 1, "no acquire is refused");
  t.is(fleet.store.releases, 2, "one for each 64 hand-offs in a row");
  t.is(fleet.store.commands, 3);
  t.true(await fleet.isForgotten(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("only the first waiter of a process asks the store", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const outcomes = Array.from({ length: 20 }, () =>
    t.throwsAsync(process.call(KEY, {}, idle), { instanceOf: LockWaitTimeoutError }),
  );
  await fleet.clock.advance(14_999);
  t.is(fleet.store.acquireRequests.length, 2 + 14);
  t.is(new Set(fleet.store.enqueueRequests.map(({ ticket }) => ticket)).size, 1);
  t.is(
    new Set(fleet.store.acquireRequests.map(({ requestId }) => requestId)).size,
    2 + 14,
    "a request ID for each command",
  );
  await fleet.clock.advance(SECOND);
  await Promise.all(outcomes);
  t.is(fleet.clock.pendingTimers, 0);
  await fleet.releaseElsewhere(KEY);
  t.true(await fleet.isForgotten(KEY));
});

test("the next local waiter takes over when the first one gives up", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "1s" }, idle));
  const patient = process.call(KEY, {}, idle);
  await fleet.clock.advance(2 * SECOND);
  await hasty;
  await fleet.releaseElsewhere(KEY);
  t.is(await patient, "done");
});

test("a waiter that gives up in the middle of the local queue leaves the others in order", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const order: string[] = [];
  const first = process.call(KEY, {}, () => order.push("first"));
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "1s" }, idle));
  const third = process.call(KEY, {}, () => order.push("third"));
  await fleet.clock.advance(2 * SECOND);
  await hasty;
  await fleet.releaseElsewhere(KEY);
  await Promise.all([first, third]);
  t.deepEqual(order, ["first", "third"]);
});

test("a caller that leaves the local queue before it waits wakes the next", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const abandoned = process.lock(KEY);
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  t.false(await abandoned.acquire());
  const next = process.call(KEY, {}, idle);
  await fleet.clock.settle();
  await fleet.releaseElsewhere(KEY);
  await abandoned.release();
  t.is(await next, "done");
});

test("a local waiter enters when the local holder's lock expires, even if its body still runs", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const overdue = t.throwsAsync(process.call(KEY, { watchdog: false, lockTime: "2s" }, body), {
    instanceOf: LockLostError,
  });
  await running;
  const startedAt = fleet.clock.now();
  const waiter = process.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(5 * SECOND);
  t.is(await waiter, startedAt + 2 * SECOND, "not before the key has expired");
  end();
  await overdue;
  t.is(fleet.clock.pendingTimers, 0);
});

test("a holder that ends late does not disturb the holder after it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [late, next] = [job(), job()];
  const overdue = t.throwsAsync(process.call(KEY, { watchdog: false, lockTime: "2s" }, late.body));
  await late.running;
  const holder = process.call(KEY, {}, next.body);
  await fleet.clock.advance(2 * SECOND);
  await next.running;
  const asked = fleet.store.acquireRequests.length;
  const third = process.call(KEY, {}, idle);
  late.end();
  await overdue;
  await fleet.clock.settle();
  t.is(fleet.store.acquireRequests.length, asked, "the third caller knows that the second holds the lock");
  next.end();
  await Promise.all([holder, third]);
  t.is(fleet.clock.pendingTimers, 0);
});

test("a waiter behind a body that outlasts a lock without a watchdog enters soon after the lock expires", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = async (send) => {
    await passes(fleet.clock, 10);
    return await send();
  };
  const process = fleet.process();
  const short = { lockTime: "200ms", watchdog: false } as const;
  const outlasting = t.throwsAsync(
    process.call(KEY, short, () => passes(fleet.clock, 3 * SECOND)),
    { instanceOf: LockLostError },
  );
  const startedAt = fleet.clock.now();
  const next = process.call(KEY, {}, () => fleet.clock.now() - startedAt);
  await fleet.clock.advance(5 * SECOND);
  t.true(((await next) ?? Infinity) < 300);
  await outlasting;
});
