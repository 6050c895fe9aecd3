import test from "ava";
import { configure } from "../../runtime/config/configure";
import {
  LockKeyError,
  LockNotWovenError,
  LockOptionError,
  LockWaitTimeoutError,
} from "../../runtime/base/errors";
import type { Lock } from "../../runtime/lock/lock";
import { wholeKey } from "../../runtime/base/key";
import * as woven from "../../runtime/woven/woven";
import { Fleet } from "../support/fleet";

// Calls as the transformer writes them.

const lockweave = { ...woven, wholeKey };
const fleet = new Fleet();
const site = { site: "OrderService.pay", businessFlag: "payOrder", lockTime: "20s" } as const;

const warnings: string[] = [];

test.before(() => {
  const logger = { warn: (message: string): void => void warnings.push(message) };
  configure({ store: fleet.store, clock: fleet.clock, logger }, "woven");
});

for (const [title, openWith] of Object.entries({
  "a lock": (signal: AbortSignal | undefined) =>
    lockweave.open({ ...site, wait: "forever", signal }, "signal-1"),
  "a lock with a whole key": (signal: AbortSignal | undefined) =>
    lockweave.open({ site: "pay", wait: "forever", key: "LOCK_payOrder_signal-1", signal }),
  "a lock of several keys": (signal: AbortSignal | undefined) =>
    lockweave.open({ ...site, each: true, wait: "forever", signal }, ["signal-0", "signal-1"]),
})) {
  test.serial(`the signal of the tag ends the wait for ${title}`, async (t) => {
    const key = "LOCK_payOrder_signal-1";
    await fleet.acquireElsewhere(key, 86_400_000);
    const controller = new AbortController();
    const { signal } = controller;
    const lock = openWith(signal);
    const call = (async (): Promise<void> => {
      while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
    })();
    await fleet.clock.advance(60_000);
    const reason = new Error("the client went away");
    controller.abort(reason);
    t.is(await t.throwsAsync(call), reason);
    const { commands } = fleet.store;
    t.is(await t.throwsAsync(lockweave.acquire(openWith(signal))), reason, "it is already aborted");
    t.is(fleet.store.commands, commands);
    await fleet.clock.settle();
    await fleet.releaseElsewhere(key);
    t.true(await fleet.isForgotten(key));
    t.true(await fleet.isForgotten("LOCK_payOrder_signal-0"));
    const free = openWith(undefined);
    t.true(await lockweave.acquire(free));
    await lockweave.release(free);
  });
}

test("an aborted signal of a reentrant call does not affect the lock around it", async (t) => {
  const options = { ...site, reentrant: true } as const;
  const outer = lockweave.open(options, "signal-2");
  t.true(await lockweave.acquire(outer));
  const reason = new Error("too late");
  await lockweave.runReentrant(outer, async () => {
    const inner = lockweave.open({ ...options, signal: AbortSignal.abort(reason) }, "signal-2");
    t.is(await t.throwsAsync(lockweave.acquire(inner)), reason);
    lockweave.assertHeld(outer);
  });
  await lockweave.release(outer);
  t.true(await fleet.isForgotten("LOCK_payOrder_signal-2"));
});

test("open() rejects a signal that is not an AbortSignal, and names the tag", (t) => {
  for (const signal of ["no signal", null, {}]) {
    t.throws(() => lockweave.open({ ...site, signal: signal as unknown as AbortSignal }, "a"), {
      instanceOf: LockOptionError,
      message: /^@redisLock of OrderService\.pay: Expected `signal` to be an AbortSignal, got /,
    });
  }
});

class OrderBusyError extends Error {}

async function pay(orderNo: string, Failure?: typeof OrderBusyError): Promise<string> {
  const lock = lockweave.open({ ...site, retryTimes: 0 }, orderNo);
  while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock, Failure);
  try {
    lockweave.assertHeld(lock);
    if (orderNo === "broke") throw new Error("no money");
    return lockweave.currentLock(lock).key;
  } catch (error) {
    throw lockweave.fail(lock, error);
  } finally {
    await lockweave.release(lock);
  }
}

test("a woven body runs under its key, and releases it afterwards", async (t) => {
  t.is(await pay("Test001"), "LOCK_payOrder_Test001");
  t.true(await fleet.isFree("LOCK_payOrder_Test001"));
});

test("open() uses a whole key unchanged", async (t) => {
  const lock = lockweave.open({ site: "OrderService.pay", key: lockweave.wholeKey`mutex:${"Test001"}` });
  t.true(await lockweave.acquire(lock));
  t.is(lockweave.currentLock(lock).key, "mutex:Test001");
  t.false(await fleet.isFree("mutex:Test001"));
  await lockweave.release(lock);
});

