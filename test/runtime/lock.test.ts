import test from "ava";
import {
  LockClosedError,
  LockLostError,
  LockMisconfiguredError,
  LockUnreachableError,
  LockWaitTimeoutError,
} from "../../runtime/errors";
import type { AcquireRequest } from "../../runtime/store";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { connectionRefused, lostOnTheWay, replyLost } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

/** Runs until somebody says that it may end. */
function job(): { body: () => Promise<string>; running: Promise<void>; end: () => void } {
  const running = deferred();
  const end = deferred();
  const body = async (): Promise<string> => {
    running.resolve();
    await end.promise;
    return "done";
  };
  return { body, running: running.promise, end: end.resolve };
}

const idle = (): Promise<string> => Promise.resolve("done");

/** The last request, as a store asks for it that has no queue for the key. */
function withoutQueue(fleet: Fleet): AcquireRequest {
  const last = fleet.store.waits.at(-1);
  if (last === undefined) throw new Error("Expected somebody to wait");
  return last;
}

// ---- acquire --------------------------------------------------------------------------------------------

test("a free lock is had with one request and given back at the end", async (t) => {
  const fleet = new Fleet();
  t.is(await fleet.process().call(KEY, {}, () => "result"), "result");
  t.is(fleet.store.acquired.length, 1);
  t.is(fleet.store.releases, 1);
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("the requestId is 32 hex characters, and new for each acquisition", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  for (let n = 0; n < 20; n += 1) await process.call(KEY, {}, idle);
  const ids = fleet.store.acquired.map(({ requestId }) => requestId);
  t.true(ids.every((id) => /^[0-9a-f]{32}$/.test(id)));
  t.is(new Set(ids).size, 20);
});

test("the store is asked for the lock time of 30 seconds, or for the one that was said", async (t) => {
  const fleet = new Fleet();
  await fleet.process().call(KEY, {}, idle);
  await fleet.process().call(KEY, { lockTime: "20s" }, idle);
  t.deepEqual(
    fleet.store.acquired.map(({ lockTimeMs }) => lockTimeMs),
    [30_000, 20_000],
  );
});

test("a store that refuses for good ends the wait at once", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = () => Promise.reject(new LockMisconfiguredError("NOAUTH"));
  const process = fleet.process();
  const { locker } = process;
  await t.throwsAsync(process.call(KEY, {}, idle), { instanceOf: LockMisconfiguredError });
  t.is(fleet.store.acquired.length, 1);
  t.true(locker.lines.isEmpty);
  t.is(fleet.clock.pendingTimers, 0);
});

// ---- wait -----------------------------------------------------------------------------------------------

test("by default a waiter checks 3 more times, 5 seconds apart, and then gives up", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const process = fleet.process();
  const outcome = t.throwsAsync(process.call(KEY, {}, idle), {
    instanceOf: LockWaitTimeoutError,
    code: "LOCK_WAIT_TIME_OUT",
    message:
      "LOCK_WAIT_TIME_OUT: LOCK_payOrder_1 is held by another and did not become free within 15000 ms (retryTimes=3, waitTime=5000ms)",
  });
  await fleet.clock.settle();
  // One try, and a place in the queue, which the store hears of every second: so it is not taken for dead.
  const first = fleet.store.acquired.length;
  t.is(first, 2);
  for (let second = 1; second <= 15; second += 1) {
    await fleet.clock.advance(999);
    t.is(fleet.store.acquired.length, first + second - 1);
    await fleet.clock.advance(1);
    t.is(fleet.store.acquired.length, first + second);
  }
  await outcome;
  t.is(fleet.clock.pendingTimers, 0);
  t.true(process.locker.lines.isEmpty);
  await fleet.foreignerLeaves(KEY);
  t.true(await fleet.isForgotten(KEY));
});

test("a waiter checks as often and as far apart as it was told", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const outcome = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 7, waitTime: "100ms" }, idle), {
    instanceOf: LockWaitTimeoutError,
  });
  await fleet.clock.advance(699);
  t.is(fleet.store.acquired.length, 2 + 6);
  await fleet.clock.advance(1);
  t.is(fleet.store.acquired.length, 2 + 7);
  await outcome;
});

for (const options of [{ retryTimes: 0 }, { waitTime: "0ms" }] as const) {
  test(`with ${JSON.stringify(options)} there is one check and no wait`, async (t) => {
    const fleet = new Fleet();
    await fleet.foreignHolder(KEY, 60 * SECOND);
    await t.throwsAsync(fleet.process().call(KEY, options, idle), { instanceOf: LockWaitTimeoutError });
    t.is(fleet.store.acquired.length, 1);
    t.is(fleet.clock.pendingTimers, 0);
    await fleet.foreignerLeaves(KEY);
    t.true(await fleet.isForgotten(KEY), "no place was taken in the queue");
    t.is(await fleet.process().call(KEY, options, idle), "done");
  });
}

