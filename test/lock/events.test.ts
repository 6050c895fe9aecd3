import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test from "ava";
import type { LockEvents } from "../../runtime/lock/events";
import { Fleet, type FleetProcess } from "../support/fleet";
import { idle, passes } from "../support/jobs";
import { Machine } from "../support/machine";
import { connectionRefused } from "../support/tampered-store";

// The events of a lock. All tests in the process share the channels, so each test has its own key.

const NAMES: readonly (keyof LockEvents)[] = [
  "lockweave:acquire",
  "lockweave:wait",
  "lockweave:grant",
  "lockweave:give-up",
  "lockweave:renew",
  "lockweave:lost",
  "lockweave:release",
];

type Published = { readonly event: string } & Record<string, unknown>;

/** Collects the events of the key that are published while `act` runs. */
async function publishedOf(key: string, act: () => Promise<unknown>): Promise<Published[]> {
  const published: Published[] = [];
  const listen = (message: unknown, name: string | symbol): void => {
    const event = message as LockEvents["lockweave:acquire"];
    if (event.key === key) published.push({ event: String(name).replace("lockweave:", ""), ...event });
  };
  for (const name of NAMES) subscribe(name, listen);
  try {
    await act();
  } finally {
    for (const name of NAMES) unsubscribe(name, listen);
  }
  return published;
}

const events = (published: readonly Published[]): string[] => published.map(({ event }) => event);

/** Returns a body that takes this much virtual time. */
function takes(fleet: Fleet, ms: number): () => Promise<void> {
  return () => passes(fleet.clock, ms);
}

async function runs(fleet: Fleet, work: Promise<unknown>): Promise<void> {
  await fleet.clock.advance(60_000);
  await work;
}

test("a call for a free lock publishes `acquire`, `grant`, and `release` with one requestId", async (t) => {
  const fleet = new Fleet();
  const lock = fleet.process().lock("LOCK_story_1", { fencing: true }, "OrderService.pay");
  const published = await publishedOf("LOCK_story_1", async () => {
    t.true(await lock.acquire());
    await fleet.clock.advance(250);
    await lock.release();
  });
  t.deepEqual(events(published), ["acquire", "grant", "release"]);
  const { requestId, fencingToken } = lock;
  for (const event of published) {
    t.like(event, { key: "LOCK_story_1", store: "default", site: "OrderService.pay", requestId });
  }
  const [, grant, release] = published;
  t.is(typeof fencingToken, "number");
  t.like(grant, { waitedMs: 0, fencingToken });
  t.like(release, { heldMs: 250, outcome: "released" });
});

test("a waiter publishes one `wait` event, and a `grant` with its waiting time", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const published = await publishedOf("LOCK_story_2", async () => {
    const first = process.call("LOCK_story_2", {}, takes(fleet, 7_000));
    const second = process.call("LOCK_story_2", {}, takes(fleet, 1));
    await runs(fleet, Promise.all([first, second]));
  });
  t.deepEqual(events(published), ["acquire", "acquire", "wait", "grant", "release", "grant", "release"]);
  t.like(published[4], { heldMs: 7_000 });
  t.like(published[5], { waitedMs: 7_000, requestId: published[1]?.["requestId"] });
});

test("a wait that times out publishes `give-up`", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere("LOCK_story_3", 60_000);
  const published = await publishedOf("LOCK_story_3", () =>
    runs(
      fleet,
      t.throwsAsync(fleet.process().call("LOCK_story_3", { retryTimes: 1, waitTime: "2s" }, () => t.fail())),
    ),
  );
  t.deepEqual(events(published), ["acquire", "wait", "give-up"]);
  t.like(published[2], { waitedMs: 2_000, outcome: "failed" });
});

test("the `give-up` event distinguishes an error, a skipped body, and an abandoned lock", async (t) => {
  const fleet = new Fleet();
  await fleet.acquireElsewhere("LOCK_story_skip", 60_000);
  const process = fleet.process();
  const once = { retryTimes: 0 } as const;
  const published = await publishedOf("LOCK_story_skip", async () => {
    await process.call("LOCK_story_skip", { ...once, onFailure: "skip" }, () => t.fail());
    const several = process.locks(["LOCK_story_skip", "LOCK_story_skip_2"], { ...once, onFailure: "skip" });
    t.false(await several.acquire());
    t.false(await several.retryCheck());
    const released = process.lock("LOCK_story_skip", { waitTime: "9s" });
    t.false(await released.acquire());
    await released.release();
    const aborted = new AbortController();
    const refused = process.call("LOCK_story_skip", { waitTime: "9s" }, () => t.fail(), aborted);
    await fleet.clock.settle();
    aborted.abort();
    await t.throwsAsync(refused, { any: true });
    fleet.store.onAcquire = connectionRefused;
    await runs(
      fleet,
      process.call("LOCK_story_skip", { ...once, onUnreachable: "skip" }, () => t.fail()),
    );
  });
  t.deepEqual(
    published.filter(({ event }) => event === "give-up").map(({ outcome }) => outcome),
    ["skipped", "skipped", "abandoned", "failed", "unreachable"],
  );
});