test("open() rejects a whole key with the prefix `lockweave:`, with a flag, or with parts", (t) => {
  const opened = (namespace: string): unknown =>
    lockweave.open({ site: "OrderService.pay", key: lockweave.wholeKey`${namespace}:2:queue:a` });
  t.throws(() => opened("lockweave"), {
    instanceOf: LockKeyError,
    message: /does not begin with "lockweave:"/,
  });
  t.notThrows(() => opened("lockweav"));
  const error = {
    instanceOf: LockOptionError,
    message:
      "@redisLock of OrderService.pay: Expected either `businessFlag` with the parts of a key, or `key`, the whole key",
  };
  const both = { ...site, key: "mutex" } as unknown as woven.Site;
  t.throws(() => lockweave.open(both), error);
  t.throws(() => lockweave.open({ site: "OrderService.pay", key: "mutex" }, "Test001"), error);
});

test("open() with each=true acquires the keys of all parts and lists", async (t) => {
  const { each } = { each: true } as const;
  const locks = lockweave.open({ ...site, each }, "b", ["c", "a"]);
  t.deepEqual(locks.keys, ["LOCK_payOrder_a", "LOCK_payOrder_b", "LOCK_payOrder_c"]);
  t.true(await lockweave.acquire(locks));
  for (const key of locks.keys) t.false(await fleet.isFree(key));
  await lockweave.release(locks);
  for (const key of locks.keys) t.true(await fleet.isFree(key));
});

test("open() accepts a missing site, and rejects a site that is not a string", (t) => {
  const open = lockweave.open as (site: object, ...parts: readonly string[]) => Lock;
  t.is(open({ businessFlag: "payOrder" }, "1").key, "LOCK_payOrder_1");
  t.throws(() => open({ site: 5, businessFlag: "payOrder" }, "1"), {
    instanceOf: LockOptionError,
    message: /^Expected open\(\) to be given \{ site, businessFlag \}, got /,
  });
});

test("the woven calls hold no lock and pass errors through if `when` is false", async (t) => {
  const lock = lockweave.unlocked();
  t.true(await lockweave.acquire(lock));
  t.true(await lockweave.retryCheck(lock));
  t.notThrows(() => lockweave.assertHeld(lock));
  t.is(lockweave.currentLock(lock), undefined);
  const error = new Error("no money");
  t.is(lockweave.fail(lock, error), error);
  await lockweave.release(lock);
  t.throws(() => lockweave.currentLock(), { instanceOf: LockNotWovenError });
});

test("a reentrant body that `when` left unlocked can still reenter the outer lock", async (t) => {
  const enter = async (isLocked: boolean, body: () => Promise<string>): Promise<string> => {
    const reentrant = { ...site, reentrant: true, retryTimes: 0 };
    const lock = lockweave.when(isLocked) ? lockweave.open(reentrant, "when") : lockweave.unlocked();
    while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
    try {
      return await lockweave.runReentrant(lock, body);
    } catch (error) {
      throw lockweave.fail(lock, error);
    } finally {
      await lockweave.release(lock);
    }
  };
  const inside = await enter(true, () => enter(false, () => enter(true, async () => "inside")));
  t.is(inside, "inside");
  t.true(await fleet.isFree("LOCK_payOrder_when"));
});

test.serial("does not run the body if the lock expired before the first statement", async (t) => {
  let begun = 0;
  const blockedFor = async (lock: Lock): Promise<void> => {
    while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
    try {
      lockweave.assertHeld(lock);
      begun += 1;
      fleet.clock.freeze(25_000);
    } catch (error) {
      throw lockweave.fail(lock, error);
    } finally {
      await lockweave.release(lock);
    }
  };
  const outcomes = await Promise.allSettled(
    [1, 2].map((part) => blockedFor(lockweave.open(site, "both", part))),
  );
  t.is(begun, 1);
  t.like(outcomes[1], { status: "rejected", reason: { code: "LOCK_LOST" } });
  t.regex(
    warnings.join("\n"),
    /^LOCK_payOrder_both,2 \(OrderService\.pay\): the lock was lost before the body ended/,
  );

  const lock = lockweave.open({ ...site, reentrant: true }, "reentrant");
  t.true(await lockweave.acquire(lock));
  fleet.clock.freeze(25_000);
  t.throws(() => lockweave.runReentrant(lock, async () => void (begun += 1)), { code: "LOCK_LOST" });
  t.is(begun, 1);
  await t.throwsAsync(lockweave.release(lock), { code: "LOCK_LOST" });
});