test("the failure class of the tag is thrown, with the time-out as its cause", async (t) => {
  class OrderBusyError extends Error {}
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const outcome = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle, OrderBusyError), {
    instanceOf: OrderBusyError,
    message: /^LOCK_WAIT_TIME_OUT: LOCK_payOrder_1 is held by another/,
  });
  const error = await outcome;
  t.true(error?.cause instanceof LockWaitTimeoutError);
});

test("with onFailure skip the body does not run and nothing is returned", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const skipped = fleet.process().call(KEY, { onFailure: "skip" }, () => t.fail());
  await fleet.clock.advance(15 * SECOND);
  t.is(await skipped, undefined);
  t.is(fleet.clock.pendingTimers, 0);
});

test("the error names the function that wanted the lock", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const lock = fleet.process().lock(KEY, { retryTimes: 0 }, "OrderService.pay");
  t.false(await lock.acquire());
  await t.throwsAsync(lock.retryCheck(), { message: /LOCK_payOrder_1 \(OrderService\.pay\) is held/ });
});

test("a waiter is woken by the release, long before its next check", async (t) => {
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

test("a wake-up in vain uses up no check", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const outcome = t.throwsAsync(fleet.process().call(KEY, {}, idle), { instanceOf: LockWaitTimeoutError });
  await fleet.clock.settle();
  for (let race = 0; race < 10; race += 1) {
    const before = fleet.store.acquired.length;
    fleet.store.hint(undefined);
    await fleet.clock.advance(100);
    t.is(fleet.store.acquired.length, before + 1, "it looked, and somebody else had been faster");
  }
  let isOver = false;
  void outcome.then(() => (isOver = true));
  await fleet.clock.advance(13_999);
  t.false(isOver);
  await fleet.clock.advance(1);
  await outcome;
});

test("a release between a try and the place in the queue is not missed", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  fleet.store.onWait = async (send) => {
    await fleet.foreignerLeaves(KEY);
    return await send();
  };
  t.is(await fleet.process().call(KEY, {}, idle), "done"); // No time passes here.
});

test("a release while a try is under way is not missed", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  fleet.store.onWait = async (send) => {
    const reply = await send();
    await fleet.foreignerLeaves(KEY); // After the store has refused, before the waiter knows.
    return reply;
  };
  t.is(await fleet.process().call(KEY, {}, idle), "done"); // No time passes here.
});

test("waiting goes on without hints, and hears again later", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  fleet.store.onHint = () => {}; // It is lost.
  const waiter = fleet.process().call(KEY, {}, idle);
  await fleet.clock.advance(100);
  await fleet.foreignerLeaves(KEY);
  await fleet.clock.advance(899);
  t.false(await fleet.isFree(KEY), "the queue keeps it for the waiter");
  await fleet.clock.advance(1);
  t.is(await waiter, "done");

  await fleet.foreignHolder(KEY, 60 * SECOND);
  const next = fleet.process().call(KEY, {}, idle);
  await fleet.clock.advance(100);
  fleet.store.onHint = (deliver) => deliver();
  await fleet.foreignerLeaves(KEY);
  t.is(await next, "done"); // No time passes here.
});

test("a place that is taken after everybody has left is given up", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const slow = deferred();
  fleet.store.onWait = async (send) => {
    await slow.promise;
    return await send();
  };
  const waiter = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 1, waitTime: "1s" }, idle));
  await fleet.clock.advance(SECOND);
  await waiter;
  slow.resolve();
  await fleet.clock.settle();
  await fleet.foreignerLeaves(KEY);
  t.true(await fleet.isForgotten(KEY));
});

test("the crash of a foreign holder is noticed when its time to live ends, before the next check", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 1_234);
  const waiter = fleet.process().call(KEY, {}, () => fleet.clock.now());
  const startedAt = fleet.clock.now();
  await fleet.clock.advance(5 * SECOND);
  t.is((await waiter) ?? 0, startedAt + 1_234);
});

// ---- the line in this process ---------------------------------------------------------------------------

