import { setTimeout } from "node:timers/promises";
import test from "ava";
import {
  configure,
  forceRelease,
  LockLostError,
  LockMisconfiguredError,
  LockOptionError,
  LockWaitTimeoutError,
  withLock,
} from "../../runtime";
import { memoryStore } from "../../runtime/stores/memory";
import { testLocks, type TestLocksOptions } from "../../runtime/testing";
import { acquire, fail, open, release, retryCheck } from "../../runtime/woven/woven";
import { deferred } from "../support/deferred";

/** Woven code as the transformer writes it, with a tag that waits for up to a minute. */
async function pay(orderNo: string, work: () => Promise<void> = async () => {}): Promise<void> {
  const lock = open({ site: "pay", businessFlag: "payOrder", retryTimes: 3, waitTime: "20s" }, orderNo);
  while (!(await acquire(lock))) await retryCheck(lock);
  try {
    await work();
  } catch (error) {
    throw fail(lock, error);
  } finally {
    await release(lock);
  }
}

test.serial("testLocks() lists the acquired keys in order", async (t) => {
  await using locks = testLocks({}, "woven");
  await pay("A1");
  await pay("A2", async () => void t.deepEqual(locks.held, ["LOCK_payOrder_A2"]));
  await withLock("by hand", {}, () => {});
  t.deepEqual(locks.acquired, ["LOCK_payOrder_A1", "LOCK_payOrder_A2", "by hand"]);
  t.deepEqual(locks.held, []);
});

test.serial("a call for a busy lock fails immediately, whatever wait budget it has", async (t) => {
  await using locks = testLocks({}, "woven");
  for (const wait of ["1m", "forever", 0] as const) {
    await withLock("busy", {}, async () => {
      const nested = Promise.resolve().then(() => withLock("busy", { wait }, () => t.fail()));
      await t.throwsAsync(nested, { instanceOf: LockWaitTimeoutError });
    });
  }
  t.is(locks.acquired.length, 3);
});

test.serial("guard() runs no statement in a test, and throws if the lock was revoked", async (t) => {
  await using locks = testLocks({}, "woven");
  const run = (): Promise<never> => Promise.reject(new Error("a test has no tables for locks"));
  for (const options of [{}, { mode: "read" }, { permits: 3 }, { store: "ledger" }] as const) {
    await withLock("account", options, (lock) => lock.guard(run));
  }
  await withLock(["a", "b"], {}, (lock) => lock.guard(run));
  t.is(locks.acquired.length, 6);
  const revoked = withLock("account", { onLost: "warn" }, async (lock) => {
    await forceRelease("account");
    await lock.guard(run);
  });
  await t.throwsAsync(revoked, { instanceOf: LockLostError });
});

test.serial("a call acquires the lock of a previous call that released in the background", async (t) => {
  await using locks = testLocks({}, "woven");
  await withLock("by hand", { release: "background" }, () => {});
  await withLock("by hand", { release: "background" }, () => {});
  t.deepEqual(locks.acquired, ["by hand", "by hand"]);
});

test.serial("a call does not wait for a held lock, whatever its tag says", async (t) => {
  await using locks = testLocks({}, "woven");
  await pay("A1", async () => {
    await t.throwsAsync(pay("A1"), { instanceOf: LockWaitTimeoutError });
  });
  t.deepEqual(locks.acquired, ["LOCK_payOrder_A1"]);
});

test.serial(
  "a call that would wait for its own caller throws immediately, and names that caller",
  async (t) => {
    await using locks = testLocks({}, "woven");
    const inner = (): Promise<void> => withLock("own", { waitTime: "1m" }, () => t.fail());
    await t.throwsAsync(
      withLock("own", {}, () => inner()),
      {
        instanceOf: LockWaitTimeoutError,
        message:
          /^LOCK_WAIT_TIME_OUT: own has been held by your own caller, withLock\(\), .*Fix: use reentrant=true/,
      },
    );
    t.deepEqual(locks.acquired, ["own"]);
  },
);

test.serial("a call waits for a held lock with waiting: true", async (t) => {
  await using locks = testLocks({ waiting: true }, "woven");
  const entered = deferred();
  const left = deferred();
  const first = pay("A1", async () => {
    entered.resolve();
    await left.promise;
  });
  await entered.promise;
  const second = pay("A1");
  await setTimeout(1);
  t.is(locks.acquired.length, 1);
  left.resolve();
  await Promise.all([first, second]);
  t.is(locks.acquired.length, 2);
});

