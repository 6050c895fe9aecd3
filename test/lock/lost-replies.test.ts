import test from "ava";
import { LockLostError, LockUnreachableError } from "../../runtime/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { connectionRefused, lostOnTheWay, replyLost } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a lost reply to an acquire is not a lost lock: what the key holds is renewed, and only then believed", async (t) => {
  const fleet = new Fleet();
  fleet.store.onTake = replyLost;
  const { body, running, end } = job();
  let remainingMs = Infinity;
  let storeValue: unknown;
  const call = fleet.process().call(KEY, { lockTime: "30s", watchdog: false }, async (lock) => {
    remainingMs = lock.remaining();
    ({ storeValue } = lock);
    return await body();
  });
  await fleet.clock.settle();
  fleet.store.onTake = (send) => send();
  await fleet.clock.advance(1_100);
  await running;
  t.deepEqual(fleet.store.renewed, [1]);
  t.not(fleet.store.asked[0]?.requestId, fleet.store.asked[1]?.requestId, "each command has one of its own");
  t.is(storeValue, fleet.store.asked[0]?.requestId);
  t.is(storeValue, await fleet.valueOf(KEY));
  t.true(remainingMs <= 30_000 * 0.99, "it counts from the renewal");
  await fleet.clock.advance(remainingMs);
  t.false(await fleet.isFree(KEY), "the store keeps it for longer than the holder is sure of it");
  end();
  // The first command may be carried out once more: that the key is still ours does not prove that it always was.
  await t.throwsAsync(call, { instanceOf: LockLostError, message: /\(its deadline passed\)/ });
  t.true(await fleet.isForgotten(KEY));
});

test("what was found and cannot be renewed is not believed", async (t) => {
  const fleet = new Fleet();
  fleet.store.onTake = replyLost;
  fleet.store.onRenew = connectionRefused;
  const waiting = t.throwsAsync(
    fleet.process().call(KEY, { lockTime: "30s", retryTimes: 3, waitTime: "1s" }, () => t.fail()),
    { instanceOf: LockUnreachableError, message: /: connect ECONNREFUSED$/ },
  );
  await fleet.clock.settle();
  fleet.store.onTake = (send) => send();
  await fleet.clock.advance(3_200);
  await waiting;
  t.true(fleet.store.renewals > 0);
  await fleet.leftNothing(t, KEY);
});

test("what was found and is gone when it is renewed is asked for anew, and counts from then", async (t) => {
  const fleet = new Fleet();
  fleet.store.onTake = replyLost;
  const held = fleet.process().call(KEY, { lockTime: "30s" }, (lock) => ({
    remainingMs: lock.remaining(),
    storeValue: lock.storeValue,
  }));
  await fleet.clock.settle();
  fleet.store.onTake = (send) => send();
  fleet.store.onRenew = async (send) => {
    await fleet.takeAway(KEY); // Deleted between the reply that tells of it and the renewal.
    return await send();
  };
  await fleet.clock.advance(1_100);
  t.deepEqual(await held, {
    remainingMs: 30_000 * 0.99 - 2,
    storeValue: fleet.store.asked.at(-1)?.requestId,
  });
  t.is(fleet.store.renewals, 1);
  await fleet.leftNothing(t, KEY);
});

test("a try that comes to the store after a later one was refused is no grant of the later one", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const [arrival, withheld] = [deferred(), deferred<never>()];
  fleet.store.onTake = async (send) => {
    await arrival.promise;
    await send(); // Granted: and the reply is lost.
    return await withheld.promise;
  };
  fleet.store.onPlace = async () => {
    const request = fleet.store.placed.at(-1);
    if (request === undefined) throw new Error("Expected somebody to wait");
    const reply = await fleet.memory.acquire(request, SECOND); // As a store asks for it that has no queue for the key.
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
  t.is(fleet.store.placed.length, 1, "which was refused");
  await fleet.foreignerLeaves(KEY);
  arrival.resolve();
  await fleet.clock.advance(SECOND);
  t.is(fleet.store.placed.length, 2, "which finds what the first was granted almost a second ago");
  await fleet.clock.advance(300);
  await running;
  t.is(remainingMs, 10_000 * 0.99 - 2 - 300, "it counts from the renewal that found it");
  end();
  await call;
  await fleet.leftNothing(t, KEY, process);
});

