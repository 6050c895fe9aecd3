import test from "ava";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import { CLAIM_TIME_MS } from "../../runtime/stores/port";
import { batching } from "../support/batching-store";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import {
  TamperedStore,
  connectionRefused,
  lostOnTheWay,
  replyLate,
  replyLost,
} from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
const PATIENT = { retryTimes: 1_000, waitTime: "60s" } as const;

test("the next local waiter inherits the ticket of a waiter that gives up", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const order: string[] = [];
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "2s" }, idle));
  const heir = process.call(KEY, {}, () => order.push("heir"));
  await fleet.clock.advance(SECOND);
  const later = other.call(KEY, {}, () => order.push("later"));
  await fleet.clock.advance(2 * SECOND);
  await hasty;
  await fleet.releaseElsewhere(KEY);
  await Promise.all([heir, later]);
  t.deepEqual(order, ["heir", "later"]);
  await fleet.leftNothing(t, KEY, process, other);
});

test("a waiter that inherits a ticket keeps its own lock time and fencing", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 5 * SECOND);
  const hasty = t.throwsAsync(process.call(KEY, { lockTime: "60s", retryTimes: 1, waitTime: "2s" }, idle));
  const remaining = process.call(KEY, { lockTime: "3s", fencing: true }, (lock) => {
    t.is(typeof lock.fencingToken, "number");
    return lock.remaining();
  });
  await fleet.clock.advance(5 * SECOND);
  await hasty;
  t.is(await remaining, 3_000 * 0.99 - 2);
  await fleet.leftNothing(t, KEY, process);
});

test("the last waiter of a process that gives up leaves the store queue, and other processes move up", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const hasty = [1, 2, 3].map((waitTime) =>
    t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: `${waitTime}s` }, idle)),
  );
  await fleet.clock.settle();
  const later = other.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(2_900);
  t.is(fleet.store.dequeues, 0);
  await fleet.clock.advance(100);
  await Promise.all(hasty);
  t.is(fleet.store.dequeues, 1);
  await fleet.releaseElsewhere(KEY);
  t.is(await later, fleet.clock.now(), "the waiter that left delays nobody");
  await fleet.leftNothing(t, KEY, process, other);
});

test("a key that the queue reserves for a process without waiters goes to the next process", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "1s" }, idle));
  await fleet.clock.settle();
  const later = other.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(500);
  fleet.store.onEnqueue = lostOnTheWay; // The claim does not arrive.
  await fleet.releaseElsewhere(KEY);
  await fleet.clock.advance(600);
  await hasty;
  fleet.store.onEnqueue = undefined;
  const startedAt = fleet.clock.now();
  await fleet.clock.advance(CLAIM_TIME_MS);
  t.true(((await later) ?? Infinity) - startedAt < CLAIM_TIME_MS);
  await fleet.leftNothing(t, KEY, process, other);
});

test("a process that dies in the queue delays the others by no more than the claim time", async (t) => {
  const fleet = new Fleet();
  const dead = new TamperedStore(fleet.memory);
  const [mortal, other] = [fleet.process({ store: dead }), fleet.process()];
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  void mortal.call(KEY, { retryTimes: 1, waitTime: "100s" }, () => t.fail()).catch(() => {});
  await fleet.clock.settle();
  const later = other.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(100);
  dead.onAny = lostOnTheWay;
  dead.onWakeUp = () => {};
  await fleet.releaseElsewhere(KEY);
  const leftAt = fleet.clock.now();
  await fleet.clock.advance(5 * SECOND);
  const waitedMs = ((await later) ?? Infinity) - leftAt;
  t.true(waitedMs <= CLAIM_TIME_MS + SECOND, `${waitedMs} ms`);
});

test("a late grant or ticket of a process that gave up is released", async (t) => {
  for (const command of ["onAcquire", "onEnqueue"] as const) {
    const fleet = new Fleet();
    const process = fleet.process();
    if (command === "onEnqueue") await fleet.acquireElsewhere(KEY, 60 * SECOND);
    const arrival = deferred();
    fleet.store[command] = async (send) => {
      await arrival.promise;
      return await send();
    };
    const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "500ms" }, idle));
    await fleet.clock.advance(SECOND);
    await hasty;
    if (command === "onEnqueue") await fleet.releaseElsewhere(KEY);
    arrival.resolve();
    await fleet.leftNothing(t, KEY, process);
  }
});