test("in one process it is first come, first served", async (t) => {
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

test("a crowd in one process costs the store less than one caller at a time", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await Promise.all(Array.from({ length: 100 }, () => process.call(KEY, {}, idle)));
  t.is(fleet.store.acquired.length, 1, "no request in vain");
  t.is(fleet.store.releases, 2, "one for each 64 who came one after the other");
  t.is(fleet.store.commands, 3);
  t.true(await fleet.isForgotten(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("only the first of those who wait in one process asks the store", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const outcomes = Array.from({ length: 20 }, () =>
    t.throwsAsync(process.call(KEY, {}, idle), { instanceOf: LockWaitTimeoutError }),
  );
  await fleet.clock.advance(14_999);
  t.is(new Set(fleet.store.acquired.map(({ requestId }) => requestId)).size, 1);
  await fleet.clock.advance(SECOND);
  await Promise.all(outcomes);
  t.is(fleet.clock.pendingTimers, 0);
  await fleet.foreignerLeaves(KEY);
  t.true(await fleet.isForgotten(KEY));
});

test("when the first in line gives up, the next takes its place", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "1s" }, idle));
  const patient = process.call(KEY, {}, idle);
  await fleet.clock.advance(2 * SECOND);
  await hasty;
  await fleet.foreignerLeaves(KEY);
  t.is(await patient, "done");
});

test("one that gives up from the middle of the line leaves the others in order", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const order: string[] = [];
  const first = process.call(KEY, {}, () => order.push("first"));
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "1s" }, idle));
  const third = process.call(KEY, {}, () => order.push("third"));
  await fleet.clock.advance(2 * SECOND);
  await hasty;
  await fleet.foreignerLeaves(KEY);
  await Promise.all([first, third]);
  t.deepEqual(order, ["first", "third"]);
});

test("one that leaves the line without having waited wakes the next", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const abandoned = process.lock(KEY);
  await fleet.foreignHolder(KEY, 60 * SECOND);
  t.false(await abandoned.acquire());
  const next = process.call(KEY, {}, idle);
  await fleet.clock.settle();
  await fleet.foreignerLeaves(KEY);
  await abandoned.release();
  t.is(await next, "done");
});

test("a local waiter gets in when the local holder's lock has run out, though its body still runs", async (t) => {
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

test("a holder that ends late does not push aside the one that holds after it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [late, next] = [job(), job()];
  const overdue = t.throwsAsync(process.call(KEY, { watchdog: false, lockTime: "2s" }, late.body));
  await late.running;
  const holder = process.call(KEY, {}, next.body);
  await fleet.clock.advance(2 * SECOND);
  await next.running;
  const asked = fleet.store.acquired.length;
  const third = process.call(KEY, {}, idle);
  late.end();
  await overdue;
  await fleet.clock.settle();
  t.is(fleet.store.acquired.length, asked, "the third knows that the second holds the lock");
  next.end();
  await Promise.all([holder, third]);
  t.is(fleet.clock.pendingTimers, 0);
});

// ---- hold and renew -------------------------------------------------------------------------------------

test("the watchdog renews at a third of the lock time, as long as the body takes", async (t) => {
  const fleet = new Fleet();
  const { body, running, end } = job();
  const holder = fleet.process().call(KEY, { lockTime: "30s" }, body);
  await running;
  await fleet.clock.advance(9_999);
  t.is(fleet.store.renewals, 0);
  await fleet.clock.advance(1);
  t.is(fleet.store.renewals, 1);
  await fleet.clock.advance(290 * SECOND);
  t.is(fleet.store.renewals, 30);
  t.false(await fleet.isFree(KEY));
  end();
  t.is(await holder, "done");
});

test("after the release the watchdog is gone for good", async (t) => {
  const fleet = new Fleet();
  await fleet.process().call(KEY, {}, idle);
  t.is(fleet.clock.pendingTimers, 0);
  await fleet.clock.advance(300 * SECOND);
  t.is(fleet.store.renewals, 0);
});

test("a renewal that is under way at the release changes nothing any more", async (t) => {
  const fleet = new Fleet();
  const { body, running, end } = job();
  const arrival = deferred();
  fleet.store.onRenew = async (send) => {
    await arrival.promise;
    return await send();
  };
  const holder = fleet.process().call(KEY, {}, body);
  await running;
  await fleet.clock.advance(10 * SECOND);
  end();
  t.is(await holder, "done");
  arrival.resolve();
  await fleet.clock.settle();
  t.is(fleet.clock.pendingTimers, 0);
  t.true(await fleet.isFree(KEY));
  t.deepEqual(fleet.warnings, []);
});

test("a renewal without a reply is tried again soon, and the lock is kept", async (t) => {
  const fleet = new Fleet();
  const { body, running, end } = job();
  fleet.store.onRenew = lostOnTheWay;
  const holder = fleet.process().call(KEY, { lockTime: "30s" }, body);
  await running;
  await fleet.clock.advance(12 * SECOND);
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(300 * SECOND);
  end();
  t.is(await holder, "done");
  t.deepEqual(fleet.warnings, []);
});

test("without the watchdog the lock runs out, and the release says so", async (t) => {
  const fleet = new Fleet();
  const { body, running, end } = job();
  const holder = t.throwsAsync(fleet.process().call(KEY, { watchdog: false, lockTime: "20s" }, body), {
    instanceOf: LockLostError,
    message: /the lock was lost before its work was done \(expired\); somebody else may have worked/,
  });
  await running;
  await fleet.clock.advance(20 * SECOND);
  t.is(fleet.store.renewals, 0);
  t.true(await fleet.isFree(KEY));
  end();
  await holder;
});

test("with autoUnlock off, the key is left to expire", async (t) => {
  const fleet = new Fleet();
  t.is(await fleet.process().call(KEY, { autoUnlock: false, lockTime: "20s" }, idle), "done");
  t.is(fleet.store.releases, 0);
  t.is(fleet.clock.pendingTimers, 0);
  await fleet.clock.advance(19_999);
  t.false(await fleet.isFree(KEY));
  await fleet.clock.advance(1);
  t.true(await fleet.isFree(KEY));
});

test("with autoUnlock off, a local waiter waits for the key and not only for the body", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const startedAt = fleet.clock.now();
  await process.call(KEY, { autoUnlock: false, lockTime: "2s" }, idle);
  const waiter = process.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(5 * SECOND);
  t.is(await waiter, startedAt + 2 * SECOND);
});

