import test from "ava";
import { LockLostError, LockUnreachableError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { connectionRefused, lostOnTheWay, replyLost } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a lock whose acquire reply was lost counts only after its hold is found and renewed", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  const { body, running, end } = job();
  let remainingMs = Infinity;
  let storeValue: unknown;
  const call = fleet.process().call(KEY, { lockTime: "30s", watchdog: false }, async (lock) => {
    remainingMs = lock.remaining();
    ({ storeValue } = lock);
    return await body();
  });
  await fleet.clock.settle();
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(1_100);
  await running;
  t.deepEqual(fleet.store.renewed, [1]);
  t.not(
    fleet.store.acquireRequests[0]?.requestId,
    fleet.store.acquireRequests[1]?.requestId,
    "each command has its own request ID",
  );
  t.is(storeValue, fleet.store.acquireRequests[0]?.requestId);
  t.is(storeValue, await fleet.valueOf(KEY));
  t.true(remainingMs <= 30_000 * 0.99, "the lock time counts from the renewal");
  await fleet.clock.advance(remainingMs);
  t.false(await fleet.isFree(KEY), "the store keeps the key for longer than the holder trusts it");
  end();
  // The first command may run once more, so finding our value in the key does not prove that we always held it.
  await t.throwsAsync(call, { instanceOf: LockLostError, message: /\(its deadline passed\)/ });
  t.true(await fleet.isForgotten(KEY));
});

test("a hold that is found but cannot be renewed does not count", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  fleet.store.onRenew = connectionRefused;
  const waiting = t.throwsAsync(
    fleet.process().call(KEY, { lockTime: "30s", retryTimes: 3, waitTime: "1s" }, () => t.fail()),
    { instanceOf: LockUnreachableError, message: /: connect ECONNREFUSED$/ },
  );
  await fleet.clock.settle();
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(3_200);
  await waiting;
  t.true(fleet.store.renewals > 0);
  await fleet.leftNothing(t, KEY);
});

test("a hold that was found, but is gone at its renewal, is acquired again", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  const held = fleet.process().call(KEY, { lockTime: "30s" }, (lock) => ({
    remainingMs: lock.remaining(),
    storeValue: lock.storeValue,
  }));
  await fleet.clock.settle();
  fleet.store.onAcquire = (send) => send();
  fleet.store.onRenew = async (send) => {
    await fleet.endHold(KEY); // Deleted between the reply that found it and the renewal.
    return await send();
  };
  await fleet.clock.advance(1_100);
  t.deepEqual(await held, {
    remainingMs: 30_000 * 0.99 - 2,
    storeValue: fleet.store.acquireRequests.at(-1)?.requestId,
  });
  t.is(fleet.store.renewals, 1);
  await fleet.leftNothing(t, KEY);
});

test("a try that reaches the store late does not count as a grant of a later try", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const [arrival, withheld] = [deferred(), deferred<never>()];
  fleet.store.onAcquire = async (send) => {
    await arrival.promise;
    await send(); // Granted, but the reply is lost.
    return await withheld.promise;
  };
  fleet.store.onEnqueue = async () => {
    const request = fleet.store.enqueueRequests.at(-1);
    if (request === undefined) throw new Error("Expected a waiter");
    const reply = await fleet.memory.acquire(request, SECOND); // Like a store that has no queue for the key.
    return reply.acquired ? reply : { ...reply, freeInMs: undefined };
  };
  fleet.store.onRenew = async (send) => {
    await passes(fleet.clock, 300);
    return await send();
  };
  const process = fleet.process();
  const { body, running, end } = job();
  let remainingMs = 0;
  const call = process.call(KEY, { lockTime: "10s", watchdog: false }, async (lock) => {
    remainingMs = lock.remaining();
    return await body();
  });
  await fleet.clock.advance(1_150);
  t.is(fleet.store.enqueueRequests.length, 1, "the second try was refused");
  await fleet.releaseElsewhere(KEY);
  arrival.resolve();
  await fleet.clock.advance(SECOND);
  t.is(
    fleet.store.enqueueRequests.length,
    2,
    "the third try finds the hold that the first was granted almost a second ago",
  );
  await fleet.clock.advance(300);
  await running;
  t.is(remainingMs, 10_000 * 0.99 - 2 - 300, "the lock time counts from the renewal that found the hold");
  end();
  await call;
  await fleet.leftNothing(t, KEY, process);
});