test.serial("reset() empties the store and the list of acquired keys", async (t) => {
  await using locks = testLocks({}, "woven");
  const stays = { autoUnlock: false, watchdog: false };
  await withLock("k", stays, () => {});
  await t.throwsAsync(
    withLock("k", {}, () => {}),
    { instanceOf: LockWaitTimeoutError },
  );
  await locks.reset();
  t.deepEqual(locks.acquired, []);
  await withLock("k", {}, () => {});
  t.deepEqual(locks.acquired, ["k"]);
});

test.serial("reset() names locks that are still held, and then starts with an empty store", async (t) => {
  const { warn } = console;
  const warnings: string[] = [];
  console.warn = (message: string) => void warnings.push(message);
  t.teardown(() => (console.warn = warn));
  await using locks = testLocks({}, "woven");
  const left = deferred();
  const entered = deferred();
  const unfinished = pay("A1", () => {
    entered.resolve();
    return left.promise;
  });
  await entered.promise;
  await t.throwsAsync(locks.reset(), {
    message:
      "These locks are still held at the end of the test: LOCK_payOrder_A1 (pay). Fix: await the locked calls in the test",
  });
  await pay("A1");
  t.deepEqual(locks.acquired, ["LOCK_payOrder_A1"]);
  t.deepEqual(locks.held, []);
  left.resolve();
  await t.throwsAsync(unfinished, { code: "LOCK_LOST" });
  t.is(warnings.length, 1);
  t.regex(
    warnings[0] ?? "",
    /^lockweave: LOCK_payOrder_A1 \(pay\) [0-9a-f]{8} lost the lock: shutdown\(\) revoked it/,
  );
});

test.serial(
  "reset() names a lock that a running body holds even if the test has replaced the timers",
  async (t) => {
    const locks = testLocks({ woven: false });
    t.teardown(() => locks.close());
    const end = deferred();
    const real = { setTimeout: globalThis.setTimeout, setImmediate: globalThis.setImmediate };
    const { warn } = console;
    const never = (): number => 0; // A runner's fake timers do not run until a test advances them.
    Object.assign(globalThis, { setTimeout: never, setImmediate: never });
    console.warn = () => {};
    t.teardown(() => {
      Object.assign(globalThis, real);
      console.warn = warn;
    });
    const held = withLock("order", () => end.promise);
    while (locks.held.length === 0) await new Promise((resolve) => void real.setImmediate(resolve));
    await t.throwsAsync(locks.reset(), {
      message: /^These locks are still held at the end of the test: .*order/,
    });
    end.resolve();
    await t.throwsAsync(held, { instanceOf: LockLostError });
  },
);

test.serial("calls throw after close(), and testLocks() can be called again", async (t) => {
  const locks = testLocks({}, "woven");
  await locks.close();
  await t.throwsAsync(pay("A1"), { code: "LOCK_CLOSED" });
  await using others = testLocks({}, "woven");
  await pay("A1");
  t.deepEqual(locks.acquired, []);
  t.deepEqual(others.acquired, ["LOCK_payOrder_A1"]);
});

test.serial("configure() and a second testLocks() throw while testLocks() is active", async (t) => {
  await using locks = testLocks({}, "woven");
  t.throws(() => configure({ store: memoryStore(), woven: false }), { instanceOf: LockMisconfiguredError });
  t.throws(() => testLocks({}, "woven"), { instanceOf: LockMisconfiguredError });
  await pay("A1");
  t.deepEqual(locks.acquired, ["LOCK_payOrder_A1"]);
});

test.serial("testLocks() rejects invalid options", (t) => {
  for (const options of [{ wait: true }, { waiting: 1 }, { woven: 1 }, null, 1]) {
    t.throws(() => testLocks(options as TestLocksOptions, "woven"), {
      instanceOf: LockOptionError,
      message: /^Expected testLocks\(\) or testLocks\(\{ waiting: true \}\), got /,
    });
  }
});

test.serial("testLocks() throws in an unwoven file, and names the fixes", async (t) => {
  for (const options of [undefined, {}, { waiting: true }, { woven: true }]) {
    const { message } = t.throws(() => testLocks(options), { code: "LOCK_NOT_WOVEN" });
    for (const fix of [
      "npx lockweave init",
      "lockweave/vite",
      "extends: true",
      "lockweave/jest",
      "lockweave/register",
    ])
      t.true(message.includes(fix), message);
  }
  await using locks = testLocks({ woven: false });
  await pay("A1");
  t.deepEqual(locks.acquired, ["LOCK_payOrder_A1"]);
});
