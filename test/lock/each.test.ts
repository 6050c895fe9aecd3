import test from "ava";
import {
  LockClosedError,
  type LockError,
  LockLostError,
  LockUnreachableError,
  LockWaitTimeoutError,
} from "../../runtime/base/errors";
import { runInside } from "../../runtime/lock/reentrancy";
import type { MultiLock } from "../../runtime/lock/multi-lock";
import type { LockOptions } from "../../runtime/lock/settings";
import { batching } from "../support/batching-store";
import { deferred } from "../support/deferred";
import { passes } from "../support/jobs";
import { lostOnTheWay } from "../support/tampered-store";
import { Fleet, type FleetProcess } from "../support/fleet";
import { SuspendableClock } from "../support/suspendable-clock";
import { replacing } from "../support/flat-store";

// Locks on several keys, which are acquired together or not at all.

/** Acquires the keys as woven code does. */
async function enter(
  process: FleetProcess,
  keys: readonly string[],
  options: LockOptions = {},
  signal?: AbortSignal,
): Promise<MultiLock> {
  const locks = process.locks(keys, options);
  while (!(await locks.acquire(signal))) await locks.retryCheck();
  locks.assertHeld();
  return locks;
}

/** Holds the keys for 5 ms. In `log`, it notes the keys and which of them other sections hold at its start. */
async function section(
  fleet: Fleet,
  process: FleetProcess,
  keys: readonly string[],
  inUse: Set<string>,
  log: { keys: string; shared: string[] }[],
): Promise<void> {
  const locks = await enter(process, keys);
  log.push({ keys: keys.join(), shared: keys.filter((key) => inUse.has(key)) });
  for (const key of keys) inUse.add(key);
  await passes(fleet.clock, 5);
  for (const key of keys) inUse.delete(key);
  await locks.release();
}

test("callers that list the same keys in different orders never deadlock", async (t) => {
  for (const number of [1, 3]) {
    const fleet = new Fleet();
    const processes = Array.from({ length: number }, () => fleet.process());
    const inUse = new Set<string>();
    const log: { keys: string; shared: string[] }[] = [];
    const orders = ["a b", "b a", "b c", "c a", "c b a", "a c b"].map((keys) => keys.split(" "));
    const sections = [...orders, ...orders].map((keys, n) => {
      const process = processes[n % number] ?? fleet.process();
      return section(fleet, process, keys, inUse, log);
    });
    await fleet.clock.advance(12_000);
    await Promise.all(sections);
    t.is(log.length, 12);
    t.deepEqual(
      log.filter(({ shared }) => shared.length > 0),
      [],
      "no two bodies with a common key overlap",
    );
    for (const key of ["a", "b", "c"]) t.true(await fleet.isFree(key));
    t.true(processes.every(({ isIdle }) => isIdle));
    t.is(fleet.clock.pendingTimers, 0);
  }
});

test("a caller that waits for a key holds only the keys before it in byte order", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 2_000);
  const entering = enter(one, ["c", "b", "a", "ä", "Z"]);
  await fleet.clock.advance(100);
  const held = async (): Promise<string[]> => {
    const keys = ["Z", "a", "b", "c", "ä"];
    const free = await Promise.all(keys.map((key) => fleet.isFree(key)));
    return keys.filter((_, n) => free[n] !== true);
  };
  t.deepEqual(await held(), ["Z", "a", "b"]);
  await fleet.clock.advance(2_000);
  const locks = await entering;
  t.deepEqual(locks.keys, ["Z", "a", "b", "c", "ä"]);
  t.deepEqual(await held(), ["Z", "a", "b", "c", "ä"]);
  await locks.release();
  t.deepEqual(await held(), []);
  t.is(locks.remaining(), 0);
});

test("a key that is listed twice counts once", async (t) => {
  const fleet = new Fleet();
  const locks = await enter(fleet.process(), ["a", "b", "a"]);
  t.deepEqual(locks.keys, ["a", "b"]);
  t.is(locks.locks.length, 2);
  await locks.release();
});

