import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test from "ava";
import { withLock } from "../../runtime/with-lock";
import { configure, shutdown } from "../../runtime/config/configure";
import { LockLostError, LockOptionError } from "../../runtime/base/errors";
import type { LockEvents, Outcome } from "../../runtime/lock/events";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { idle, job } from "../support/jobs";
import { connectionRefused, replyLate, replyLost } from "../support/tampered-store";

const KEY = "LOCK_payOrder_background";
const SECOND = 1_000;
const background = { release: "background" } as const;

/** Collects the outcomes of the key's release events while `act` runs. */
async function endsOf(key: string, act: () => Promise<unknown>): Promise<Outcome[]> {
  const ends: Outcome[] = [];
  const listen = (message: unknown): void => {
    const event = message as LockEvents["lockweave:release"];
    if (event.key === key) ends.push(event.outcome);
  };
  subscribe("lockweave:release", listen);
  try {
    await act();
  } finally {
    unsubscribe("lockweave:release", listen);
  }
  return ends;
}

/** Returns whether the promise settles without time passing. */
async function hasSettled(fleet: Fleet, promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  void promise.finally(() => (isSettled = true));
  await fleet.clock.settle();
  return isSettled;
}

test("the caller does not wait for the release reply, but the next local caller does", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const reply = deferred();
  fleet.store.onRelease = replyLate(reply.promise);
  const call = process.call(KEY, background, idle);
  t.true(await hasSettled(fleet, call));
  t.is(await call, "done");
  t.is(fleet.store.releases, 1);
  const next = process.call(KEY, {}, idle);
  t.false(await hasSettled(fleet, next));
  t.is(fleet.store.acquireRequests.length, 1);
  fleet.store.onRelease = (send) => send();
  reply.resolve();
  t.is(await next, "done");
  t.is(fleet.store.acquireRequests.length, 2);
  await fleet.leftNothing(t, KEY, process);
});

test("a holder that hands off the lock does not wait for the next body", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [first, second] = [job(), job()];
  const one = process.call(KEY, background, first.body);
  await first.running;
  const other = process.call(KEY, background, second.body);
  await fleet.clock.settle();
  first.end();
  await second.running;
  t.true(await hasSettled(fleet, one));
  t.is(fleet.store.acquireRequests.length, 1);
  second.end();
  t.deepEqual(await Promise.all([one, other]), ["done", "done"]);
  await fleet.leftNothing(t, KEY, process);
});

test("a loss that only the store notices is logged and reported in the release event", async (t) => {
  const fleet = new Fleet();
  const key = "LOCK_payOrder_only_the_store";
  const ends = await endsOf(key, async () => {
    const call = fleet.process().call(key, background, async () => {
      await fleet.endHold(key);
      return "done";
    });
    t.is(await call, "done");
    await fleet.clock.settle();
  });
  t.deepEqual(ends, ["deleted"]);
  t.regex(
    fleet.warnings.join("\n"),
    /the lock was lost before the body ended \(its key disappeared early: it was deleted, evicted, or lost/,
  );
});

test("a loss that the local clock notices is thrown", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = connectionRefused;
  await t.throwsAsync(
    fleet.process().call(KEY, background, () => fleet.clock.freeze(30 * SECOND)),
    { instanceOf: LockLostError },
  );
});

test("the caller waits for the release reply if its own deadline has passed", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRenew = replyLost; // The store applies the renewals, but the holder gets no reply.
  const { body, running, end } = job();
  const holder = fleet.process().call(KEY, { ...background, lockTime: "10s" }, body);
  await running;
  await fleet.clock.advance(12 * SECOND);
  const reply = deferred();
  fleet.store.onRelease = replyLate(reply.promise);
  end();
  t.false(await hasSettled(fleet, holder));
  reply.resolve();
  t.is(await holder, "done");
});

test("an unconfirmed release logs a warning and is sent again", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRelease = replyLost;
  t.is(await process.call(KEY, background, idle), "done");
  await fleet.clock.advance(SECOND);
  t.regex(
    fleet.warnings.join("\n"),
    /the store did not confirm the release \(no reply from the store within 1000 ms\)/,
  );
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(1_100);
  await fleet.leftNothing(t, KEY, process);
});

test("a release beyond the openReleases limit is awaited", async (t) => {
  const fleet = new Fleet();
  const reply = deferred();
  const process = fleet.process({ openReleases: 2 });
  fleet.store.onRelease = replyLate(reply.promise);
  const call = (key: string, of: FleetProcess = process): Promise<unknown> => of.call(key, background, idle);
  const calls = ["a", "b", "c"].map((key) => call(key));
  t.deepEqual(await Promise.all(calls.map((one) => hasSettled(fleet, one))), [true, true, false]);
  t.false(await hasSettled(fleet, call("d", fleet.process({ openReleases: 0 }))));
  reply.resolve();
  await Promise.all(calls);
  const later = deferred();
  fleet.store.onRelease = replyLate(later.promise);
  t.true(await hasSettled(fleet, call("a")));
  later.resolve();
  await fleet.leftNothing(t, "a", process);
});

test("openReleases must be a whole number from 0 to 1000000", (t) => {
  for (const openReleases of [-1, 1.5, Number.NaN, 1_000_001]) {
    t.throws(() => new Fleet().process({ openReleases }), {
      instanceOf: LockOptionError,
      message: /^Expected `openReleases` to be a whole number from 0 to 1000000, got /,
    });
  }
});

test.serial("a shutdown waits for background releases", async (t) => {
  const fleet = new Fleet();
  configure({ store: fleet.store, clock: fleet.clock }, "woven");
  const reply = deferred();
  fleet.store.onRelease = replyLate(reply.promise);
  t.is(await withLock(KEY, background, idle), "done");
  const down = shutdown();
  t.false(await hasSettled(fleet, down));
  t.false(fleet.store.closed);
  reply.resolve();
  await down;
  t.true(fleet.store.closed);
});
