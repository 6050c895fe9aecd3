import test from "ava";
import {
  LockClosedError,
  LockMisconfiguredError,
  LockOptionError,
  LockUnreachableError,
  LockWaitTimeoutError,
} from "../../runtime/base/errors";
import { settle } from "../../runtime/lock/settings";
import { Fleet } from "../support/fleet";
import { idle } from "../support/jobs";
import { replyLost } from "../support/tampered-store";

// The whole wait budget in one option.

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
const DAY = 86_400 * SECOND;

/** Notes when a call has ended. */
function watched<T>(call: Promise<T>): { readonly call: Promise<T>; readonly hasEnded: () => boolean } {
  let isOver = false;
  const end = (): void => void (isOver = true);
  call.then(end, end);
  return { call, hasEnded: () => isOver };
}

test("a waiter gives up exactly when `wait` is over, and its error says so", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, DAY);
  const { call, hasEnded } = watched(
    t.throwsAsync(fleet.process().call(KEY, { wait: "12s" }, idle), {
      instanceOf: LockWaitTimeoutError,
      message: /did not become free within 12000 ms \(wait=12000ms\)/,
    }),
  );
  await fleet.clock.advance(11_999);
  t.false(hasEnded());
  await fleet.clock.advance(1);
  t.true(hasEnded());
  await call;
  await fleet.releaseElsewhere(KEY);
  await fleet.leftNothing(t, KEY);
});

test("waiters with `wait` check every `waitTime` of the defaults", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, DAY);
  const process = fleet.process({ defaults: { waitTime: "100ms", retryTimes: 100 } });
  const waiting = t.throwsAsync(process.call(KEY, { wait: "250ms" }, idle), {
    instanceOf: LockWaitTimeoutError,
  });
  await fleet.clock.settle();
  const first = fleet.store.acquireRequests.length;
  await fleet.clock.advance(200);
  t.is(fleet.store.acquireRequests.length, first + 2);
  await fleet.clock.advance(50);
  await waiting;
});

test("a waiter with `wait` waits, even if the default `waitTime` is 0", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 3 * SECOND);
  const process = fleet.process({ defaults: { waitTime: "0ms" } });
  const waiting = process.call(KEY, { wait: "10s" }, idle);
  await fleet.clock.advance(3 * SECOND);
  t.is(await waiting, "done");
});

for (const wait of [0, "0s"] as const) {
  test(`with \`wait: ${wait}\`, a caller tries once and does not join the queue`, async (t) => {
    const fleet = new Fleet();
    await fleet.acquireElsewhere(KEY, DAY);
    await t.throwsAsync(fleet.process().call(KEY, { wait }, idle), { instanceOf: LockWaitTimeoutError });
    t.is(await fleet.process().call(KEY, { wait, onFailure: "skip" }, () => t.fail()), undefined);
    t.is(fleet.store.acquireRequests.length, 2);
    await fleet.releaseElsewhere(KEY);
    await fleet.leftNothing(t, KEY);
    t.is(await fleet.process().call(KEY, { wait }, idle), "done");
  });
}

test("onFailure applies at the end of `wait`", async (t) => {
  class OrderBusyError extends Error {}
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, DAY);
  const process = fleet.process();
  const skipped = process.call(KEY, { wait: "2s", onFailure: "skip" }, () => t.fail());
  const failed = t.throwsAsync(process.call(KEY, { wait: "2s" }, idle, { Failure: OrderBusyError }), {
    instanceOf: OrderBusyError,
  });
  await fleet.clock.advance(2 * SECOND);
  t.is(await skipped, undefined);
  await failed;
});

test('with `wait: "forever"`, a caller gets the lock after days', async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, 3 * DAY);
  const waiting = fleet.process().call(KEY, { wait: "forever" }, () => fleet.clock.now());
  const since = fleet.clock.now();
  for (let hour = 0; hour < 72; hour += 1) await fleet.clock.advance(DAY / 24);
  t.is(await waiting, since + 3 * DAY);
  await fleet.leftNothing(t, KEY);
});

test('with `wait: "forever"`, a caller survives an outage of the store', async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  const { call, hasEnded } = watched(fleet.process().call(KEY, { wait: "forever" }, idle));
  await fleet.clock.advance(600 * SECOND);
  t.false(hasEnded());
  fleet.store.onAcquire = (send) => send();
  await fleet.clock.advance(60 * SECOND);
  t.is(await call, "done");
});