test("the holder is sure of the lock for less than its time to live, and counts from before the send", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = async (send) => {
    await passes(300);
    return await send();
  };
  const passes = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      fleet.clock.after(ms, resolve);
    });
  const remaining = fleet.process().call(KEY, { lockTime: "10s" }, (lock) => lock.remaining());
  await fleet.clock.advance(300);
  const ms = await remaining;
  t.true(ms !== undefined && ms <= 10_000 * 0.99 - 300, `${ms} ms`);
  t.true(ms !== undefined && ms > 10_000 * 0.98 - 300, `${ms} ms`);
});

test("a grant whose reply took the whole lock time is no grant", async (t) => {
  const fleet = new Fleet();
  let slow = true;
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    if (slow) fleet.clock.freeze(500);
    slow = false;
    return reply;
  };
  const call = fleet.process().call(KEY, { lockTime: "500ms" }, (lock) => {
    lock.assertHeld();
    return "done";
  });
  await fleet.clock.advance(SECOND);
  t.is(await call, "done");
  t.deepEqual(fleet.warnings, []);
  t.true(await fleet.isFree(KEY));
});

test("no release is on its way to the store when the same request asks again", async (t) => {
  const fleet = new Fleet();
  let slow = true;
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    if (slow) fleet.clock.freeze(500);
    slow = false;
    return reply;
  };
  // A release that arrives late would end the lock that the second request got.
  fleet.store.onRelease = async (send) => {
    await new Promise<void>((resolve) => {
      fleet.clock.after(200, resolve);
    });
    return await send();
  };
  const { body, running, end } = job();
  const call = fleet.process().call(KEY, { lockTime: "500ms", watchdog: false }, body);
  await fleet.clock.advance(100);
  await running;
  await fleet.clock.advance(300);
  t.false(await fleet.isFree(KEY));
  fleet.store.onRelease = (send) => send();
  end();
  t.is(await call, "done");
});

test("a process that stood still for longer than its lock knows at once that it lost it", async (t) => {
  const fleet = new Fleet();
  await fleet
    .process()
    .call(KEY, { lockTime: "10s" }, (lock) => {
      const { signal } = lock;
      t.notThrows(() => lock.assertHeld());
      fleet.clock.freeze(10 * SECOND); // No timer has run.
      t.is(lock.remaining(), 0);
      t.throws(() => lock.assertHeld(), {
        instanceOf: LockLostError,
        message: "LOCK_payOrder_1 is not held: its deadline passed",
      });
      t.false(signal.aborted);
      throw new Error("enough");
    })
    .catch(() => {});
});

for (const [told, taken] of [
  ["its key expired", false],
  ["somebody else holds it", true],
] as const) {
  test(`a lock that is gone because ${told} is told by signal, assertHeld and release`, async (t) => {
    const fleet = new Fleet();
    const aborted = deferred<unknown>();
    const holder = fleet.process().call(KEY, {}, async (lock) => {
      lock.signal.addEventListener("abort", () => aborted.resolve(lock.signal.reason));
      await fleet.memory.release(KEY, lock.requestId);
      if (taken) await fleet.foreignHolder(KEY, 60 * SECOND);
      const reason = await aborted.promise;
      t.true(reason instanceof LockLostError);
      t.is((reason as Error).message, `LOCK_payOrder_1 is no longer held: ${told}`);
      t.throws(() => lock.assertHeld(), { instanceOf: LockLostError, message: new RegExp(told) });
      t.is(lock.remaining(), 0);
      t.true(lock.signal.aborted);
    });
    const outcome = t.throwsAsync(holder, { instanceOf: LockLostError, message: new RegExp(told) });
    await fleet.clock.advance(10 * SECOND);
    await outcome;
    t.is(fleet.clock.pendingTimers, 0);
    t.regex(fleet.warnings.join("\n"), new RegExp(`lost the lock: ${told}`));
  });
}

