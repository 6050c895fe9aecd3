import test from "ava";
import type { Duration } from "../../runtime/base/duration";
import { LockLostError, LockMisconfiguredError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { connectionRefused, lostOnTheWay, replyLate, replyLost } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("the watchdog renews after each third of the lock time while the body runs", async (t) => {
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

test("the watchdog stops at the release", async (t) => {
  const fleet = new Fleet();
  await fleet.process().call(KEY, {}, idle);
  t.is(fleet.clock.pendingTimers, 0);
  await fleet.clock.advance(300 * SECOND);
  t.is(fleet.store.renewals, 0);
});

test("a renewal that is in flight at the release has no effect", async (t) => {
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

test("an unanswered renewal is retried soon, and the lock is kept", async (t) => {
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

test("a lock without the watchdog expires, and its release reports the loss", async (t) => {
  const fleet = new Fleet();
  const { body, running, end } = job();
  const holder = t.throwsAsync(fleet.process().call(KEY, { watchdog: false, lockTime: "20s" }, body), {
    instanceOf: LockLostError,
    message: /the lock was lost before the body ended \(its key expired\)\. Another body may have run/,
  });
  await running;
  await fleet.clock.advance(20 * SECOND);
  t.is(fleet.store.renewals, 0);
  t.true(await fleet.isFree(KEY));
  end();
  await holder;
});

test("autoUnlock=false leaves the key to expire", async (t) => {
  const fleet = new Fleet();
  t.is(await fleet.process().call(KEY, { autoUnlock: false, lockTime: "20s" }, idle), "done");
  t.is(fleet.store.releases, 0);
  t.is(fleet.clock.pendingTimers, 0);
  await fleet.clock.advance(19_999);
  t.false(await fleet.isFree(KEY));
  await fleet.clock.advance(1);
  t.true(await fleet.isFree(KEY));
});

test("autoUnlock=false makes a local waiter wait for the key, not only for the body", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const startedAt = fleet.clock.now();
  await process.call(KEY, { autoUnlock: false, lockTime: "2s" }, idle);
  const waiter = process.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(5 * SECOND);
  t.is(await waiter, startedAt + 2 * SECOND);
});

const ON_ERROR = { autoUnlock: "onError", lockTime: "20s" } as const;

test("autoUnlock=onError leaves the key for one lock time after the body", async (t) => {
  for (const watchdog of [true, false]) {
    const fleet = new Fleet();
    const { body, running, end } = job();
    const holder = fleet.process().call(KEY, { ...ON_ERROR, watchdog }, body);
    await running;
    await fleet.clock.advance(5 * SECOND);
    end();
    t.is(await holder, "done");
    t.is(fleet.store.releases, 0);
    t.is(fleet.clock.pendingTimers, 0);
    await fleet.clock.advance(19_999);
    t.false(await fleet.isFree(KEY));
    await fleet.clock.advance(1);
    t.true(await fleet.isFree(KEY));
  }
});

test("autoUnlock=onError releases the key if the body throws, and wakes the next waiter", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const first = process.call(KEY, ON_ERROR, () => Promise.reject(new Error("declined")));
  const second = process.call(KEY, ON_ERROR, idle);
  await t.throwsAsync(first, { message: "declined" });
  t.is(await second, "done");
  t.is(fleet.store.releases, 1);
  t.false(await fleet.isFree(KEY));
});

test("autoUnlock=onError makes a local waiter wait for the key after a body that succeeded", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const startedAt = fleet.clock.now();
  await process.call(KEY, { ...ON_ERROR, lockTime: "2s" }, idle);
  const waiter = process.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(5 * SECOND);
  t.is(await waiter, startedAt + 2 * SECOND);
});

test("autoUnlock=onError keeps the result of the body if the store does not answer at its end", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRenew = connectionRefused;
  t.is(await fleet.process().call(KEY, ON_ERROR, idle), "done");
  t.is(fleet.store.releases, 0);
  await fleet.clock.advance(19_999);
  t.false(await fleet.isFree(KEY));
  await fleet.clock.advance(1);
  t.true(await fleet.isFree(KEY));
});

test("autoUnlock=onError reports a loss at the end of the body", async (t) => {
  const fleet = new Fleet();
  const call = fleet.process().call(KEY, ON_ERROR, () => fleet.endHold(KEY));
  await t.throwsAsync(call, { instanceOf: LockLostError });
});

test("autoUnlock=onError follows the body of the outermost reentrant call, whatever ends last", async (t) => {
  for (const outerFails of [true, false]) {
    const fleet = new Fleet();
    const process = fleet.process();
    const options = { ...ON_ERROR, reentrant: true };
    const inner = deferred();
    let late: Promise<unknown> = Promise.resolve();
    const outer = process.call(KEY, options, async () => {
      const isInside = deferred();
      late = process.call(KEY, options, async () => {
        isInside.resolve();
        await inner.promise;
        if (!outerFails) throw new Error("inner");
      });
      late.catch(() => {});
      await isInside.promise;
      if (outerFails) throw new Error("outer");
    });
    await (outerFails ? t.throwsAsync(outer, { message: "outer" }) : outer);
    t.false(await fleet.isFree(KEY));
    inner.resolve();
    await Promise.allSettled([late]);
    await fleet.clock.settle();
    t.is(await fleet.isFree(KEY), outerFails);
  }
});

test("remaining() is less than the lock time and counts from before the command was sent", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = async (send) => {
    await passes(fleet.clock, 300);
    return await send();
  };
  const remaining = fleet.process().call(KEY, { lockTime: "10s" }, (lock) => lock.remaining());
  await fleet.clock.advance(300);
  const ms = await remaining;
  t.true(ms !== undefined && ms <= 10_000 * 0.99 - 300, `${ms} ms`);
  t.true(ms !== undefined && ms > 10_000 * 0.98 - 300, `${ms} ms`);
});

test("a grant whose reply took the whole lock time does not count", async (t) => {
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

test("a slow release of a grant that does not count cannot end the lock of the next try", async (t) => {
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
    await passes(fleet.clock, 200);
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

test("a process that was frozen for longer than its lock time sees the loss immediately", async (t) => {
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

for (const [lossReason, taken] of [
  ["its key disappeared early: it was deleted, evicted, or lost with the data of the store", false],
  ["another caller holds it", true],
] as const) {
  test(`signal, assertHeld, and release report a loss: ${lossReason}`, async (t) => {
    const fleet = new Fleet();
    const aborted = deferred<unknown>();
    const holder = fleet.process().call(KEY, {}, async (lock) => {
      lock.signal.addEventListener("abort", () => aborted.resolve(lock.signal.reason));
      await fleet.endHold(KEY);
      if (taken) await fleet.acquireElsewhere(KEY, 60 * SECOND);
      const reason = await aborted.promise;
      t.true(reason instanceof LockLostError);
      t.is((reason as Error).message, `LOCK_payOrder_1 is no longer held: ${lossReason}`);
      t.throws(() => lock.assertHeld(), { instanceOf: LockLostError, message: new RegExp(lossReason) });
      t.is(lock.remaining(), 0);
      t.true(lock.signal.aborted);
    });
    const outcome = t.throwsAsync(holder, { instanceOf: LockLostError, message: new RegExp(lossReason) });
    await fleet.clock.advance(10 * SECOND);
    await outcome;
    t.is(fleet.clock.pendingTimers, 0);
    t.regex(fleet.warnings.join("\n"), new RegExp(`lost the lock: ${lossReason}`));
  });
}

test("the signal aborts at the deadline if no renewal gets through", async (t) => {
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

test("the signal aborts at the deadline without the watchdog", async (t) => {
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

test("a signal that was read leaves no timer behind", async (t) => {
  const fleet = new Fleet();
  await fleet.process().call(KEY, { watchdog: false }, (lock) => t.false(lock.signal.aborted));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a signal that is first read after the release is already aborted", async (t) => {
  const fleet = new Fleet();
  const lock = await fleet.process().call(KEY, {}, (held) => held);
  t.true(lock?.signal.aborted);
  t.throws(() => lock?.assertHeld(), { message: "LOCK_payOrder_1 is not held: it was released" });
});

test("fencing gives each holder a different token, and a lock without fencing has none", async (t) => {
  const fleet = new Fleet();
  const tokens: (number | undefined)[] = [];
  for (let n = 0; n < 3; n += 1) {
    await fleet.process().call(KEY, { fencing: true }, (lock) => tokens.push(lock.fencingToken));
  }
  t.is(new Set(tokens).size, 3);
  t.true(tokens.every((token) => typeof token === "number"));
  await fleet.process().call(KEY, {}, (lock) => t.is(lock.fencingToken, undefined));
});

test("a reply that took most of the lock time leaves enough time for the first renewal", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await passes(fleet.clock, 450);
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

test("storeValue is the value of the key while the lock is held, and undefined before and after", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY);
  t.is(lock.storeValue, undefined);
  t.true(await lock.acquire());
  t.is(lock.storeValue, await fleet.valueOf(KEY));
  t.is(lock.storeValue, lock.requestId);
  await lock.release();
  t.is(lock.storeValue, undefined);
});

test("a denied renewal is the cause of the reported loss and is logged once", async (t) => {
  const fleet = new Fleet();
  const denied = new LockMisconfiguredError(
    "NOPERM this user has no permissions to run the 'pexpire' command",
  );
  fleet.store.onRenew = () => Promise.resolve([denied]);
  const { body, running, end } = job();
  const lossReason = deferred<unknown>();
  const holder = t.throwsAsync(
    fleet.process().call(KEY, { lockTime: "10s" }, (lock) => {
      lock.signal.addEventListener("abort", () => lossReason.resolve(lock.signal.reason));
      return body();
    }),
    {
      instanceOf: LockLostError,
      message:
        /\(its deadline passed before a renewal succeeded \(NOPERM this user has no permissions .*\)\)/,
    },
  );
  await running;
  await fleet.clock.advance(10 * SECOND);
  end();
  t.is((await holder)?.cause, denied);
  t.like(await lossReason.promise, { cause: denied });
  t.is(fleet.warnings.filter((line) => line.includes("NOPERM")).length, 1, fleet.warnings.join("\n"));
});

test("the connection error of failed renewals is the cause of the reported loss and is logged once", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRenew = connectionRefused;
  const { body, running, end } = job();
  const holder = t.throwsAsync(
    fleet.process().call(KEY, { lockTime: "10s" }, async () => {
      await body();
      await fleet.acquireElsewhere(KEY, 60 * SECOND);
    }),
    { instanceOf: LockLostError, message: /before a renewal succeeded \(connect ECONNREFUSED\)/ },
  );
  await running;
  await fleet.clock.advance(10 * SECOND);
  end();
  t.like((await holder)?.cause, { message: "connect ECONNREFUSED" });
  t.is(fleet.warnings.filter((line) => line.includes("ECONNREFUSED")).length, 1, fleet.warnings.join("\n"));
});

test("a late renewal never shortens the lock", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY, { lockTime: "30s" });
  t.true(await lock.acquire());
  const arrival = deferred();
  fleet.store.onRenew = async (send) => {
    await arrival.promise;
    return await send();
  };
  await fleet.clock.advance(11 * SECOND); // The renewal was sent a second ago and counts as unanswered.
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(SECOND);
  t.is(fleet.store.renewals, 2);
  const leftMs = lock.remaining();
  t.is(leftMs, 30_000 * 0.99 - 2);
  arrival.resolve();
  await fleet.clock.settle();
  t.is(lock.remaining(), leftMs);
  await fleet.clock.advance(leftMs);
  t.false(await fleet.isFree(KEY));
  await lock.release();
});

test("an extended lock without the watchdog is held for the extension and then expires", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY, { lockTime: "2s", watchdog: false });
  t.true(await lock.acquire());
  let isLost = false;
  lock.signal.addEventListener("abort", () => (isLost = true));
  await fleet.clock.advance(SECOND);
  await lock.extend("60s");
  t.true(lock.remaining() > 59 * SECOND);
  await fleet.clock.advance(59 * SECOND);
  t.false(isLost);
  t.false(await fleet.isFree(KEY));
  await fleet.clock.advance(SECOND);
  t.true(isLost);
  t.is(lock.remaining(), 0);
  t.true(await fleet.isFree(KEY));
  await t.throwsAsync(lock.extend("1s"), { instanceOf: LockLostError });
  await lock.release().catch(() => {});
});

test("an extension never shortens the lock, and the watchdog keeps renewing", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY, { lockTime: "30s" });
  t.true(await lock.acquire());
  await lock.extend("1s");
  t.true(lock.remaining() > 29 * SECOND);
  await lock.extend("40s");
  await fleet.clock.advance(100 * SECOND);
  t.true(lock.remaining() > 19 * SECOND);
  await lock.release();
  t.true(await fleet.isFree(KEY));
});

test("an extension counts only if the store confirms it", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY, { lockTime: "2s", watchdog: false });
  t.true(await lock.acquire());
  fleet.store.onRenew = replyLost;
  const asked = lock.extend("60s");
  const refused = t.throwsAsync(asked, { code: "LOCK_UNREACHABLE" });
  await fleet.clock.advance(3 * SECOND);
  await refused;
  t.is(lock.remaining(), 0);
  fleet.store.onRenew = (send) => send();
  await lock.release();
  t.true(await fleet.isFree(KEY), "the unconfirmed extension is released, too");
});

test("extend() reports the loss if another caller holds the key", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY);
  t.true(await lock.acquire());
  const { signal } = lock;
  await fleet.endHold(KEY);
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  await t.throwsAsync(lock.extend("60s"), { instanceOf: LockLostError, message: /another caller holds it/ });
  t.true(signal.aborted);
  await t.throwsAsync(lock.release(), { instanceOf: LockLostError });
});