test("each renewal publishes a `renew` event", async (t) => {
  const fleet = new Fleet();
  const published = await publishedOf("LOCK_story_4", () =>
    runs(fleet, fleet.process().call("LOCK_story_4", { lockTime: "3s" }, takes(fleet, 2_500))),
  );
  t.deepEqual(events(published), ["acquire", "grant", "renew", "renew", "release"]);
});

test("a renewal of a shared hold publishes one event for each reader", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const published = await publishedOf("LOCK_story_readers", () => {
    const read = (): Promise<unknown> =>
      process.call("LOCK_story_readers", { mode: "read", lockTime: "3s" }, takes(fleet, 1_500));
    return runs(fleet, Promise.all([read(), read(), read()]));
  });
  t.is(fleet.store.renewed[0], 1);
  const renewed = published.filter(({ event }) => event === "renew");
  t.is(renewed.length, 3);
  t.is(new Set(renewed.map(({ requestId }) => requestId)).size, 3);
});

test("a lost lock publishes `lost` when the loss is noticed, and its release has the outcome `expired`", async (t) => {
  const fleet = new Fleet();
  const process: FleetProcess = fleet.process();
  fleet.store.onRenew = connectionRefused;
  const published = await publishedOf("LOCK_story_5", () =>
    runs(fleet, t.throwsAsync(process.call("LOCK_story_5", { lockTime: "3s" }, takes(fleet, 9_000)))),
  );
  t.deepEqual(events(published), ["acquire", "grant", "lost", "release"]);
  t.like(published[2], { reason: "its deadline passed before a renewal succeeded (connect ECONNREFUSED)" });
  t.like(published[3], { outcome: "expired", heldMs: 9_000 });
});

test("a hand-off publishes the first holder's release immediately, before the next holder's grant", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onPeek = async (send) => {
    await passes(fleet.clock, 500);
    return await send();
  };
  const published = await publishedOf("LOCK_story_6", async () => {
    const first = process.call("LOCK_story_6", {}, takes(fleet, 50));
    const second = process.call("LOCK_story_6", {}, takes(fleet, 1_000));
    await runs(fleet, Promise.all([first, second]));
  });
  t.deepEqual(events(published), ["acquire", "acquire", "wait", "grant", "release", "grant", "release"]);
  t.like(published[4], { outcome: "handed off", heldMs: 50, requestId: published[0]?.["requestId"] });
  t.like(published[5], { waitedMs: 50, requestId: published[1]?.["requestId"] });
  t.like(published[6], { outcome: "released", heldMs: 1_000 });
});

test("a deleted key is the reason in the `lost` event and the outcome of the release", async (t) => {
  const fleet = new Fleet();
  const published = await publishedOf("LOCK_story_7", async () => {
    const lock = fleet.process().lock("LOCK_story_7", { lockTime: "3s", onLost: "warn" });
    t.true(await lock.acquire());
    await fleet.endHold("LOCK_story_7");
    await fleet.clock.advance(1_000);
    await lock.release();
  });
  t.deepEqual(events(published), ["acquire", "grant", "lost", "release"]);
  t.like(published[2], {
    reason: "its key disappeared early: it was deleted, evicted, or lost with the data of the store",
  });
  t.like(published[3], { outcome: "deleted" });
});

test("a release that finds its key deleted has the outcome `deleted`", async (t) => {
  const fleet = new Fleet();
  const published = await publishedOf("LOCK_story_8", async () => {
    const lock = fleet.process().lock("LOCK_story_8");
    t.true(await lock.acquire());
    await fleet.endHold("LOCK_story_8");
    await t.throwsAsync(lock.release(), { message: /its key disappeared early/ });
  });
  t.deepEqual(events(published), ["acquire", "grant", "release"]);
  t.like(published[2], { outcome: "deleted" });
});

test("a lock publishes one release event even if a suspension prevents its hand-off", async (t) => {
  const fleet = new Fleet();
  const machine = new Machine(fleet.clock);
  const process = fleet.process({ clock: machine });
  const published = await publishedOf("LOCK_story_9", async () => {
    const first = process.lock("LOCK_story_9");
    await first.acquire();
    const second = process.call("LOCK_story_9", {}, idle);
    await fleet.clock.advance(30);
    machine.suspend(2_000);
    await runs(fleet, Promise.all([first.release(), second]));
  });
  t.deepEqual(events(published), ["acquire", "grant", "acquire", "wait", "release", "grant", "release"]);
  t.like(published[4], { requestId: published[0]?.["requestId"], outcome: "released" });
});