test("a wait timeout releases the acquired keys and names the missing key in its error", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("a", 700);
  await fleet.acquireElsewhere("b", 60_000);
  const entering = t.throwsAsync(enter(one, ["c", "b", "a"], { retryTimes: 2, waitTime: "500ms" }), {
    instanceOf: LockWaitTimeoutError,
    message:
      /LOCK_WAIT_TIME_OUT: b is held by another caller and did not become free within 1000 ms \(retryTimes=2/,
  });
  await fleet.clock.advance(1_000);
  await entering;
  t.true((await fleet.isFree("a")) && (await fleet.isFree("c")));
  t.true(one.isIdle);
});

test("a caller with no wait budget tries all keys once", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 60_000);
  await t.throwsAsync(enter(one, ["a", "b", "c"], { retryTimes: 0 }), { message: /: b is held by another/ });
  const locks = one.locks(["a", "b", "c"], { retryTimes: 0, onFailure: "skip" });
  t.deepEqual([await locks.acquire(), await locks.retryCheck()], [false, false]);
  await fleet.releaseElsewhere("b");
  await (await enter(one, ["a", "b", "c"], { retryTimes: 0 })).release();
  t.true(one.isIdle);
});

test("an abort ends the wait for all keys and releases those already held", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 60_000);
  const locks = one.locks(["a", "b"]);
  const goesAway = new AbortController();
  t.false(await locks.acquire(goesAway.signal));
  t.true(await locks.retryCheck());
  t.false(await locks.acquire(goesAway.signal));
  t.false(await fleet.isFree("a"));
  const waiting = t.throwsAsync(locks.retryCheck());
  goesAway.abort(new Error("gone home"));
  t.is((await waiting).message, "gone home");
  t.true(await fleet.isFree("a"));
  await t.throwsAsync(locks.acquire(), { instanceOf: LockLostError });
  t.true(one.isIdle);
});

test("an abort while all keys are renewed for the body ends the wait without running the body", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 60_000);
  const goesAway = new AbortController();
  const entering = enter(one, ["a", "b"], {}, goesAway.signal);
  await fleet.clock.advance(100);
  fleet.store.onRenew = lostOnTheWay;
  await fleet.releaseElsewhere("b");
  await fleet.clock.settle();
  const abortedAt = fleet.clock.now();
  goesAway.abort(new Error("gone home"));
  t.is((await t.throwsAsync(entering)).message, "gone home");
  t.is(fleet.clock.now(), abortedAt);
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(10_000);
  t.true((await fleet.isFree("a")) && (await fleet.isFree("b")));
  t.true(one.isIdle);
});

test("a multi-key lock has the shortest remaining time, aborts at the first loss, and reports every loss", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  const locks = await enter(one, ["a", "b", "c"], { lockTime: "9s" });
  await fleet.clock.advance(2_000);
  const [first] = locks.locks;
  await first?.extend("20s");
  t.true((first?.remaining() ?? 0) > 19_000);
  t.true(locks.remaining() < 9_000);
  await locks.extend("15s");
  t.true(locks.remaining() > 14_000);
  const { signal } = locks;
  t.false(signal.aborted);
  await fleet.endHold("b");
  await fleet.clock.advance(3_000);
  t.true(signal.aborted);
  t.regex(String(signal.reason), /b is no longer held/);
  t.is(locks.remaining(), 0);
  t.throws(() => locks.assertHeld(), { instanceOf: LockLostError, message: /^b is not held/ });
  await fleet.endHold("c");
  const error = await t.throwsAsync(locks.release(), { instanceOf: LockLostError });
  t.regex(error.message, /^b: the lock was lost .*; c: the lock was lost /);
  t.true(await fleet.isFree("a"));
  t.true(one.isIdle);
});

test("the first try acquires all keys if all are free", async (t) => {
  const fleet = new Fleet();
  const locks = fleet.process().locks(["b", "a", "c"]);
  t.true(await locks.acquire());
  t.deepEqual(
    locks.locks.map(({ key }) => key),
    ["a", "b", "c"],
  );
  const { signal } = locks;
  t.false(signal.aborted);
  t.is(locks.signal, signal);
  await locks.release();
  t.is(locks.remaining(), 0);
});