test("a lost reply from before the last refusal does not shorten the lock that is had later", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 10 * SECOND);
  fleet.store.onTake = lostOnTheWay;
  const startedAt = fleet.clock.now();
  const call = fleet.process().call(KEY, { lockTime: "8s" }, () => fleet.clock.now());
  await fleet.clock.advance(SECOND);
  fleet.store.onTake = (send) => send(); // Refused: the foreigner holds the key.
  await fleet.clock.advance(8_900);
  fleet.store.onTake = replyLost; // Granted, at 10 s, and nobody here knows.
  await fleet.clock.advance(500);
  fleet.store.onTake = (send) => send();
  await fleet.clock.advance(5 * SECOND);
  const inAfterMs = ((await call) ?? 0) - startedAt;
  t.true(inAfterMs >= 10 * SECOND && inAfterMs < 12 * SECOND, `${inAfterMs} ms`);
});

test("a grant that arrives after the waiter gave up is given back", async (t) => {
  const fleet = new Fleet();
  const arrival = deferred();
  fleet.store.onTake = async (send) => {
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
  fleet.store.onTake = replyLost;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle), {
    instanceOf: LockUnreachableError,
  });
  await fleet.clock.advance(SECOND);
  await call;
  await fleet.clock.settle();
  t.true(await fleet.isFree(KEY));
});

test("an unreachable store is told as such, within the wait budget", async (t) => {
  const fleet = new Fleet();
  fleet.store.onTake = connectionRefused;
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

test("a last try that is cut short does not hide why those before it had failed", async (t) => {
  const fleet = new Fleet();
  let tries = 0;
  fleet.store.onTake = () => ((tries += 1) < 10 ? connectionRefused() : lostOnTheWay());
  fleet.store.onPlace = fleet.store.onTake;
  fleet.store.onLeave = connectionRefused;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 1, waitTime: "1s" }, idle), {
    instanceOf: LockUnreachableError,
    message: /: connect ECONNREFUSED$/,
  });
  await fleet.clock.advance(2 * SECOND);
  await call;
  t.is(tries, 10);
});

test("a store that never answers is given up shortly after the wait budget", async (t) => {
  const fleet = new Fleet();
  fleet.store.onTake = lostOnTheWay;
  fleet.store.onLeave = lostOnTheWay;
  const call = t.throwsAsync(fleet.process().call(KEY, { retryTimes: 2, waitTime: "1s" }, idle), {
    instanceOf: LockUnreachableError,
  });
  await fleet.clock.advance(2_200);
  await call;
  await fleet.clock.advance(SECOND); // The place in the queue is given up in vain.
  t.is(fleet.clock.pendingTimers, 0);
});

test("a store that comes back within the wait budget serves the waiter", async (t) => {
  const fleet = new Fleet();
  fleet.store.onTake = connectionRefused;
  const call = fleet.process().call(KEY, {}, idle);
  await fleet.clock.advance(7 * SECOND);
  fleet.store.onTake = (send) => send();
  await fleet.clock.advance(100);
  t.is(await call, "done");
});

test("an unreachable store is not taken for a busy lock: nothing is skipped, no own error is thrown", async (t) => {
  class OrderBusyError extends Error {}
  const fleet = new Fleet();
  fleet.store.onTake = connectionRefused;
  const wait = { retryTimes: 1, waitTime: "1s" } as const;
  const skipping = fleet.process().call(KEY, { ...wait, onFailure: "skip" }, idle);
  const throwing = fleet.process().call(KEY, wait, idle, { Failure: OrderBusyError });
  const outcomes = [skipping, throwing].map((call) =>
    t.throwsAsync(call, { instanceOf: LockUnreachableError }),
  );
  await fleet.clock.advance(2 * SECOND);
  await Promise.all(outcomes);
});

