import test from "ava";
import { LockLostError } from "../../runtime/base/errors";
import type { Lock } from "../../runtime/lock/lock";
import { runInside } from "../../runtime/lock/reentrancy";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";

const KEY = "LOCK_account_1";
const OUTER = { reentrant: true, lockTime: "3s" } as const;
const INNER = { ...OUTER, holdAtMost: "5s" } as const;
const LOST = { instanceOf: LockLostError, message: /holdAtMost of the reentrant call has passed/ } as const;

test("an inner body loses the lock at its own holdAtMost, and the outer body keeps it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, OUTER, async (around) => {
    await passes(fleet.clock, 2_000);
    const inner = process.call(KEY, INNER, async (lock) => {
      const { signal } = lock;
      await passes(fleet.clock, 4_999);
      t.notThrows(() => lock.assertHeld());
      t.is(lock.remaining(), 1);
      t.false(lock.isLost);
      t.false(signal.aborted);
      await passes(fleet.clock, 1);
      t.throws(() => lock.assertHeld(), LOST);
      t.is(lock.remaining(), 0);
      t.true(lock.isLost);
      t.true(signal.aborted);
      t.throws(() => signal.throwIfAborted(), LOST);
      t.is(lock.storeValue, undefined);
      t.notThrows(() => around.assertHeld());
      t.false(around.signal.aborted);
    });
    await t.throwsAsync(inner, LOST);
    await passes(fleet.clock, 60_000);
    t.notThrows(() => around.assertHeld());
    t.false(await fleet.isFree(KEY));
    return "done";
  });
  await fleet.clock.advance(70_000);
  t.is(await outer, "done");
  t.is(fleet.store.releases, 1);
  await fleet.leftNothing(t, KEY, process);
});

test("a timer aborts the signal of an inner body at the end of its own holdAtMost", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const abortedAt = deferred<number>();
  const startedAt = fleet.clock.now();
  const outer = process.call(KEY, OUTER, async () => {
    const inner = process.call(KEY, INNER, async ({ signal }) => {
      signal.addEventListener("abort", () => abortedAt.resolve(fleet.clock.now()));
      await abortedAt.promise;
    });
    await t.throwsAsync(inner, LOST);
  });
  await fleet.clock.advance(20_000);
  t.is((await abortedAt.promise) - startedAt, 5_000);
  await outer;
  await fleet.leftNothing(t, KEY, process);
});

test("an inner body that ends in time loses nothing and leaves no timer", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, OUTER, async (around) => {
    const timers = fleet.clock.pendingTimers;
    const inner = await process.call(KEY, INNER, (lock) => lock);
    t.is(fleet.clock.pendingTimers, timers);
    t.throws(() => inner?.assertHeld(), { instanceOf: LockLostError, message: /it was released/ });
    t.notThrows(() => around.assertHeld());
  });
  t.deepEqual(fleet.warnings, []);
  await fleet.leftNothing(t, KEY, process);
});

test("the error of an inner body wins over the loss at its holdAtMost, and the loss is logged", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, OUTER, async () => {
    const inner = process.call(KEY, INNER, async () => {
      await passes(fleet.clock, 6_000);
      throw new Error("the body failed");
    });
    await t.throwsAsync(inner, { message: "the body failed" });
  });
  await fleet.clock.advance(20_000);
  await outer;
  t.is(fleet.warnings.length, 1);
  t.regex(fleet.warnings.join(), LOST.message);
  await fleet.leftNothing(t, KEY, process);
});

test("an inner body reports the loss at its holdAtMost even if no timer has run", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...OUTER, lockTime: "60s" }, async (around) => {
    const inner = process.call(KEY, { ...INNER, lockTime: "5s" }, (lock) => {
      fleet.clock.freeze(5_000);
      t.throws(() => lock.assertHeld(), LOST);
      t.true(lock.signal.aborted);
    });
    await t.throwsAsync(inner, LOST);
    t.notThrows(() => around.assertHeld());
  });
  t.is(fleet.store.releases, 1);
  await fleet.leftNothing(t, KEY, process);
});