test("while no renewal gets through, the signal aborts at the deadline and not later", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRenew = lostOnTheWay;
  const startedAt = fleet.clock.now();
  const holder = fleet.process().call(KEY, { lockTime: "10s" }, (lock) => {
    const aborted = deferred<number>();
    lock.signal.addEventListener("abort", () => aborted.resolve(fleet.clock.now()));
    return aborted.promise;
  });
  const outcome = t.notThrowsAsync(holder, "the key was still there when it was released");
  await fleet.clock.advance(9_899 + 1);
  await outcome;
  t.true(((await holder) ?? 0) < startedAt + 10 * SECOND);
  t.true(((await holder) ?? 0) >= startedAt + 9.8 * SECOND);
});

test("without the watchdog, too, the signal aborts at the deadline", async (t) => {
  const fleet = new Fleet();
  const aborted = deferred();
  const holder = fleet.process().call(KEY, { lockTime: "10s", watchdog: false }, async (lock) => {
    lock.signal.addEventListener("abort", () => aborted.resolve());
    await aborted.promise;
    t.true(lock.signal.reason instanceof LockLostError);
  });
  const outcome = t.notThrowsAsync(holder);
  await fleet.clock.advance(10 * SECOND - 1);
  await outcome;
  t.is(fleet.clock.pendingTimers, 0);
});

test("a signal that was asked for leaves no timer behind", async (t) => {
  const fleet = new Fleet();
  await fleet.process().call(KEY, { watchdog: false }, (lock) => t.false(lock.signal.aborted));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a signal that is first asked for after the end is aborted", async (t) => {
  const fleet = new Fleet();
  const lock = await fleet.process().call(KEY, {}, (held) => held);
  t.true(lock?.signal.aborted);
  t.throws(() => lock?.assertHeld(), { message: "LOCK_payOrder_1 is not held: it was released" });
});

test("with fencing the holder has a token, which rises with each holder", async (t) => {
  const fleet = new Fleet();
  const tokens: (number | undefined)[] = [];
  for (let n = 0; n < 3; n += 1) {
    await fleet.process().call(KEY, { fencing: true }, (lock) => tokens.push(lock.fencingToken));
  }
  t.is(new Set(tokens).size, 3);
  t.true(tokens.every((token) => typeof token === "number"));
  await fleet.process().call(KEY, {}, (lock) => t.is(lock.fencingToken, undefined));
});

// ---- release --------------------------------------------------------------------------------------------

test("the body's own error goes before the loss of the lock, which is warned of", async (t) => {
  const fleet = new Fleet();
  const boom = new Error("boom");
  const error = await t.throwsAsync(
    fleet.process().call(KEY, {}, async (lock) => {
      await fleet.memory.release(KEY, lock.requestId);
      throw boom;
    }),
  );
  t.is(error, boom);
  t.regex(fleet.warnings.join("\n"), /the lock was lost before its work was done \(expired\)/);
});

test("a body that throws undefined fails with undefined", async (t) => {
  const fleet = new Fleet();
  const outcome = fleet.process().call(KEY, {}, async (lock) => {
    await fleet.memory.release(KEY, lock.requestId);
    // oxlint-disable-next-line typescript/only-throw-error -- Code out there does it.
    throw undefined;
  });
  t.deepEqual(
    await outcome.then(
      () => "success",
      (error: unknown) => ["failure", error],
    ),
    ["failure", undefined],
  );
});

test("a body's error stands when the release cannot be sent", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = connectionRefused;
  await t.throwsAsync(
    fleet.process().call(KEY, {}, () => Promise.reject(new Error("boom"))),
    { message: "boom" },
  );
});

test("a body's success stands when the reply to the release is lost, and it is warned of", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = replyLost;
  const call = fleet.process().call(KEY, {}, () => "result");
  await fleet.clock.advance(SECOND);
  t.is(await call, "result");
  t.regex(
    fleet.warnings.join("\n"),
    /the release was not confirmed \(no reply from the store within 1000 ms\)/,
  );
  t.is(fleet.clock.pendingTimers, 0);
});

test("when the lock's deadline has passed and the release has no reply, the lock counts as lost", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = connectionRefused;
  const error = await t.throwsAsync(
    fleet.process().call(KEY, {}, () => fleet.clock.freeze(30 * SECOND)),
    { instanceOf: LockLostError },
  );
  t.like(error, { cause: { message: "connect ECONNREFUSED" } });
});

