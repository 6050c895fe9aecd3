import test from "ava";
import { LockWaitTimeoutError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a waiter asks the store every second and gives up after 3 times 5 seconds by default", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const process = fleet.process();
  const outcome = t.throwsAsync(process.call(KEY, {}, idle), {
    instanceOf: LockWaitTimeoutError,
    code: "LOCK_WAIT_TIME_OUT",
    message:
      "LOCK_WAIT_TIME_OUT: LOCK_payOrder_1 is held by another caller and did not become free within 15000 ms (retryTimes=3, waitTime=5000ms). Fix: allow a longer wait (wait, or retryTimes and waitTime), shorten the bodies, or set onFailure",
  });
  await fleet.clock.settle();
  // One try, one request for a ticket, and then one a second, so that the store does not consider the waiter dead.
  const first = fleet.store.acquireRequests.length;
  t.is(first, 2);
  for (let second = 1; second <= 15; second += 1) {
    await fleet.clock.advance(999);
    t.is(fleet.store.acquireRequests.length, first + second - 1);
    await fleet.clock.advance(1);
    t.is(fleet.store.acquireRequests.length, first + second);
  }
  await outcome;
  t.is(fleet.clock.pendingTimers, 0);
  t.true(process.isIdle);
  await fleet.releaseElsewhere(KEY);
  t.true(await fleet.isForgotten(KEY));
});

test("a waiter checks as often as retryTimes says, at intervals of waitTime", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const outcome = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 7, waitTime: "100ms" }, idle), {
    instanceOf: LockWaitTimeoutError,
  });
  await fleet.clock.advance(699);
  t.is(fleet.store.acquireRequests.length, 2 + 6);
  await fleet.clock.advance(1);
  t.is(fleet.store.acquireRequests.length, 2 + 7);
  await outcome;
});

for (const options of [{ retryTimes: 0 }, { waitTime: "0ms" }] as const) {
  test(`a call with ${JSON.stringify(options)} checks once and does not wait`, async (t) => {
    const fleet = new Fleet();
    await fleet.acquireElsewhere(KEY, 60 * SECOND);
    await t.throwsAsync(fleet.process().call(KEY, options, idle), { instanceOf: LockWaitTimeoutError });
    t.is(fleet.store.acquireRequests.length, 1);
    t.is(fleet.clock.pendingTimers, 0);
    await fleet.releaseElsewhere(KEY);
    t.true(await fleet.isForgotten(KEY), "the caller did not join the queue");
    t.is(await fleet.process().call(KEY, options, idle), "done");
  });
}

test("a timeout throws the failure class of the tag, with the timeout error as its cause", async (t) => {
  class OrderBusyError extends Error {}
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const outcome = t.throwsAsync(
    fleet.process().call(KEY, { retryTimes: 0 }, idle, { Failure: OrderBusyError }),
    {
      instanceOf: OrderBusyError,
      message: /^LOCK_WAIT_TIME_OUT: LOCK_payOrder_1 is held by another/,
    },
  );
  const error = await outcome;
  t.true(error?.cause instanceof LockWaitTimeoutError);
});

test("onFailure=skip does not run the body and returns undefined", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const skipped = fleet.process().call(KEY, { onFailure: "skip" }, () => t.fail());
  await fleet.clock.advance(15 * SECOND);
  t.is(await skipped, undefined);
  t.is(fleet.clock.pendingTimers, 0);
});

test("the timeout error names the function that wanted the lock", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const lock = fleet.process().lock(KEY, { retryTimes: 0 }, "OrderService.pay");
  t.false(await lock.acquire());
  await t.throwsAsync(lock.retryCheck(), { message: /LOCK_payOrder_1 \(OrderService\.pay\) is held/ });
});

test("a release wakes a waiter in another process long before its next check", async (t) => {
  const fleet = new Fleet();
  const { body, running, end } = job();
  const holder = fleet.process().call(KEY, {}, body);
  await running;
  const waiter = fleet.process().call(KEY, {}, idle); // In another process of the fleet.
  await fleet.clock.advance(1);
  end();
  t.is(await holder, "done");
  t.is(await waiter, "done"); // No time passes here.
  t.is(fleet.clock.pendingTimers, 0);
  t.true(await fleet.isForgotten(KEY));
});