test("a late grant goes to the first current waiter", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = replyLate(arrival.promise);
  fleet.store.onEnqueue = lostOnTheWay;
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "500ms" }, idle));
  const storeValue = deferred<string | undefined>();
  const heir = process.call(KEY, {}, (lock) => {
    storeValue.resolve(lock.storeValue);
    return fleet.clock.now();
  });
  await fleet.clock.advance(600);
  await hasty;
  arrival.resolve();
  t.is(await heir, fleet.clock.now(), "the waiter does not wait for its own try, which is still in flight");
  await fleet.clock.advance(SECOND);
  t.not(fleet.store.acquireRequests[0]?.requestId, fleet.store.enqueueRequests[0]?.requestId);
  t.is(await storeValue.promise, fleet.store.acquireRequests[0]?.requestId);
  await fleet.leftNothing(t, KEY, process);
});

test("a ticket that is inherited during the first try does not overstate the remaining time", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = async (send) => {
    await passes(fleet.clock, 100);
    return await send();
  };
  const abandoned = process.lock(KEY, { lockTime: "1s" });
  const asked = abandoned.acquire();
  const { body, running, end } = job();
  let [remainingMs, token]: [number, number | undefined] = [0, undefined];
  const heir = process.call(KEY, { lockTime: "10s", watchdog: false, fencing: true }, async (lock) => {
    remainingMs = lock.remaining();
    token = lock.fencingToken;
    return await body();
  });
  await fleet.clock.advance(50);
  await abandoned.release();
  await fleet.clock.advance(SECOND);
  t.false(await asked);
  await running;
  await fleet.clock.advance(remainingMs - SECOND);
  t.false(await fleet.isFree(KEY), "no other caller can hold the key while the holder trusts its lock");
  t.is(typeof token, "number");
  end();
  await heir;
  await fleet.leftNothing(t, KEY, process);
});

test("the release of a hold that an aborted call took is retried for that call's longer lock time", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = replyLate(arrival.promise);
  fleet.store.onEnqueue = (send) => send();
  fleet.store.onRelease = connectionRefused;
  const controller = new AbortController();
  const gone = t.throwsAsync(process.call(KEY, { lockTime: "10m" }, idle, { signal: controller.signal }));
  const heir = process.call(KEY, { lockTime: "2s" }, (lock) => lock.remaining());
  await fleet.clock.settle();
  controller.abort(new Error("the client went away"));
  await gone;
  arrival.resolve();
  t.is(await heir, 2_000 * 0.99 - 2);
  await fleet.clock.advance(30 * SECOND);
  t.false(await fleet.isFree(KEY));
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(SECOND);
  await fleet.leftNothing(t, KEY, process);
});

test("the first of many unanswered commands is recognized even if too many followed to remember", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = replyLost;
  fleet.store.onEnqueue = connectionRefused;
  const call = process.call(KEY, { lockTime: "10m" }, (lock) => lock.storeValue);
  await fleet.clock.advance(6 * SECOND);
  t.true(fleet.store.acquireRequests.length > 40);
  fleet.store.onEnqueue = (send) => send();
  await fleet.clock.advance(SECOND);
  t.is(await call, fleet.store.acquireRequests[0]?.requestId);
  await fleet.leftNothing(t, KEY, process);
});

test("the release of a hold is retried for as long as an unconfirmed renewal may have extended it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = replyLost;
  fleet.store.onEnqueue = (send) => send();
  fleet.store.onRenew = replyLost;
  const short = t.throwsAsync(process.call(KEY, { lockTime: "2s", retryTimes: 1, waitTime: "500ms" }, idle));
  const long = t.throwsAsync(process.call(KEY, { lockTime: "10m", retryTimes: 1, waitTime: "1500ms" }, idle));
  await fleet.clock.advance(800);
  await short;
  t.is(fleet.store.renewals, 1, "the hold was found and is renewed for the next waiter");
  fleet.store.onRelease = connectionRefused;
  await fleet.clock.advance(SECOND);
  await long;
  await fleet.clock.advance(4 * SECOND);
  t.false(await fleet.isFree(KEY), "the hold was renewed and could not be released");
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(2 * SECOND);
  await fleet.leftNothing(t, KEY, process);
});

test("a hold that is reported by a late reply to a repeated command is released", async (t) => {
  for (const command of ["onAcquire", "onEnqueue"] as const) {
    const fleet = new Fleet();
    const process = fleet.process();
    const arrival = deferred();
    fleet.store.onAcquire = lostOnTheWay;
    fleet.store[command] = async (send) => {
      await arrival.promise;
      await send();
      return await send(); // The client sent it again.
    };
    const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "1500ms" }, idle));
    await fleet.clock.advance(2 * SECOND);
    await hasty;
    arrival.resolve();
    await fleet.leftNothing(t, KEY, process);
  }
});