test("a lock that was late but still there at its release was held all the time", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRenew = replyLost; // The store knows of the renewals, the holder does not.
  const { body, running, end } = job();
  const holder = fleet.process().call(KEY, { lockTime: "10s" }, body);
  await running;
  await fleet.clock.advance(12 * SECOND);
  t.regex(fleet.warnings.join("\n"), /lost the lock: its deadline passed before a renewal succeeded/);
  end();
  t.is(await holder, "done");
});

test("a second release does nothing", async (t) => {
  const fleet = new Fleet();
  await fleet.process().call(KEY, {}, async (lock) => {
    await lock.release();
    await fleet.foreignHolder(KEY, 60 * SECOND);
  });
  t.is(fleet.store.releases, 1);
  t.false(await fleet.isFree(KEY));
});

test("from the moment of its release, the lock is not held any more", async (t) => {
  const fleet = new Fleet();
  const arrival = deferred();
  fleet.store.onRelease = async (send) => {
    await arrival.promise;
    return await send();
  };
  const lock = fleet.process().lock(KEY);
  t.true(await lock.acquire());
  const released = lock.release();
  await fleet.clock.settle();
  t.is(lock.remaining(), 0);
  t.throws(() => lock.assertHeld(), { instanceOf: LockLostError });
  arrival.resolve();
  await released;
});

// ---- a bad network --------------------------------------------------------------------------------------

test("a lost reply to an acquire is not a lost lock: the same request finds it again", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  const { body, running, end } = job();
  let remainingMs = Infinity;
  const call = fleet.process().call(KEY, { lockTime: "30s", watchdog: false }, async (lock) => {
    remainingMs = lock.remaining();
    return await body();
  });
  await fleet.clock.settle();
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(1_100);
  await running;
  t.is(fleet.store.acquired[0]?.requestId, fleet.store.acquired[1]?.requestId);
  t.true(remainingMs <= 30_000 * 0.99, "it counts from the try that claimed it");
  await fleet.clock.advance(remainingMs);
  t.false(await fleet.isFree(KEY), "the store keeps it for longer than the holder is sure of it");
  end();
  // The first try may have been carried out, too: that the key is still ours does not prove that it always was.
  await t.throwsAsync(call, { instanceOf: LockLostError, message: /\(its deadline passed\)/ });
  t.true(await fleet.isForgotten(KEY));
});

test("where a store finds a lock again and does not prolong it, it counts from the try that was granted", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  const remaining = fleet.process().call(KEY, { lockTime: "30s" }, (lock) => lock.remaining());
  await fleet.clock.settle();
  fleet.store.onAcquire = (send) => send();
  fleet.store.onWait = () => fleet.memory.acquire(withoutQueue(fleet)); // As in a cluster, for some keys.
  await fleet.clock.advance(1_100);
  const ms = await remaining;
  t.true(ms !== undefined && ms <= 30_000 * 0.99 - 1_100, `${ms} ms`);
  t.true(await fleet.isFree(KEY));
});

test("a try that comes to the store after a later one was refused does not prolong the lock", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const [arrival, withheld] = [deferred(), deferred<never>()];
  fleet.store.onAcquire = async (send) => {
    await arrival.promise;
    await send(); // Granted: and the reply is lost.
    return await withheld.promise;
  };
  fleet.store.onWait = async () => ({
    ...(await fleet.memory.acquire(withoutQueue(fleet))),
    freeInMs: undefined,
  });
  const remaining = fleet.process().call(KEY, { lockTime: "10s" }, (lock) => lock.remaining());
  await fleet.clock.advance(1_150);
  t.is(fleet.store.waits.length, 1, "which was refused");
  await fleet.foreignerLeaves(KEY);
  arrival.resolve();
  await fleet.clock.advance(SECOND);
  t.is(fleet.store.waits.length, 2, "which finds what the first was granted almost a second ago");
  const ms = await remaining;
  t.true(ms !== undefined && ms <= 10_000 * 0.99 - 950, `${ms} ms`);
});

test("a lost reply from before the last refusal does not shorten the lock that is had later", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 10 * SECOND);
  fleet.store.onAcquire = lostOnTheWay;
  const startedAt = fleet.clock.now();
  const call = fleet.process().call(KEY, { lockTime: "8s" }, () => fleet.clock.now());
  await fleet.clock.advance(SECOND);
  fleet.store.onAcquire = (send) => send(); // Refused: the foreigner holds the key.
  await fleet.clock.advance(8_900);
  fleet.store.onAcquire = replyLost; // Granted, at 10 s, and nobody here knows.
  await fleet.clock.advance(500);
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(5 * SECOND);
  const inAfterMs = ((await call) ?? 0) - startedAt;
  t.true(inAfterMs >= 10 * SECOND && inAfterMs < 12 * SECOND, `${inAfterMs} ms`);
});