test("a lost reply from before the last refusal does not shorten a later lock", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 10 * SECOND);
  fleet.store.onAcquire = lostOnTheWay;
  const startedAt = fleet.clock.now();
  let remainingMs = 0;
  const call = fleet.process().call(KEY, { lockTime: "8s" }, (lock) => {
    remainingMs = lock.remaining();
    return fleet.clock.now();
  });
  await fleet.clock.advance(SECOND);
  fleet.store.onAcquire = (send) => send(); // Refused: the foreigner holds the key.
  await fleet.clock.advance(8_900);
  fleet.store.onAcquire = replyLost; // Granted at 10 s, but the reply is lost.
  await fleet.clock.advance(500);
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(5 * SECOND);
  const inAfterMs = ((await call) ?? 0) - startedAt;
  t.true(inAfterMs >= 10 * SECOND && inAfterMs < 12 * SECOND, `${inAfterMs} ms`);
  t.is(remainingMs, 8_000 * 0.99 - 2, "the lock time counts from the renewal that found the hold");
});

test("a grant that arrives after the waiter gave up is released", async (t) => {
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
  arrival.resolve(); // The command reaches the store only now.
  await fleet.clock.settle();
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a grant whose reply is lost is released when the waiter gives up", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle), {
    instanceOf: LockUnreachableError,
  });
  await fleet.clock.advance(SECOND);
  await call;
  await fleet.clock.settle();
  t.true(await fleet.isFree(KEY));
});

test("an unreachable store is reported within the wait budget", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  fleet.store.onDequeue = connectionRefused;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 2, waitTime: "1s" }, idle), {
    instanceOf: LockUnreachableError,
    message:
      "LOCK_payOrder_1: the store did not grant the lock within 2000 ms (retryTimes=2, waitTime=1000ms): connect ECONNREFUSED",
  });
  await fleet.clock.advance(2 * SECOND);
  t.like(await call, { cause: { message: "connect ECONNREFUSED" } });
  t.is(fleet.clock.pendingTimers, 0);
});

test("a last try that is cut short does not hide the error of the earlier tries", async (t) => {
  const fleet = new Fleet();
  let tries = 0;
  fleet.store.onAcquire = () => ((tries += 1) < 10 ? connectionRefused() : lostOnTheWay());
  fleet.store.onEnqueue = fleet.store.onAcquire;
  fleet.store.onDequeue = connectionRefused;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 1, waitTime: "1s" }, idle), {
    instanceOf: LockUnreachableError,
    message: /: connect ECONNREFUSED$/,
  });
  await fleet.clock.advance(2 * SECOND);
  await call;
  t.is(tries, 10);
});

test("a call to a store that never answers fails shortly after the wait budget", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = lostOnTheWay;
  fleet.store.onDequeue = lostOnTheWay;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 2, waitTime: "1s" }, idle), {
    instanceOf: LockUnreachableError,
  });
  await fleet.clock.advance(2_200);
  await call;
  await fleet.clock.advance(SECOND); // The command that leaves the queue times out, too.
  t.is(fleet.clock.pendingTimers, 0);
});

test("a waiter gets the lock if the store comes back within the wait budget", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  const call = fleet.process().call(KEY, {}, idle);
  await fleet.clock.advance(7 * SECOND);
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(100);
  t.is(await call, "done");
});

test("an unreachable store is not a busy lock: it triggers neither onFailure=skip nor the failure class", async (t) => {
  class OrderBusyError extends Error {}
  const fleet = new Fleet();
  fleet.store.onAcquire = connectionRefused;
  const wait = { retryTimes: 1, waitTime: "1s" } as const;
  const skipping = fleet.process().call(KEY, { ...wait, onFailure: "skip" }, idle);
  const throwing = fleet.process().call(KEY, wait, idle, { Failure: OrderBusyError });
  const outcomes = [skipping, throwing].map((call) =>
    t.throwsAsync(call, { instanceOf: LockUnreachableError }),
  );
  await fleet.clock.advance(2 * SECOND);
  await Promise.all(outcomes);
});

test("local waiters behind a caller that cannot reach the store learn that it is unreachable", async (t) => {
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

test("a store that rejects with undefined counts as unreachable", async (t) => {
  const fleet = new Fleet();
  // oxlint-disable-next-line typescript/prefer-promise-reject-errors, unicorn/no-useless-undefined -- Code out there does it.
  fleet.store.onAcquire = () => Promise.reject(undefined);
  await t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle), {
    instanceOf: LockUnreachableError,
    message: /: undefined$/,
  });
});