test("an inner body that hangs after the outer body ended does not keep the lock beyond its holdAtMost", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const hanging = job();
  let inner: Promise<unknown> = Promise.resolve();
  let innerLock: Lock | undefined;
  await process.call(KEY, OUTER, async () => {
    inner = process.call(KEY, INNER, (lock) => {
      innerLock = lock;
      return hanging.body();
    });
    await hanging.running;
  });
  const next = job();
  const waiting = process.call(KEY, { lockTime: "3s", waitTime: "30s" }, next.body);
  await fleet.clock.advance(4_999);
  t.is(innerLock?.remaining(), 1);
  await fleet.clock.advance(1);
  await next.running;
  t.is(innerLock?.remaining(), 0);
  t.is(innerLock?.storeValue, undefined);
  hanging.end();
  await t.throwsAsync(inner, LOST);
  t.false(await fleet.isFree(KEY), "the late end of the inner body does not release the next holder's lock");
  next.end();
  await waiting;
  await fleet.leftNothing(t, KEY, process);
});

test("the last inner body releases the lock and reports its loss even if no timer has run", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const hanging = job();
  let inner: Promise<unknown> = Promise.resolve();
  await process.call(KEY, { ...OUTER, lockTime: "60s" }, async () => {
    inner = process.call(KEY, { ...INNER, lockTime: "5s" }, hanging.body);
    await hanging.running;
  });
  fleet.clock.freeze(5_000);
  hanging.end();
  await t.throwsAsync(inner, LOST);
  t.true(await fleet.isFree(KEY));
  t.is(fleet.store.releases, 1);
  await fleet.leftNothing(t, KEY, process);
});

test("an inner body with its own holdAtMost learns of a deleted key at the next renewal", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, { ...OUTER, onLost: "warn" }, async () => {
    const inner = process.call(KEY, INNER, async ({ signal }) => {
      const abortedAt = deferred<number>();
      signal.addEventListener("abort", () => abortedAt.resolve(fleet.clock.now()));
      await fleet.endHold(KEY);
      await passes(fleet.clock, 1_000);
      t.is(await abortedAt.promise, 6_000, "at the next renewal");
      t.true(signal.aborted);
    });
    await t.throwsAsync(inner, { instanceOf: LockLostError, message: /its key disappeared early/ });
  });
  await fleet.clock.advance(5_000);
  await outer;
  await fleet.leftNothing(t, KEY, process);
});

test("a body inside an inner body is not bound by the holdAtMost around it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, OUTER, () =>
    t.throwsAsync(
      process.call(KEY, INNER, (middle) =>
        process.call(KEY, OUTER, async (innermost) => {
          await passes(fleet.clock, 6_000);
          t.throws(() => middle.assertHeld(), LOST);
          t.notThrows(() => innermost.assertHeld());
        }),
      ),
      LOST,
    ),
  );
  await fleet.clock.advance(20_000);
  await outer;
  await fleet.leftNothing(t, KEY, process);
});

test("an inner body does not extend the lock beyond its own holdAtMost", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, OUTER, (around) =>
    process.call(KEY, INNER, async (inner) => {
      await inner.extend("10m");
      t.is(inner.remaining(), 5_000 * 0.99 - 2);
      t.is(around.remaining(), inner.remaining());
    }),
  );
  await fleet.leftNothing(t, KEY, process);
});

test("the holdAtMost of a nested multi-key lock counts from when all keys are held", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const other = "LOCK_account_2";
  const holder = job();
  const holding = fleet.process().call(other, {}, holder.body);
  await holder.running;
  const options = { ...INNER, waitTime: "30s" } as const;
  const outer = process.call(KEY, OUTER, async () => {
    const locks = process.locks([KEY, other], options);
    while (!(await locks.acquire())) await locks.retryCheck();
    const [inner] = locks.locks;
    const body = async (): Promise<void> => {
      await passes(fleet.clock, 4_900);
      t.notThrows(() => locks.assertHeld());
      t.false(inner?.signal.aborted);
      await passes(fleet.clock, 100);
      t.is(inner?.remaining(), 0);
      t.true(inner?.signal.aborted);
      t.true(locks.signal.aborted);
    };
    await runInside(locks.locks, body);
    await t.throwsAsync(locks.release(), LOST);
  });
  await fleet.clock.advance(7_000); // Longer than `holdAtMost`.
  holder.end();
  await holding;
  await fleet.clock.advance(20_000);
  await outer;
  await fleet.leftNothing(t, KEY, process);
  await fleet.leftNothing(t, other, process);
});

test("an inner lock with holdAtMost that is released before it enters leaves nothing behind", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, OUTER, async () => {
    const inner = process.lock(KEY, { ...INNER, holdAtMost: "60s", lockTime: "60s" });
    const entering = inner.acquire();
    await inner.release();
    t.false(await entering);
    t.is(await process.call(KEY, OUTER, idle), "done");
  });
  await fleet.leftNothing(t, KEY, process);
});