test("a grant that arrives after the waiter gave up is given back", async (t) => {
  const fleet = new Fleet();
  const arrival = deferred();
  fleet.store.onAcquire = async (send) => {
    await arrival.promise;
    return await send();
  };
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 1, waitTime: "500ms" }, idle), {
    instanceOf: LockUnreachableError,
  });
  await fleet.clock.advance(SECOND);
  await call;
  arrival.resolve(); // Only now the store hears of it.
  await fleet.clock.settle();
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a grant without a reply is given back when the waiter gives up", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle), {
    instanceOf: LockUnreachableError,
  });
  await fleet.clock.advance(200);
  await call;
  await fleet.clock.settle();
  t.true(await fleet.isFree(KEY));
});

test("an unreachable store is told as such, within the wait budget", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  fleet.store.onLeave = connectionRefused;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 2, waitTime: "1s" }, idle), {
    instanceOf: LockUnreachableError,
    message:
      "LOCK_payOrder_1: the store could not be asked within 2000 ms (retryTimes=2, waitTime=1000ms): connect ECONNREFUSED",
  });
  await fleet.clock.advance(2 * SECOND);
  t.like(await call, { cause: { message: "connect ECONNREFUSED" } });
  t.is(fleet.clock.pendingTimers, 0);
});

test("a store that never answers is given up shortly after the wait budget", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = lostOnTheWay;
  fleet.store.onLeave = lostOnTheWay;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 2, waitTime: "1s" }, idle), {
    instanceOf: LockUnreachableError,
  });
  await fleet.clock.advance(2_200);
  await call;
  t.is(fleet.clock.pendingTimers, 0);
});

test("a store that comes back within the wait budget serves the waiter", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  const call = fleet.process().call(KEY, {}, idle);
  await fleet.clock.advance(7 * SECOND);
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(100);
  t.is(await call, "done");
});

test("an unreachable store is not taken for a busy lock: nothing is skipped, no own error is thrown", async (t) => {
  class OrderBusyError extends Error {}
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  const wait = { retryTimes: 1, waitTime: "1s" } as const;
  const skipping = fleet.process().call(KEY, { ...wait, onFailure: "skip" }, idle);
  const throwing = fleet.process().call(KEY, wait, idle, OrderBusyError);
  const outcomes = [skipping, throwing].map((call) =>
    t.throwsAsync(call, { instanceOf: LockUnreachableError }),
  );
  await fleet.clock.advance(2 * SECOND);
  await Promise.all(outcomes);
});

test("those who stand in line behind the one that cannot reach the store learn that it is unreachable", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = connectionRefused;
  const wait = { retryTimes: 1, waitTime: "1s", onFailure: "skip" } as const;
  const outcomes = Array.from({ length: 5 }, () =>
    t.throwsAsync(process.call(KEY, wait, idle), { instanceOf: LockUnreachableError }),
  );
  await fleet.clock.advance(2 * SECOND);
  await Promise.all(outcomes);
  t.is(fleet.clock.pendingTimers, 0);
});

test("a store that rejects with nothing at all is unreachable, too", async (t) => {
  const fleet = new Fleet();
  // oxlint-disable-next-line typescript/prefer-promise-reject-errors, unicorn/no-useless-undefined -- Code out there does it.
  fleet.store.onAcquire = () => Promise.reject(undefined);
  await t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle), {
    instanceOf: LockUnreachableError,
    message: /: undefined$/,
  });
});

test("a store that throws instead of rejecting is a store that fails", async (t) => {
  const fleet = new Fleet();
  const fail = (): never => {
    throw new Error("not a promise");
  };
  fleet.store.onAcquire = fail;
  fleet.store.onRelease = fail;
  fleet.store.onLeave = fail;
  await t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle), {
    instanceOf: LockUnreachableError,
    message: /not a promise/,
  });
  fleet.store.onAcquire = (send) => send();
  t.is(await fleet.process().call(KEY, {}, () => "result"), "result");
  t.regex(fleet.warnings.join("\n"), /the release was not confirmed \(not a promise\)/);

  await fleet.foreignHolder("other", 60 * SECOND);
  fleet.store.onWait = fail;
  const waiter = fleet.process().call("other", {}, idle);
  await fleet.clock.settle();
  await fleet.foreignerLeaves("other");
  fleet.store.onWait = undefined;
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(5 * SECOND);
  t.is(await waiter, "done");
  t.is(fleet.clock.pendingTimers, 0);
});

test("a command that is answered by its deadline leaves no timer", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY, { watchdog: false });
  await lock.acquire();
  t.is(fleet.clock.pendingTimers, 0);
  await lock.release();
  t.is(fleet.clock.pendingTimers, 0);
});

