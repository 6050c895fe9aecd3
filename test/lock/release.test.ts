import test from "ava";
import { LockLostError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { job, passes } from "../support/jobs";
import { connectionRefused, replyLost } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("the body's own error wins over the loss of the lock, and the loss is logged", async (t) => {
  const fleet = new Fleet();
  const boom = new Error("boom");
  const error = await t.throwsAsync(
    fleet.process().call(KEY, {}, async () => {
      await fleet.endHold(KEY);
      throw boom;
    }),
  );
  t.is(error, boom);
  t.regex(
    fleet.warnings.join("\n"),
    /the lock was lost before the body ended \(its key disappeared early: it was deleted, evicted, or lost/,
  );
});

test("a body that throws undefined fails with undefined", async (t) => {
  const fleet = new Fleet();
  const outcome = fleet.process().call(KEY, {}, async () => {
    await fleet.endHold(KEY);
    // oxlint-disable-next-line typescript/only-throw-error -- Code out there does it.
    throw undefined;
  });
  t.deepEqual(
    await outcome.then(
      () => "success",
      (error: unknown) => ["failure", error],
    ),
    ["failure", undefined],
  );
});

test("a body's error is thrown even if the release cannot be sent", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = connectionRefused;
  await t.throwsAsync(
    fleet.process().call(KEY, {}, () => Promise.reject(new Error("boom"))),
    { message: "boom" },
  );
});

test("a body's result is returned even if the release reply is lost, and a warning is logged", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = replyLost;
  const call = fleet.process().call(KEY, {}, () => "result");
  await fleet.clock.advance(SECOND);
  t.is(await call, "result");
  t.regex(
    fleet.warnings.join("\n"),
    /the store did not confirm the release \(no reply from the store within 1000 ms\)\. Lockweave resends it/,
  );
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(1_100);
  await fleet.leftNothing(t, KEY);
});

test("a lock counts as lost if its deadline has passed and its release cannot be sent", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = connectionRefused;
  const error = await t.throwsAsync(
    fleet.process().call(KEY, {}, () => fleet.clock.freeze(30 * SECOND)),
    { instanceOf: LockLostError },
  );
  t.like(error, { cause: { message: "connect ECONNREFUSED" } });
});

test("a release that still finds its key after the deadline reports no loss", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRenew = replyLost; // The store applies the renewals, but the holder gets no reply.
  const { body, running, end } = job();
  const holder = fleet.process().call(KEY, { lockTime: "10s" }, body);
  await running;
  await fleet.clock.advance(12 * SECOND);
  t.regex(fleet.warnings.join("\n"), /lost the lock: its deadline passed before a renewal succeeded/);
  end();
  t.is(await holder, "done");
});

test("a second release does nothing", async (t) => {
  const fleet = new Fleet();
  await fleet.process().call(KEY, {}, async (lock) => {
    await lock.release();
    await fleet.acquireElsewhere(KEY, 60 * SECOND);
  });
  t.is(fleet.store.releases, 1);
  t.false(await fleet.isFree(KEY));
});

test("a lock is no longer held as soon as its release starts", async (t) => {
  const fleet = new Fleet();
  const arrival = deferred();
  fleet.store.onRelease = async (send) => {
    await arrival.promise;
    return await send();
  };
  const lock = fleet.process().lock(KEY);
  t.true(await lock.acquire());
  const released = lock.release();
  await fleet.clock.settle();
  t.is(lock.remaining(), 0);
  t.throws(() => lock.assertHeld(), { instanceOf: LockLostError });
  arrival.resolve();
  await released;
});

test("a release that is answered after the lock time reports the missing key without a cause", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRelease = async (send) => {
    await passes(fleet.clock, 50);
    return await send();
  };
  const call = process.call(KEY, { lockTime: "200ms", watchdog: false }, () => passes(fleet.clock, 180));
  const outcome = t.throwsAsync(call, {
    instanceOf: LockLostError,
    message: /the reply came after the lock time, and its key was gone/,
  });
  await fleet.clock.advance(10_000);
  await outcome;
  await fleet.leftNothing(t, KEY, process);
});