test("a store that throws instead of rejecting is handled like one that rejects", async (t) => {
  const fleet = new Fleet();
  const fail = (): never => {
    throw new Error("not a promise");
  };
  fleet.store.onAcquire = fail;
  fleet.store.onRelease = fail;
  fleet.store.onDequeue = fail;
  await t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle), {
    instanceOf: LockUnreachableError,
    message: /not a promise/,
  });
  fleet.store.onAcquire = (send) => send();
  t.is(await fleet.process().call(KEY, {}, () => "result"), "result");
  t.regex(fleet.warnings.join("\n"), /the store did not confirm the release \(not a promise\)/);

  await fleet.acquireElsewhere("other", 60 * SECOND);
  fleet.store.onEnqueue = fail;
  const waiter = fleet.process().call("other", {}, idle);
  await fleet.clock.settle();
  await fleet.releaseElsewhere("other");
  fleet.store.onEnqueue = undefined;
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(5 * SECOND);
  t.is(await waiter, "done");
  t.is(fleet.clock.pendingTimers, 0);
});

test("a command that is answered in time leaves no timer", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY, { watchdog: false });
  await lock.acquire();
  t.is(fleet.clock.pendingTimers, 0);
  await lock.release();
  t.is(fleet.clock.pendingTimers, 0);
});

for (const when of ["before it is found", "while it is renewed"]) {
  test(`an unanswered hold that is revoked ${when} does not block callers for its lock time`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process({ commandTimeout: "100ms" });
    const revoke = async (): Promise<void> => {
      const requestId = await fleet.valueOf(KEY);
      if (requestId !== undefined) await fleet.memory.admin.revoke({ key: KEY, requestId }, 1);
    };
    fleet.store.onAcquire = (send) => {
      fleet.store.onAcquire = (again) => again();
      return replyLost(send);
    };
    if (when === "while it is renewed") {
      fleet.store.onRenew = async (send) => {
        await revoke();
        return await send();
      };
    }
    let isServed = false;
    const called = process.call(KEY, { lockTime: "20s" }, () => {
      isServed = true;
    });
    await fleet.clock.advance(50);
    if (when === "before it is found") await revoke();
    await fleet.clock.advance(1_500);
    t.true(isServed);
    await called;
    await fleet.leftNothing(t, KEY, process);
  });
}

test("a hold that was revoked and released never counts, even if its command runs again", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "100ms" });
  let comesAgain = async (): Promise<void> => {};
  fleet.store.onAcquire = (send) => {
    fleet.store.onAcquire = (again) => again();
    return new Promise((resolve) => {
      void send();
      comesAgain = async () => resolve(await send());
    });
  };
  const storeValues: (string | undefined)[] = [];
  const called = process.call(KEY, { lockTime: "20s" }, (lock) => void storeValues.push(lock.storeValue));
  await fleet.clock.advance(50);
  const first = (await fleet.valueOf(KEY)) ?? "";
  await fleet.memory.admin.revoke({ key: KEY, requestId: first }, 1);
  fleet.store.onRelease = async (send) => {
    const reply = await send();
    fleet.store.onRelease = (again) => again();
    // Its ticket ends, too.
    for (const { ticket } of fleet.store.enqueueRequests) await fleet.memory.queue.dequeue(KEY, ticket, 1);
    await comesAgain();
    return reply;
  };
  await fleet.clock.advance(3_000);
  await called;
  t.is(storeValues.length, 1);
  t.not(storeValues[0], first);
  await fleet.clock.advance(30_000);
  await fleet.leftNothing(t, KEY, process);
});

test("a releaseAndEnqueue that runs twice with a revocation in between succeeds and blocks no caller", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  let isServed = false;
  fleet.store.onReleaseAndEnqueue = async (send) => {
    fleet.store.onReleaseAndEnqueue = undefined;
    await send();
    const requestId = (await fleet.valueOf(KEY)) ?? "";
    t.true(await fleet.memory.admin.revoke({ key: KEY, requestId }, 1));
    return await send();
  };
  const first = process.call(KEY, { lockTime: "20s" }, () => end.promise);
  await fleet.clock.advance(1);
  const second = process.call(KEY, { lockTime: "30s" }, () => {
    isServed = true;
  });
  await fleet.clock.advance(10);
  end.resolve();
  await fleet.clock.advance(2_000);
  t.true(isServed);
  await t.notThrowsAsync(Promise.all([first, second]));
  await fleet.leftNothing(t, KEY, process);
});

test("a late reply to an acquire that ran again after its lock was revoked blocks no caller", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "1s" });
  let isServed = false;
  fleet.store.onAcquire = async (send) => {
    fleet.store.onAcquire = (again) => again();
    await send();
    const requestId = (await fleet.valueOf(KEY)) ?? "";
    t.true(await fleet.memory.admin.revoke({ key: KEY, requestId }, 1));
    await new Promise((resolve) => fleet.clock.after(1_050, () => resolve(undefined)));
    return await send();
  };
  const called = process.call(KEY, { lockTime: "30s" }, () => {
    isServed = true;
  });
  await fleet.clock.advance(3_000);
  t.true(isServed);
  await called;
  await fleet.leftNothing(t, KEY, process);
});