test("the signal of a released multi-key lock is aborted and says why", async (t) => {
  const locks = new Fleet().process().locks(["a", "b"]);
  t.true(await locks.acquire());
  await locks.release();
  t.true(locks.signal.aborted);
  t.regex(String(locks.signal.reason), /a b are not held, because they were released/);
});

test("concurrent acquire() calls share one try, and a released multi-key lock rejects new ones", async (t) => {
  const fleet = new Fleet();
  const locks = fleet.process().locks(["a", "b"]);
  t.is(locks.acquire(), locks.acquire());
  t.true(await locks.acquire());
  t.true(await locks.retryCheck());
  const releasing = locks.release();
  t.deepEqual(locks.locks, []);
  await releasing;
  await t.notThrowsAsync(locks.release());
  await t.throwsAsync(locks.acquire(), { instanceOf: LockLostError });
  await t.throwsAsync(locks.retryCheck(), { instanceOf: LockLostError });
});

test("the loss of a single key is reported without an AggregateError", async (t) => {
  const fleet = new Fleet();
  const locks = await enter(fleet.process(), ["a", "b"]);
  await fleet.endHold("b");
  const error = await t.throwsAsync(locks.release(), { instanceOf: LockLostError });
  t.regex(error.message, /^b: the lock was lost /);
  t.false(error.cause instanceof AggregateError);
});

test("release() reports no loss after the body has failed with its own error", async (t) => {
  const fleet = new Fleet();
  const locks = await enter(fleet.process(), ["a", "b"]);
  await fleet.endHold("b");
  const error = new Error("no money");
  t.is(locks.fail(error), error);
  await t.notThrowsAsync(locks.release());
  t.true(await fleet.isFree("a"));
});

test("extend() extends no key if not all keys are held", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 5_000);
  const locks = one.locks(["a", "b"], { lockTime: "9s" });
  t.false(await locks.acquire());
  t.is(locks.locks.length, 1);
  await t.throwsAsync(locks.extend("20s"), { instanceOf: LockLostError });
  t.true((locks.locks[0]?.remaining() ?? Infinity) <= 9_000);
  await locks.release();
  t.true(one.isIdle);
});

test("extend() fails if one key is released while the others are extended", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  const locks = await enter(one, ["a", "b"]);
  const arrival = deferred();
  fleet.store.onRenew = async (send) => {
    const isFirst = fleet.store.renewals === 1;
    const reply = await send();
    if (!isFirst) await arrival.promise;
    return reply;
  };
  const extending = t.throwsAsync(locks.extend("40s"), { instanceOf: LockLostError, message: /^a is/ });
  await fleet.clock.settle();
  t.is(fleet.store.renewals, 2);
  await locks.locks[0]?.release();
  arrival.resolve();
  await extending;
  await locks.release();
  t.true(one.isIdle);
});

for (const options of [
  { watchdog: false, lockTime: "500ms" },
  { holdAtMost: "600ms", lockTime: "500ms" },
] as const) {
  test(`keys are renewed during the wait, and each has its full lock time in the body (${Object.keys(options)[0]})`, async (t) => {
    const fleet = new Fleet();
    const one = fleet.process();
    await fleet.acquireElsewhere("b", 1_500);
    const entering = enter(one, ["a", "b", "c"], options);
    await fleet.clock.advance(1_400);
    t.false(await fleet.isFree("a"), "a is renewed while the caller waits for b");
    await fleet.clock.advance(150);
    const locks = await entering;
    const renewals = fleet.store.renewals;
    for (const lock of locks.locks) t.true(lock.remaining() > 400, lock.key);
    await fleet.clock.advance(400);
    t.true(locks.remaining() > 0);
    await fleet.clock.advance(250);
    t.is(locks.remaining(), 0, "the caller's options apply to the body");
    if ("watchdog" in options) t.is(fleet.store.renewals, renewals);
    await t.throwsAsync(locks.release(), { instanceOf: LockLostError });
    t.true(one.isIdle);
    t.is(fleet.clock.pendingTimers, 0);
  });
}