test("a woven function throws the body's error unchanged, and releases the key", async (t) => {
  await t.throwsAsync(pay("broke"), { message: "no money" });
  t.true(await fleet.isFree("LOCK_payOrder_broke"));
});

test("a held key throws LockWaitTimeoutError, or the tag's own error class", async (t) => {
  await fleet.acquireElsewhere("LOCK_payOrder_busy", 60_000);
  await t.throwsAsync(pay("busy"), {
    instanceOf: LockWaitTimeoutError,
    message: /LOCK_payOrder_busy \(OrderService\.pay\) is held by another/,
  });
  await t.throwsAsync(pay("busy", OrderBusyError), { instanceOf: OrderBusyError });
});

test("open() rejects an invalid key part or option before it sends anything", (t) => {
  const asked = fleet.store.acquireRequests.length;
  t.throws(() => lockweave.open(site, undefined as unknown as string), {
    instanceOf: LockKeyError,
    message: /^OrderService\.pay: Expected key part 1 of "payOrder" to be .*, got undefined$/,
  });
  t.throws(() => lockweave.open({ ...site, each: true }, []), {
    instanceOf: LockKeyError,
    message: /^OrderService\.pay: Expected 1 to 256 keys of 'payOrder'/,
  });
  t.throws(() => lockweave.open({ ...site, lockTime: "20" as "20s" }), { instanceOf: LockOptionError });
  t.is(fleet.store.acquireRequests.length, asked);
});

test("a reentrant body can enter its own lock again", async (t) => {
  const options = { ...site, reentrant: true } as const;
  const outer = lockweave.open(options, "reentrant");
  t.true(await lockweave.acquire(outer));
  await lockweave.runReentrant(outer, async () => {
    const inner = lockweave.open(options, "reentrant");
    t.true(await lockweave.acquire(inner));
    await lockweave.release(inner);
  });
  await lockweave.release(outer);
  t.true(await fleet.isFree("LOCK_payOrder_reentrant"));
});

test("a function that could not be woven throws instead of running unlocked", (t) => {
  t.throws(() => lockweave.refuse("a.ts(3,9): unknown attribute"), {
    instanceOf: LockNotWovenError,
    message: "a.ts(3,9): unknown attribute",
  });
});

test("assertWoven() accepts a function with all woven calls, and rejects one without release()", (t) => {
  const all = async (): Promise<void> => {
    const lock = lockweave.open({ site: "f", businessFlag: "f" });
    while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
    await lockweave.release(lock);
  };
  t.notThrows(() => lockweave.assertWoven(all));
  const some = async (): Promise<void> => {
    const lock = lockweave.open({ site: "f", businessFlag: "f" });
    while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
  };
  t.throws(() => lockweave.assertWoven(some), {
    instanceOf: LockNotWovenError,
    message: /^The function `some` was not woven/,
  });
});

test.serial("an option that is undefined has the project's default, and else that of configure()", (t) => {
  const termsOf = (projectDefaults: string, given: object): Lock["terms"] =>
    lockweave.open({ site: "Orders.list", businessFlag: "list", projectDefaults, ...given }).terms;
  const lockTime = "lockTime=30s";
  t.is(termsOf(lockTime, { lockTime: undefined }).lockTimeMs, 30_000);
  t.is(termsOf(lockTime, { lockTime: "40s" }).lockTimeMs, 40_000);
  t.is(termsOf(lockTime, { lockTime: undefined }).lockTimeMs, 30_000);
  t.is(termsOf("lockTime=50s", { lockTime: undefined }).lockTimeMs, 50_000);
  t.is(termsOf(lockTime, { permits: undefined, lockTime: undefined }).permits, 1);
  const retries = "retryTimes=4 waitTime=250ms";
  t.like(termsOf(retries, { wait: undefined }), {
    retryTimes: 4,
    waitTimeMs: 250,
    waitMs: undefined,
    budgetMs: 1_000,
  });
  t.like(termsOf(retries, { wait: "2s" }), { waitMs: 2_000, budgetMs: 2_000 });
  t.is(termsOf("wait=0", { retryTimes: undefined }).budgetMs, 0);
  t.is(termsOf("wait=forever", { retryTimes: undefined }).budgetMs, Infinity);
  t.throws(() => termsOf(lockTime, { lockTime: undefined, lockAtLeast: "40s" }), {
    instanceOf: LockOptionError,
    message: /^@redisLock of Orders\.list: Expected `lockAtLeast` to be at most `lockTime`/,
  });
});