test("those who stand in line behind the one that cannot reach the store learn that it is unreachable", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onTake = connectionRefused;
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
  fleet.store.onTake = () => Promise.reject(undefined);
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
  fleet.store.onTake = fail;
  fleet.store.onDrop = fail;
  fleet.store.onLeave = fail;
  await t.throwsAsync(fleet.process().call(KEY, { retryTimes: 0 }, idle), {
    instanceOf: LockUnreachableError,
    message: /not a promise/,
  });
  fleet.store.onTake = (send) => send();
  t.is(await fleet.process().call(KEY, {}, () => "result"), "result");
  t.regex(fleet.warnings.join("\n"), /the release was not confirmed \(not a promise\)/);

  await fleet.foreignHolder("other", 60 * SECOND);
  fleet.store.onPlace = fail;
  const waiter = fleet.process().call("other", {}, idle);
  await fleet.clock.settle();
  await fleet.foreignerLeaves("other");
  fleet.store.onPlace = undefined;
  fleet.store.onDrop = (send) => send();
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

for (const when of ["before it is looked for", "while it is looked for"]) {
  test(`what was taken unheard, and is revoked ${when}, keeps nobody out for its lock time`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process({ commandTimeout: "100ms" });
    const revoke = async (): Promise<void> => {
      const requestId = await fleet.valueOf(KEY);
      if (requestId !== undefined) await fleet.memory.revoke?.({ key: KEY, requestId }, 1);
    };
    fleet.store.onTake = (send) => {
      fleet.store.onTake = (again) => again();
      return replyLost(send);
    };
    if (when === "while it is looked for") {
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
    if (when === "before it is looked for") await revoke();
    await fleet.clock.advance(1_500);
    t.true(isServed);
    await called;
    await fleet.leftNothing(t, KEY, process);
  });
}

test("what was given back since it was revoked unheard is never believed, though its command is carried out once more", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "100ms" });
  let comesAgain = async (): Promise<void> => {};
  fleet.store.onTake = (send) => {
    fleet.store.onTake = (again) => again();
    return new Promise((resolve) => {
      void send();
      comesAgain = async () => resolve(await send());
    });
  };
  const storeValues: (string | undefined)[] = [];
  const called = process.call(KEY, { lockTime: "20s" }, (lock) => void storeValues.push(lock.storeValue));
  await fleet.clock.advance(50);
  const first = (await fleet.valueOf(KEY)) ?? "";
  await fleet.memory.revoke?.({ key: KEY, requestId: first }, 1);
  fleet.store.onDrop = async (send) => {
    const reply = await send();
    fleet.store.onDrop = (again) => again();
    // Its place in the queue is over, too.
    for (const { ticket } of fleet.store.placed) await fleet.memory.dequeue(KEY, ticket, 1);
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

test("a next that is carried out twice, and whose lock is revoked between, is told as done, and keeps nobody out", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  let isServed = false;
  fleet.store.onNext = async (send) => {
    fleet.store.onNext = undefined;
    await send();
    const requestId = (await fleet.valueOf(KEY)) ?? "";
    t.true(await fleet.memory.revoke?.({ key: KEY, requestId }, 1));
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

test("a late second reply of a take whose lock is revoked keeps nobody out", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "1s" });
  let isServed = false;
  fleet.store.onTake = async (send) => {
    fleet.store.onTake = (again) => again();
    await send();
    const requestId = (await fleet.valueOf(KEY)) ?? "";
    t.true(await fleet.memory.revoke?.({ key: KEY, requestId }, 1));
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