test("keys that one try acquires are not renewed before the body", async (t) => {
  const fleet = new Fleet();
  const locks = await enter(fleet.process(), ["a", "b"], { watchdog: false });
  t.is(fleet.store.renewals, 0);
  await locks.release();
});

for (const lost of ["a", "b"]) {
  test(`a caller that loses ${lost} while it waits for d reacquires it and the later keys in order`, async (t) => {
    const fleet = new Fleet();
    const one = fleet.process();
    await fleet.acquireElsewhere("d", 60_000);
    const entering = enter(one, ["a", "b", "c", "d"], { lockTime: "3s", retryTimes: 100 });
    await fleet.clock.advance(100);
    await fleet.endHold(lost);
    await fleet.acquireElsewhere(lost, 5_000);
    await fleet.clock.advance(1_500);
    const free = await Promise.all(["a", "b", "c"].map((key) => fleet.isFree(key)));
    t.deepEqual(free, lost === "a" ? [false, true, true] : [false, false, true]);
    await fleet.clock.advance(6_000);
    t.false((await Promise.all(["a", "b", "c"].map((key) => fleet.isFree(key)))).includes(true));
    await fleet.releaseElsewhere("d");
    await fleet.clock.advance(2_000);
    const locks = await entering;
    t.is(locks.locks.length, 4);
    await locks.release();
    t.true(one.isIdle);
  });
}

test("a wait times out on time even if the release of a lost key is unanswered", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 60_000);
  const options = { lockTime: "3s", retryTimes: 3, waitTime: "500ms" } as const;
  const entering = t.throwsAsync(enter(one, ["a", "b"], options), { instanceOf: LockWaitTimeoutError });
  await fleet.clock.advance(900);
  fleet.store.onRelease = lostOnTheWay;
  await fleet.endHold("a");
  await fleet.releaseElsewhere("b");
  await fleet.clock.advance(600);
  await entering;
});

test("a waiter in a resumed process pauses between its checks while no renewal is answered", async (t) => {
  const clock = new SuspendableClock();
  const fleet = new Fleet(clock);
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 60_000);
  const entering = enter(one, ["a", "b"], { retryTimes: 10, waitTime: "1s" });
  await clock.advance(100);
  fleet.store.onRenew = lostOnTheWay;
  clock.suspend(5_000);
  await fleet.releaseElsewhere("b");
  await clock.advance(3_000);
  t.true(fleet.store.renewed.length < 40, String(fleet.store.renewed.length));
  fleet.store.onRenew = (send) => send();
  await clock.advance(2_000);
  await (await entering).release();
  t.true(one.isIdle);
});

test("the body does not run if a key is lost just before all are held", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 60_000);
  const entering = enter(one, ["a", "b"], { lockTime: "10s" });
  await fleet.clock.advance(100);
  await fleet.endHold("a");
  await fleet.acquireElsewhere("a", 4_000);
  await fleet.releaseElsewhere("b");
  let hasEntered = false;
  void entering.then(() => (hasEntered = true));
  await fleet.clock.advance(2_000);
  t.false(hasEntered);
  t.true(await fleet.isFree("b"));
  await fleet.clock.advance(4_000);
  await (await entering).release();
  t.true(one.isIdle);
});

test("an unanswered last renewal is retried within the wait budget", async (t) => {
  for (const retryTimes of [10, 1]) {
    const fleet = new Fleet();
    const one = fleet.process();
    await fleet.acquireElsewhere("b", 500);
    fleet.store.onRenew = lostOnTheWay;
    const entering = enter(one, ["a", "b"], { retryTimes, waitTime: "1s" });
    const outcome =
      retryTimes === 1 ? t.throwsAsync(entering, { instanceOf: LockUnreachableError }) : entering;
    await fleet.clock.advance(3_500);
    fleet.store.onRenew = (send) => send();
    await fleet.clock.advance(2_000);
    await outcome;
    if (retryTimes === 10) await (await entering).release();
    await fleet.clock.advance(1_000);
    t.true((await fleet.isFree("a")) && (await fleet.isFree("b")));
    t.true(one.isIdle);
  }
});