test("a lock that a late reply grants is held even if a later try failed permanently", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = replyLate(arrival.promise);
  fleet.store.onEnqueue = async () => {
    arrival.resolve();
    await fleet.clock.settle();
    throw new LockMisconfiguredError("NOPERM");
  };
  const call = process.call(KEY, {}, (lock) => lock.remaining() > 0);
  await fleet.clock.advance(2 * SECOND);
  t.true(await call);
  await fleet.leftNothing(t, KEY, process);
});

test("a late second grant of a lock with autoUnlock=false does not free it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = replyLate(arrival.promise);
  fleet.store.onEnqueue = (send) => send();
  const call = process.call(KEY, { autoUnlock: false, lockTime: "20s" }, idle);
  await fleet.clock.advance(1_100);
  t.is(await call, "done");
  arrival.resolve();
  await fleet.clock.settle();
  t.is(fleet.store.releases, 0);
  t.false(await fleet.isFree(KEY));
});

test("two slow commands of one try do not exceed the wait budget", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  fleet.store.onAny = async (send) => {
    await passes(fleet.clock, 490);
    return await send();
  };
  const startedAt = fleet.clock.now();
  const gaveUpAt = fleet
    .process()
    .call(KEY, { retryTimes: 1, waitTime: "500ms" }, idle)
    .then(
      () => 0,
      () => fleet.clock.now(),
    );
  await fleet.clock.advance(5 * SECOND);
  const tookMs = (await gaveUpAt) - startedAt;
  t.true(tookMs >= 500 && tookMs <= 750, `${tookMs} ms`);
});

test("a ticket whose reply was lost is removed when the waiter gives up", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  fleet.store.onEnqueue = replyLost;
  const waiting = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "500ms" }, idle));
  await fleet.clock.advance(500);
  await waiting;
  fleet.store.onEnqueue = undefined;
  await fleet.releaseElsewhere(KEY);
  await fleet.leftNothing(t, KEY, process);
});

test("wake-ups send no second command while one is in flight", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const waiter = process.call(KEY, PATIENT, idle);
  await fleet.clock.settle();
  const arrival = deferred();
  fleet.store.onEnqueue = async (send) => {
    await arrival.promise;
    return await send();
  };
  const place = fleet.store.enqueueRequests.at(-1)?.ticket;
  const before = fleet.store.enqueueRequests.length;
  await fleet.releaseElsewhere(KEY);
  for (let n = 0; n < 5; n += 1) {
    fleet.store.wakeUp(n % 2 === 0 ? place : undefined);
    await fleet.clock.advance(100);
  }
  t.is(fleet.store.enqueueRequests.length, before + 1);
  arrival.resolve();
  t.is(await waiter, "done");
  await fleet.leftNothing(t, KEY, process);
});

test("a waiter that a late reply grants the lock leaves the queue", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  const arrival = deferred();
  fleet.store.onAcquire = replyLate(arrival.promise);
  fleet.store.onEnqueue = (send) => send();
  fleet.store.onRenew = lostOnTheWay; // So that no hold found through the queue is confirmed.
  const { body, running, end } = job();
  const call = process.call(KEY, PATIENT, body);
  await fleet.clock.advance(1_200);
  t.is(fleet.store.enqueueRequests.length, 1);
  arrival.resolve();
  await running;
  await fleet.clock.settle();
  t.is(fleet.store.dequeues, 1);
  fleet.store.onAcquire = (send) => send();
  const startedAt = fleet.clock.now();
  const later = other.call(KEY, PATIENT, () => fleet.clock.now());
  await fleet.clock.advance(10);
  end();
  await call;
  t.is(await later, startedAt + 10, "the queue reserves nothing for a waiter that left");
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(SECOND);
  await fleet.leftNothing(t, KEY, process, other);
});

test("commands of calls that abort in the same tick are not sent", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ store: batching(fleet.store) });
  const controller = new AbortController();
  const keys = ["LOCK_1", "LOCK_2", "LOCK_3"];
  const outcomes = keys.map((key) =>
    t.throwsAsync(process.call(key, {}, () => t.fail(), { signal: controller.signal })),
  );
  controller.abort(new Error("the client went away"));
  await Promise.all(outcomes);
  await fleet.clock.settle();
  t.is(fleet.store.commands, 0);
  t.is(fleet.clock.pendingTimers, 0);
  t.true(process.isIdle);
});
