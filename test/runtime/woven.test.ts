import test from "ava";
import { configure } from "../../runtime/configure";
import { LockKeyError, LockNotWovenError, LockOptionError, LockWaitTimeoutError } from "../../runtime/errors";
import type { Lock } from "../../runtime/lock/lock";
import { wholeKey } from "../../runtime/key";
import * as woven from "../../runtime/woven";
import { Fleet } from "../support/fleet";

// The calls as the transformer writes them.

const lockweave = { ...woven, wholeKey };
const fleet = new Fleet();
const site = { site: "OrderService.pay", businessFlag: "payOrder", lockTime: "20s" } as const;

const warnings: string[] = [];

test.before(() => {
  const logger = { warn: (message: string): void => void warnings.push(message) };
  configure({ store: fleet.store, clock: fleet.clock, logger }, "woven");
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

test("a woven body runs under its key, which is free afterwards", async (t) => {
  t.is(await pay("Test001"), "LOCK_payOrder_Test001");
  t.true(await fleet.isFree("LOCK_payOrder_Test001"));
});

test("a whole key is the key in the store, as it is", async (t) => {
  const lock = lockweave.open({ site: "OrderService.pay", key: lockweave.wholeKey`mutex:${"Test001"}` });
  t.true(await lockweave.acquire(lock));
  t.is(lockweave.currentLock(lock).key, "mutex:Test001");
  t.false(await fleet.isFree("mutex:Test001"));
  await lockweave.release(lock);
});

test("a whole key is refused that is ours, and beside a flag or parts", (t) => {
  const opened = (namespace: string): unknown =>
    lockweave.open({ site: "OrderService.pay", key: lockweave.wholeKey`${namespace}:2:queue:a` });
  t.throws(() => opened("lockweave"), {
    instanceOf: LockKeyError,
    message: /does not begin with "lockweave:"/,
  });
  t.notThrows(() => opened("lockweav"));
  const error = {
    instanceOf: LockOptionError,
    message: "Expected either `businessFlag` with the parts of a key, or `key`, the whole key",
  };
  const both = { ...site, key: "mutex" } as unknown as woven.Site;
  t.throws(() => lockweave.open(both), error);
  t.throws(() => lockweave.open({ site: "OrderService.pay", key: "mutex" }, "Test001"), error);
});

test("a lock for each of several keys has them all, of parts and of lists", async (t) => {
  const { each } = { each: true } as const;
  const locks = lockweave.open({ ...site, each }, "b", ["c", "a"]);
  t.deepEqual(locks.keys, ["LOCK_payOrder_a", "LOCK_payOrder_b", "LOCK_payOrder_c"]);
  t.true(await lockweave.acquire(locks));
  for (const key of locks.keys) t.false(await fleet.isFree(key));
  await lockweave.release(locks);
  for (const key of locks.keys) t.true(await fleet.isFree(key));
});

test("the name of the function may be left out, and is a text", (t) => {
  const open = lockweave.open as (site: object, ...parts: readonly string[]) => Lock;
  t.is(open({ businessFlag: "payOrder" }, "1").key, "LOCK_payOrder_1");
  t.throws(() => open({ site: 5, businessFlag: "payOrder" }, "1"), {
    instanceOf: LockOptionError,
    message: /^Expected open\(\) to be given \{ site, businessFlag \}, got /,
  });
});

test("where `when` is false, the steps hold nothing, and leave what the body does as it is", async (t) => {
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

test("a reentrant body without a lock may still enter the one around it again", async (t) => {
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

test.serial("a body whose lock was over before its first statement never begins", async (t) => {
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
  const told = await Promise.allSettled([1, 2].map((part) => blockedFor(lockweave.open(site, "both", part))));
  t.is(begun, 1);
  t.like(told[1], { status: "rejected", reason: { code: "LOCK_LOST" } });
  t.regex(
    warnings.join("\n"),
    /^LOCK_payOrder_both,2 \(OrderService\.pay\): the lock was lost before its work was done/,
  );

  const lock = lockweave.open({ ...site, reentrant: true }, "reentrant");
  t.true(await lockweave.acquire(lock));
  fleet.clock.freeze(25_000);
  t.throws(() => lockweave.runReentrant(lock, async () => void (begun += 1)), { code: "LOCK_LOST" });
  t.is(begun, 1);
  await t.throwsAsync(lockweave.release(lock), { code: "LOCK_LOST" });
});

test("a woven body's error comes out unchanged, and the key is free afterwards", async (t) => {
  await t.throwsAsync(pay("broke"), { message: "no money" });
  t.true(await fleet.isFree("LOCK_payOrder_broke"));
});

test("a busy key throws the time-out, or the tag's own class", async (t) => {
  await fleet.foreignHolder("LOCK_payOrder_busy", 60_000);
  await t.throwsAsync(pay("busy"), {
    instanceOf: LockWaitTimeoutError,
    message: /LOCK_payOrder_busy \(OrderService\.pay\) is held by another/,
  });
  await t.throwsAsync(pay("busy", OrderBusyError), { instanceOf: OrderBusyError });
});

test("a key that is no identity, or a bad attribute, is told before anything is sent", (t) => {
  const asked = fleet.store.asked.length;
  t.throws(() => lockweave.open(site, undefined as unknown as string), {
    instanceOf: LockKeyError,
    message: /^OrderService\.pay: Expected key part 1 of "payOrder" to be .*, got undefined$/,
  });
  t.throws(() => lockweave.open({ ...site, each: true }, []), {
    instanceOf: LockKeyError,
    message: /^OrderService\.pay: Expected 1 to 256 keys of 'payOrder'/,
  });
  t.throws(() => lockweave.open({ ...site, lockTime: "20" as "20s" }), { instanceOf: LockOptionError });
  t.is(fleet.store.asked.length, asked);
});

test("a reentrant body runs inside its lock", async (t) => {
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

test("a body that could not be woven refuses to run unlocked", (t) => {
  t.throws(() => lockweave.refuse("a.ts(3,9): unknown attribute"), {
    instanceOf: LockNotWovenError,
    message: "a.ts(3,9): unknown attribute",
  });
});

test("a function with all the steps counts as woven, and one without any of them does not", (t) => {
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