test("all keys are acquired in one command and released in one", async (t) => {
  const fleet = new Fleet();
  const sizes: string[] = [];
  const store = batching(fleet.memory);
  const one = fleet.process({
    store: replacing(store, {
      acquireMany(requests, timeoutMs) {
        sizes.push(`take ${requests.length}`);
        return store.acquireMany?.(requests, timeoutMs) ?? Promise.reject(new Error("cannot"));
      },
      releaseMany(requests, timeoutMs) {
        sizes.push(`drop ${requests.length}`);
        return store.releaseMany?.(requests, timeoutMs) ?? Promise.reject(new Error("cannot"));
      },
    }),
  });
  const locks = await enter(one, ["a", "b", "c"]);
  await locks.release();
  t.deepEqual(sizes, ["take 3", "drop 3"]);
});

test("a nested reentrant call enters the keys that its context holds", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  const outer = await enter(one, ["a", "b"], { reentrant: true });
  const inner = await runInside(outer.locks, () => enter(one, ["b", "c", "a"], { reentrant: true }));
  await inner.release();
  t.true(await fleet.isFree("c"));
  t.true(outer.remaining() > 0);
  await outer.release();
  t.true(one.isIdle);
});

test("a shutdown waits for a caller that holds all its keys", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  const locks = await enter(one, ["a", "b"]);
  let isDrained = false;
  const drained = one.locker.manager.drain(10_000).then(() => {
    isDrained = true;
  });
  await fleet.clock.advance(5_000);
  t.false(isDrained);
  await locks.release();
  await fleet.clock.advance(10);
  t.true(isDrained);
  await drained;
});

test("a wait budget applies even if the store does not answer", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process({ commandTimeout: "5s" });
  fleet.store.onAcquire = lostOnTheWay;
  const entering = t.throwsAsync(enter(one, ["a", "b"], { retryTimes: 1, waitTime: "300ms" }), {
    instanceOf: LockUnreachableError,
  });
  await fleet.clock.advance(900);
  await entering;
});

test("a wait budget applies even if the store stops answering while some of the keys are held", async (t) => {
  for (const silence of ["onRelease", "onRenew"] as const) {
    const fleet = new Fleet();
    const one = fleet.process({ commandTimeout: "5s" });
    await fleet.acquireElsewhere("b", silence === "onRelease" ? 60_000 : 900);
    const entering = enter(one, ["a", "b"], { retryTimes: 1, waitTime: "1s" }).then(
      () => "held",
      ({ code }: LockError) => code,
    );
    await fleet.clock.advance(100);
    fleet.store.onRelease = lostOnTheWay;
    fleet.store[silence] = lostOnTheWay;
    await fleet.clock.advance(1_800);
    const code = silence === "onRelease" ? "LOCK_WAIT_TIME_OUT" : "LOCK_UNREACHABLE";
    t.is(await Promise.race([entering, Promise.resolve("still waits")]), code);
  }
});

test("a shutdown rejects a caller that still waits for a key, without delay or a loss", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 60_000);
  const entering = t.throwsAsync(enter(one, ["a", "b"]), { instanceOf: LockClosedError });
  await fleet.clock.advance(100);
  t.false(await fleet.isFree("a"));
  let isDrained = false;
  const { manager } = one.locker;
  const drained = manager.drain(10_000).then(() => {
    manager.revokeAll({ outcome: "revoked", because: "shutdown()", isEarly: true });
    isDrained = true;
  });
  await fleet.clock.advance(10);
  t.true(isDrained);
  await drained;
  await entering;
  t.true(await fleet.isFree("a"));
  t.deepEqual(fleet.warnings, []);
});

test("a release during a try leaves no key held", async (t) => {
  const fleet = new Fleet();
  const one = fleet.process();
  await fleet.acquireElsewhere("b", 60_000);
  const locks = one.locks(["a", "b", "c"]);
  const trying = t.throwsAsync(locks.acquire(), { instanceOf: LockLostError });
  await locks.release();
  await trying;
  await fleet.clock.settle();
  t.true((await fleet.isFree("a")) && (await fleet.isFree("c")));
  t.true(one.isIdle);
});
