import test from "ava";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { idle, passes } from "../support/jobs";
import { replyLost } from "../support/tampered-store";

const KEY = "LOCK_nightly";
const SECOND = 1_000;
const AT_LEAST = { lockTime: "30s", lockAtLeast: "10s" } as const;

test("neither this nor another process gets the key before lockAtLeast is over", async (t) => {
  const fleet = new Fleet();
  const [here, there] = [fleet.process(), fleet.process()];
  t.is(await here.call(KEY, AT_LEAST, () => "done"), "done");
  const skips = { ...AT_LEAST, retryTimes: 0, onFailure: "skip" } as const;
  await fleet.clock.advance(9_999);
  t.is(await here.call(KEY, skips, () => t.fail()), undefined);
  t.is(await there.call(KEY, skips, () => t.fail()), undefined);
  await fleet.clock.advance(1);
  t.true(await fleet.isFree(KEY));
  t.is(await there.call(KEY, skips, () => "later"), "later");
});

test("a waiter in this or another process gets the key as soon as lockAtLeast is over", async (t) => {
  for (const isHere of [true, false]) {
    const fleet = new Fleet();
    const here = fleet.process();
    const end = deferred();
    const first = here.call(KEY, AT_LEAST, () => end.promise);
    await fleet.clock.settle();
    const began: number[] = [];
    const second = (isHere ? here : fleet.process()).call(KEY, { retryTimes: 100 }, () => {
      began.push(fleet.clock.now());
    });
    const from = fleet.clock.now();
    await fleet.clock.advance(2 * SECOND);
    end.resolve();
    await first;
    await fleet.clock.advance(7_999);
    t.deepEqual(began, []);
    await fleet.clock.advance(1_000);
    await second;
    const [at = 0] = began;
    t.true(at - from >= 10 * SECOND && at - from < 10.1 * SECOND, `after ${at - from} ms`);
    t.true(await fleet.isForgotten(KEY));
  }
});

test("a body that takes as long as lockAtLeast releases the key immediately", async (t) => {
  const fleet = new Fleet();
  const here = fleet.process();
  const first = here.call(KEY, AT_LEAST, () => passes(fleet.clock, 10 * SECOND));
  await fleet.clock.settle();
  const from = fleet.clock.now();
  const second = here.call(KEY, { lockTime: "30s" }, () => fleet.clock.now() - from);
  await fleet.clock.advance(10 * SECOND);
  await first;
  t.is(await second, 10 * SECOND);
  t.true(await fleet.isFree(KEY));
});

test("a body that fails also keeps the key for lockAtLeast", async (t) => {
  const fleet = new Fleet();
  const failing = async (): Promise<never> => Promise.reject(new Error("boom"));
  await t.throwsAsync(fleet.process().call(KEY, AT_LEAST, failing), { message: "boom" });
  await fleet.clock.advance(9_999);
  t.false(await fleet.isFree(KEY));
});

test("a caller that aborts before its body runs does not keep the key", async (t) => {
  const fleet = new Fleet();
  const arrival = deferred();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await arrival.promise;
    return reply;
  };
  const gone = new AbortController();
  const asked = fleet.process().call(KEY, AT_LEAST, idle, { signal: gone.signal });
  gone.abort(new Error("gone"));
  await t.throwsAsync(asked, { message: "gone" });
  arrival.resolve();
  await fleet.clock.settle();
  t.true(await fleet.isFree(KEY));
});

test("a release whose reply is lost is retried without keeping the key beyond lockAtLeast", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = () => new Promise(() => {});
  const called = fleet.process().call(KEY, AT_LEAST, idle);
  await fleet.clock.advance(2 * SECOND);
  await called;
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(7 * SECOND);
  t.regex((await fleet.valueOf(KEY)) ?? "", /^closed:/);
  await fleet.clock.advance(SECOND + 1);
  t.true(await fleet.isFree(KEY));

  fleet.store.onRelease = replyLost;
  const again = fleet.process().call(KEY, AT_LEAST, idle);
  await fleet.clock.advance(10 * SECOND + 1);
  await again;
  t.true(await fleet.isFree(KEY));
});

test("a lock that is revoked at the end of its process keeps its key for lockAtLeast", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const lock = process.lock(KEY, AT_LEAST);
  t.true(await lock.acquire());
  await fleet.clock.advance(3 * SECOND);
  process.close();
  process.locker.manager.revokeAll({ outcome: "revoked", because: "the process ends", isEarly: false });
  await fleet.clock.advance(6_999);
  t.regex((await fleet.valueOf(KEY)) ?? "", /^closed:/);
  await fleet.clock.advance(1);
  t.true(await fleet.isFree(KEY));
  await t.throwsAsync(lock.release(), { code: "LOCK_LOST" });
});

test("a late acquire reply does not free the key before lockAtLeast is over", async (t) => {
  const fleet = new Fleet();
  const here = fleet.process();
  const [late, closing] = [deferred(), deferred()];
  let takes = 0;
  // The reply to the first acquire arrives after the body. The next acquire finds the hold.
  fleet.store.onAcquire = async (send) => {
    takes += 1;
    const isFirst = takes === 1;
    const reply = await send();
    if (isFirst) await late.promise;
    return reply;
  };
  const call = here.call(KEY, { ...AT_LEAST, retryTimes: 3 }, () => "done");
  // The release is delayed on its way and retried later.
  fleet.store.onRelease = async (send) => {
    await closing.promise;
    return await send();
  };
  await fleet.clock.advance(2 * SECOND);
  fleet.store.onRelease = (send) => send();
  late.resolve();
  await fleet.clock.advance(50);
  t.false(await fleet.isFree(KEY));
  await fleet.clock.advance(6 * SECOND);
  t.false(await fleet.isFree(KEY));
  t.is(await call, "done");
  closing.resolve();
  await fleet.clock.advance(10 * SECOND);
  t.true(await fleet.isFree(KEY));
});
