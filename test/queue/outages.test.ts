import test from "ava";
import { LockUnreachableError, LockWaitTimeoutError } from "../../runtime/base/errors";
import { CLAIM_TIME_MS } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { connectionRefused, lostOnTheWay, replyLost } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
const PATIENT = { retryTimes: 1_000, waitTime: "60s" } as const;

for (const [what, fate] of [
  ["its reply is lost", replyLost],
  ["the command is lost", lostOnTheWay],
] as const) {
  test(`a release with local waiters frees the key eventually if ${what}`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    const { body, running, end } = job();
    const holder = process.call(KEY, { watchdog: false, lockTime: "3s" }, body); // So the hand-off goes through the store.
    await running;
    const order: number[] = [];
    const waiting = [1, 2, 3].map((n) => process.call(KEY, PATIENT, () => order.push(n)));
    fleet.store.onRelease = fate;
    end();
    await fleet.clock.advance(SECOND);
    t.is(await holder, "done", "the holder does not wait for the release to succeed");
    fleet.store.onRelease = (send) => send();
    await fleet.clock.advance(3 * SECOND);
    await Promise.all(waiting);
    t.deepEqual(order, [1, 2, 3]);
    t.regex(fleet.warnings.join("\n"), /the store did not confirm the release/);
    await fleet.leftNothing(t, KEY, process);
  });
}

test("a late reply to a release that kept the key gives it to the first local waiter", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const holder = process.call(KEY, { watchdog: false }, body);
  await running;
  const next = process.call(KEY, {}, () => fleet.clock.now());
  const arrival = deferred();
  fleet.store.onRelease = async (send) => {
    const released = await send();
    await arrival.promise;
    return released;
  };
  fleet.store.onEnqueue = lostOnTheWay;
  end();
  await fleet.clock.advance(1_500);
  t.is(await holder, "done");
  arrival.resolve();
  t.is(await next, fleet.clock.now(), "the waiter does not wait for its own try, which is still in flight");
  await fleet.clock.advance(SECOND);
  await fleet.leftNothing(t, KEY, process);
});

test("a late reply to a repeated release does not delay the next waiter by the lock time", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "200ms" });
  const { body, running, end } = job();
  const holder = process.call(KEY, { lockTime: "50s" }, body);
  await running;
  const next = process.call(KEY, { lockTime: "40s" }, () => fleet.clock.now()); // So the hand-off goes through the store.
  await fleet.clock.settle();
  fleet.store.onReleaseAndEnqueue = async (send) => {
    await send();
    const second = await send();
    await passes(fleet.clock, 230);
    return second;
  };
  fleet.store.onEnqueue = async (send) => {
    const reply = await send();
    await passes(fleet.clock, 80); // It finds the key taken, and its reply comes after the late one.
    return reply;
  };
  const endedAt = fleet.clock.now();
  end();
  await fleet.clock.advance(60 * SECOND);
  t.is(await holder, "done");
  const tookMs = ((await next) ?? 0) - endedAt;
  t.true(tookMs < SECOND, `${tookMs} ms`);
  await fleet.leftNothing(t, KEY, process);
});

test("a waiter behind a release without a reply tries again no later than when the lock has expired", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "6s" });
  const held = process.lock(KEY, { lockTime: "300ms" });
  t.true(await held.acquire());
  fleet.store.onRelease = replyLost;
  const released = held.release();
  await fleet.clock.settle();
  fleet.store.onRelease = (send) => send();
  t.true(await fleet.isFree(KEY));
  const endedAt = fleet.clock.now();
  const next = process.call(KEY, { lockTime: "300ms" }, () => fleet.clock.now());
  await fleet.clock.advance(10 * SECOND);
  const tookMs = ((await next) ?? 0) - endedAt;
  t.true(tookMs <= 300, `${tookMs} ms`);
  await released;
  await fleet.leftNothing(t, KEY, process);
});

test("a release whose next waiter gives up meanwhile leaves nothing behind", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const holder = process.call(KEY, { watchdog: false }, body);
  await running;
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "200ms" }, idle));
  await fleet.clock.advance(100);
  fleet.store.onRelease = async (send) => {
    await passes(fleet.clock, 300);
    return await send();
  };
  end();
  await fleet.clock.advance(SECOND);
  await Promise.all([holder, hasty]);
  await fleet.leftNothing(t, KEY, process);
});