test("a signal ends an endless wait with its reason", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, DAY);
  const controller = new AbortController();
  const waiting = fleet.process().call(KEY, { wait: "forever" }, idle, { signal: controller.signal });
  await fleet.clock.advance(3_600 * SECOND);
  const reason = new Error("the client went away");
  controller.abort(reason);
  t.is(await t.throwsAsync(waiting), reason);
  await fleet.releaseElsewhere(KEY);
  await fleet.leftNothing(t, KEY);
});

test("shutdown() ends an endless wait", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, DAY);
  const process = fleet.process();
  const waiting = t.throwsAsync(process.call(KEY, { wait: "forever" }, idle), {
    instanceOf: LockClosedError,
  });
  await fleet.clock.advance(3_600 * SECOND);
  process.close();
  await waiting;
  await fleet.releaseElsewhere(KEY);
  await fleet.leftNothing(t, KEY, process);
});

test("LOCK_MISCONFIGURED ends an endless wait", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere(KEY, DAY);
  const waiting = t.throwsAsync(fleet.process().call(KEY, { wait: "forever" }, idle), {
    instanceOf: LockMisconfiguredError,
  });
  await fleet.clock.advance(5 * SECOND);
  const refuse = (): Promise<never> => Promise.reject(new LockMisconfiguredError("no rights"));
  fleet.store.onAcquire = refuse;
  fleet.store.onEnqueue = refuse;
  await fleet.clock.advance(5 * SECOND);
  await waiting;
});

test("with several keys, `wait` is the budget of all of them together", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere("b", 4 * SECOND);
  await fleet.acquireElsewhere("c", DAY);
  const locks = fleet.process().locks(["a", "b", "c"], { wait: "6s" });
  const entering = (async (): Promise<void> => {
    while (!(await locks.acquire())) await locks.retryCheck();
  })();
  const { call, hasEnded } = watched(t.throwsAsync(entering, { instanceOf: LockWaitTimeoutError }));
  await fleet.clock.advance(5_999);
  t.false(hasEnded());
  await fleet.clock.advance(1);
  await call;
  t.true(await fleet.isForgotten("a"));
});

test("with several keys, an endless wait ends when all are free", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere("b", 3_600 * SECOND);
  const locks = fleet.process().locks(["a", "b", "c"], { wait: "forever" });
  const entering = (async (): Promise<void> => {
    while (!(await locks.acquire())) await locks.retryCheck();
  })();
  await fleet.clock.advance(3_600 * SECOND);
  await entering;
  t.true(locks.remaining() > 0);
  await locks.release();
});

test("if the store never replies, LOCK_UNREACHABLE is thrown at the end of `wait`", async (t) => {
  const fleet = new Fleet();
  fleet.store.onAcquire = replyLost;
  const { call, hasEnded } = watched(
    t.throwsAsync(fleet.process().call(KEY, { wait: "7s" }, idle), {
      instanceOf: LockUnreachableError,
      message: /within 7000 ms \(wait=7000ms\)/,
    }),
  );
  await fleet.clock.advance(6_999);
  t.false(hasEnded());
  await fleet.clock.advance(1);
  await call;
});

test("`wait` replaces the inherited `retryTimes` and `waitTime`, and they replace an inherited `wait`", (t) => {
  const { defaults } = new Fleet().process({ defaults: { retryTimes: 7, waitTime: "2s" } }).locker;
  t.like(settle({ wait: "1s" }, defaults), { waitMs: 1_000, waitTimeMs: 2_000 });
  const waiting = new Fleet().process({ defaults: { wait: "1m" } }).locker.defaults;
  t.is(settle({}, waiting).waitMs, 60_000);
  t.is(settle({ wait: 0 }, waiting).waitMs, 0);
  t.like(settle({ retryTimes: 0 }, waiting), { waitMs: undefined, retryTimes: 0, waitTimeMs: 5_000 });
  t.like(settle({ waitTime: "1s" }, waiting), { waitMs: undefined, retryTimes: 3, waitTimeMs: 1_000 });
});

test("`wait` cannot be combined with `retryTimes` or `waitTime` in the same place", (t) => {
  for (const [name, value] of [
    ["retryTimes", 3],
    ["waitTime", "5s"],
  ] as const) {
    const expected = {
      instanceOf: LockOptionError,
      message: `\`${name}\` and \`wait\` cannot be combined: \`wait\` is the whole wait budget`,
    };
    t.throws(() => new Fleet().process().lock(KEY, { wait: "5s", [name]: value }), expected);
    t.throws(() => new Fleet().process({ defaults: { wait: "5s", [name]: value } }), {
      message: new RegExp(`\`${name}\` and \`wait\` cannot be combined`),
    });
    t.notThrows(() => new Fleet().process().lock(KEY, { wait: "5s", [name]: undefined }));
  }
});