test("a wake-up that finds the key taken does not use up a check", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const outcome = t.throwsAsync(fleet.process().call(KEY, {}, idle), { instanceOf: LockWaitTimeoutError });
  await fleet.clock.settle();
  for (let race = 0; race < 10; race += 1) {
    const before = fleet.store.acquireRequests.length;
    fleet.store.wakeUp(undefined);
    await fleet.clock.advance(100);
    t.is(
      fleet.store.acquireRequests.length,
      before + 1,
      "the waiter checked, and another caller had been faster",
    );
  }
  let isOver = false;
  void outcome.then(() => (isOver = true));
  await fleet.clock.advance(13_999);
  t.false(isOver);
  await fleet.clock.advance(1);
  await outcome;
});

test("a waiter does not miss a release between its try and its entry into the queue", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  fleet.store.onEnqueue = async (send) => {
    await fleet.releaseElsewhere(KEY);
    return await send();
  };
  t.is(await fleet.process().call(KEY, {}, idle), "done"); // No time passes here.
});

test("a waiter does not miss a release before the reply to its try", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  fleet.store.onEnqueue = async (send) => {
    const reply = await send();
    await fleet.releaseElsewhere(KEY); // After the store has refused, before the waiter knows.
    return reply;
  };
  t.is(await fleet.process().call(KEY, {}, idle), "done"); // No time passes here.
});

test("a waiter gets the lock without wake-ups, and later wake-ups work again", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  fleet.store.onWakeUp = () => {}; // It is lost.
  const waiter = fleet.process().call(KEY, {}, idle);
  await fleet.clock.advance(100);
  await fleet.releaseElsewhere(KEY);
  await fleet.clock.advance(899);
  t.false(await fleet.isFree(KEY), "the queue reserves the key for the waiter");
  await fleet.clock.advance(1);
  t.is(await waiter, "done");

  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const next = fleet.process().call(KEY, {}, idle);
  await fleet.clock.advance(100);
  fleet.store.onWakeUp = (deliver) => deliver();
  await fleet.releaseElsewhere(KEY);
  t.is(await next, "done"); // No time passes here.
});

test("a ticket that is created after its waiter gave up is removed", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const slow = deferred();
  fleet.store.onEnqueue = async (send) => {
    await slow.promise;
    return await send();
  };
  const waiter = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 1, waitTime: "1s" }, idle));
  await fleet.clock.advance(SECOND);
  await waiter;
  slow.resolve();
  await fleet.clock.settle();
  await fleet.releaseElsewhere(KEY);
  t.true(await fleet.isForgotten(KEY));
});

test("a waiter gets the key of a crashed holder when it expires, before the next check", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 1_234);
  const waiter = fleet.process().call(KEY, {}, () => fleet.clock.now());
  const startedAt = fleet.clock.now();
  await fleet.clock.advance(5 * SECOND);
  t.is((await waiter) ?? 0, startedAt + 1_234);
});

test("the timeout error names the local function that holds the lock, and for how long", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const call = process.call(
    KEY,
    {},
    async () => {
      await passes(fleet.clock, 700);
      // A common mistake: the function calls itself but is not reentrant.
      await process.call(KEY, { retryTimes: 1, waitTime: "2s" }, () => t.fail());
    },
    { site: "OrderService.pay" },
  );
  const outcome = t.throwsAsync(call, {
    instanceOf: LockWaitTimeoutError,
    message:
      "LOCK_WAIT_TIME_OUT: LOCK_payOrder_1 has been held in this process by OrderService.pay for 2700 ms and did not become free within 2000 ms (retryTimes=1, waitTime=2000ms). Fix: allow a longer wait (wait, or retryTimes and waitTime), shorten the bodies, or set onFailure",
  });
  await fleet.clock.advance(5 * SECOND);
  await outcome;
  t.is(fleet.store.acquireRequests.length, 1, "the store was not asked because the holder is local");
  await fleet.leftNothing(t, KEY, process);
});

test("the timeout error names no function if the holder has no name", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const holder = job();
  const held = process.call(KEY, {}, holder.body);
  await holder.running;
  const waiter = process.call(KEY, { retryTimes: 1, waitTime: "2s" }, () => t.fail());
  const outcome = t.throwsAsync(waiter, {
    message: /^LOCK_WAIT_TIME_OUT: LOCK_payOrder_1 has been held in this process for 2000 ms and did not /,
  });
  await fleet.clock.advance(2 * SECOND);
  await outcome;
  holder.end();
  t.is(await held, "done");
});