test("wrong, duplicate, and unaddressed wake-ups do no harm", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process()];
  fleet.store.onWakeUp = (deliver) => {
    deliver();
    deliver();
  };
  let inside = 0;
  const calls = processes.flatMap((process) =>
    Array.from({ length: 40 }, () =>
      process.call(KEY, PATIENT, async (lock) => {
        inside += 1;
        t.is(inside, 1);
        fleet.store.wakeUp(undefined);
        fleet.store.wakeUp(lock.requestId);
        fleet.store.wakeUp("no such request");
        for (const { requestId } of fleet.store.enqueueRequests.slice(-3)) fleet.store.wakeUp(requestId);
        await passes(fleet.clock, 3);
        inside -= 1;
      }),
    ),
  );
  await fleet.clock.advance(20 * SECOND);
  await Promise.all(calls);
  await fleet.leftNothing(t, KEY, ...processes);
});

test("waiters without wake-ups find the keys that the queue reserved for them", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process()];
  fleet.store.onWakeUp = () => {};
  const starts: number[] = [];
  const calls = processes.flatMap((process) =>
    Array.from({ length: 20 }, () =>
      process.call(KEY, PATIENT, () => {
        starts.push(fleet.clock.now());
        return passes(fleet.clock, 30);
      }),
    ),
  );
  await fleet.clock.advance(60 * SECOND);
  await Promise.all(calls);
  const gaps = starts.slice(1).map((at, index) => at - (starts[index] ?? 0));
  t.true(Math.max(...gaps) > 30, "a key was reserved for the other process");
  t.true(Math.max(...gaps) < CLAIM_TIME_MS, "no reservation expired");
  await fleet.leftNothing(t, KEY, ...processes);
});

test("waiters get the lock in their order after an outage", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const order: number[] = [];
  const waiting = [1, 2, 3].map((n) => process.call(KEY, PATIENT, () => order.push(n)));
  await fleet.clock.advance(SECOND);
  fleet.store.onAny = connectionRefused;
  await fleet.clock.advance(30 * SECOND);
  await fleet.releaseElsewhere(KEY);
  await fleet.clock.advance(5 * SECOND);
  t.deepEqual(order, []);
  fleet.store.onAny = (send) => send();
  await fleet.clock.advance(200);
  await Promise.all(waiting);
  t.deepEqual(order, [1, 2, 3]);
  await fleet.leftNothing(t, KEY, process);
});

test("each waiter learns of an outage at the end of its own wait budget", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const startedAt = fleet.clock.now();
  const ends = [1, 2, 3].map(async (seconds) => {
    await t.throwsAsync(process.call(KEY, { retryTimes: seconds, waitTime: "1s" }, idle), {
      // A waiter that saw another holder a second ago does not take one unanswered check for an outage.
      instanceOf: seconds === 1 ? LockWaitTimeoutError : LockUnreachableError,
    });
    return fleet.clock.now() - startedAt;
  });
  await fleet.clock.settle();
  fleet.store.onAny = lostOnTheWay;
  await fleet.clock.advance(5 * SECOND);
  for (const [index, tookMs] of (await Promise.all(ends)).entries()) {
    t.true(tookMs >= (index + 1) * SECOND && tookMs <= (index + 1) * SECOND + 250, `${tookMs} ms`);
  }
  fleet.store.onAny = (send) => send();
  await fleet.clock.advance(2 * SECOND);
  await fleet.releaseElsewhere(KEY);
  await fleet.leftNothing(t, KEY, process);
});

test("a waiter behind an unanswered caller reports an unreachable store, not a busy lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = lostOnTheWay;
  const waits = (["900ms", "1200ms"] as const).map((waitTime) =>
    t.throwsAsync(
      process.call(KEY, { retryTimes: 1, waitTime }, () => t.fail()),
      { instanceOf: LockUnreachableError },
    ),
  );
  // It is not yet known whether the store is reachable when this waiter gives up.
  const hasty = t.throwsAsync(
    process.call(KEY, { retryTimes: 1, waitTime: "300ms" }, () => t.fail()),
    { instanceOf: LockWaitTimeoutError, message: /has an earlier waiter in this process and/ },
  );
  await fleet.clock.advance(5 * SECOND);
  await Promise.all([...waits, hasty]);
  await fleet.leftNothing(t, KEY, process);
});

test("short waits in an outage report an unreachable store, even if a holder was seen before it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const hasty = { retryTimes: 1, waitTime: "500ms", onFailure: "skip" } as const;
  const ends: string[] = [];
  const call = (): Promise<number> =>
    process
      .call(KEY, hasty, () => t.fail())
      .then(
        () => ends.push("skipped"),
        (error: unknown) => ends.push(error instanceof LockUnreachableError ? "unreachable" : "failed"),
      );
  const calls = [call()];
  await fleet.clock.settle();
  fleet.store.onAny = lostOnTheWay;
  for (let n = 0; n < 20; n += 1) {
    await fleet.clock.advance(250); // So the local queue is never empty.
    calls.push(call());
  }
  await fleet.clock.advance(5 * SECOND);
  await Promise.all(calls);
  t.deepEqual(new Set(ends.slice(8)), new Set(["unreachable"]), ends.join(" "));
});