// ---- the logger, and the end ----------------------------------------------------------------------------

test("a logger that throws costs nobody the lock", async (t) => {
  const fleet = new Fleet();
  const complain = (): never => {
    throw new Error("disk full");
  };
  const process = fleet.process({ logger: { debug: complain, warn: complain } });
  await fleet.foreignHolder(KEY, SECOND);
  const waiter = process.call(KEY, {}, () => "result");
  await fleet.clock.advance(SECOND);
  t.is(await waiter, "result");
  t.true(await fleet.isFree(KEY));
  fleet.store.onRelease = connectionRefused;
  t.is(await process.call(KEY, {}, () => "result"), "result");
  t.is(fleet.clock.pendingTimers, 0);
});

test("the time line is told to a logger that wants it", async (t) => {
  const fleet = new Fleet();
  const lines: string[] = [];
  const logger = { debug: (line: string) => void lines.push(line), warn: () => t.fail() };
  await fleet.foreignHolder(KEY, SECOND);
  const call = fleet.process({ logger }).call(KEY, {}, (lock) => lock.requestId);
  await fleet.clock.advance(SECOND);
  const id = (await call)?.slice(0, 8);
  t.deepEqual(lines, [
    `LOCK_payOrder_1 ${id} waits`,
    `LOCK_payOrder_1 ${id} holds the lock after 1000 ms`,
    `LOCK_payOrder_1 ${id} released after 0 ms`,
  ]);
});

test("once closing has begun no lock is given, and one that is granted meanwhile is given back", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await arrival.promise;
    return reply;
  };
  const call = t.throwsAsync(process.call(KEY, {}, idle), { instanceOf: LockClosedError });
  await fleet.clock.settle();
  process.locker.lines.close();
  arrival.resolve();
  await call;
  await fleet.clock.settle();
  t.true(await fleet.isFree(KEY));
  await t.throwsAsync(process.call(KEY, {}, idle), { instanceOf: LockClosedError });
  t.is(fleet.clock.pendingTimers, 0);
});

test("a lock is one acquisition: once released it is not to be had again", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY);
  t.true(await lock.acquire());
  await lock.release();
  await t.throwsAsync(lock.acquire(), {
    instanceOf: LockLostError,
    message: /is not held: it was released$/,
  });
  await t.throwsAsync(lock.retryCheck(), { instanceOf: LockLostError });
  await lock.release();
  t.true(await fleet.isForgotten(KEY));
});

test("a lock that is released while it waits gives up its place, and does not wait on", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const lock = fleet.process().lock(KEY);
  t.false(await lock.acquire());
  const waiting = t.throwsAsync(lock.retryCheck(), { instanceOf: LockLostError });
  await lock.release();
  await waiting;
  await fleet.foreignerLeaves(KEY);
  await fleet.clock.settle();
  t.true(await fleet.isForgotten(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a reply that took most of the lock time leaves time for the first renewal", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await new Promise<void>((resolve) => fleet.clock.after(450, resolve));
    return reply;
  };
  const lock = fleet.process().lock(KEY, { lockTime: "600ms" });
  const acquired = lock.acquire();
  await fleet.clock.advance(450);
  t.true(await acquired);
  const { signal } = lock;
  await fleet.clock.advance(SECOND);
  t.false(signal.aborted);
  t.true(lock.remaining() > 0);
  await lock.release();
  t.is(fleet.clock.pendingTimers, 0);
});

test("who waits behind a body that outlasts a lock without a watchdog has the lock when that is over", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = async (send) => {
    await new Promise<void>((resolve) => fleet.clock.after(10, resolve));
    return await send();
  };
  const process = fleet.process();
  const short = { lockTime: "200ms", watchdog: false } as const;
  const outlasting = t.throwsAsync(
    process.call(KEY, short, () => new Promise<void>((resolve) => fleet.clock.after(3 * SECOND, resolve))),
    { instanceOf: LockLostError },
  );
  const startedAt = fleet.clock.now();
  const next = process.call(KEY, {}, () => fleet.clock.now() - startedAt);
  await fleet.clock.advance(5 * SECOND);
  t.true(((await next) ?? Infinity) < 300);
  await outlasting;
});

test("a release that never arrived is sent once more, so the key does not stay for its lock time", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = (send) => {
    fleet.store.onRelease = () => send();
    return lostOnTheWay();
  };
  const call = fleet.process({ commandTimeout: "1s" }).call(KEY, {}, idle);
  await fleet.clock.advance(SECOND);
  t.is(await call, "done");
  t.is(fleet.store.releases, 2);
  t.true(await fleet.isForgotten(KEY));
});