test("an extension that arrives after the release does not restore the lock", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY);
  t.true(await lock.acquire());
  const arrival = deferred();
  fleet.store.onRenew = async (send) => {
    await arrival.promise;
    return await send();
  };
  const extended = lock.extend("60s");
  await lock.release();
  arrival.resolve();
  await t.throwsAsync(extended, { instanceOf: LockLostError, message: /it was released/ });
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a hand-off does not pass on an extension, and the next holder gets its own lock time", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const lock = process.lock(KEY, { lockTime: "2s" });
  t.true(await lock.acquire());
  const { body, running, end } = job();
  const next = process.call(KEY, { lockTime: "2s" }, async (own) => {
    t.true(own.remaining() <= 2 * SECOND, String(own.remaining()));
    return await body();
  });
  await lock.extend("60s");
  await lock.release();
  await running;
  end();
  t.is(await next, "done");
});

test("a hand-off does not pass on an extension that is in flight at the release", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const lock = process.lock(KEY, { lockTime: "1s" });
  t.true(await lock.acquire());
  const next = process.lock(KEY, { lockTime: "1s", retryTimes: 1, waitTime: "1m" });
  t.false(await next.acquire());
  const answered = deferred();
  fleet.store.onRenew = replyLate(answered.promise);
  const extended = t.throwsAsync(lock.extend("1h"), { instanceOf: LockLostError });
  const released = lock.release();
  await fleet.clock.advance(10);
  answered.resolve();
  await Promise.all([released, extended]);
  t.true(await next.acquire());
  const [holder] = (await fleet.memory.admin.inspect(KEY, SECOND))?.holds ?? [];
  t.is(holder?.value, next.storeValue);
  t.true(
    (holder?.leftMs ?? Infinity) <= SECOND,
    "the key would expire in time if the process were killed now",
  );
  await next.release();
  await fleet.leftNothing(t, KEY, process);
});

test("extend() rejects an invalid duration and sends nothing", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY);
  t.true(await lock.acquire());
  for (const bad of ["10", "1ms", "25h", 60] as unknown as Duration[]) {
    await t.throwsAsync(lock.extend(bad), { code: "LOCK_BAD_OPTION" });
  }
  t.is(fleet.store.renewals, 0);
  await lock.release();
});

test("extend() throws the store's permanent error and keeps the lock", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock(KEY);
  t.true(await lock.acquire());
  fleet.store.onRenew = async (send) => (await send()).map(() => new LockMisconfiguredError("too long"));
  await t.throwsAsync(lock.extend("60s"), {
    instanceOf: LockMisconfiguredError,
    message: `${KEY}: too long`,
  });
  lock.assertHeld();
  await lock.release();
});
