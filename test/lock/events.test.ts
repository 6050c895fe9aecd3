import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test from "ava";
import type { LockEvents } from "../../runtime/lock/events";
import { Fleet, type FleetProcess } from "../support/fleet";
import { idle, passes } from "../support/jobs";
import { Machine } from "../support/machine";
import { connectionRefused } from "../support/tampered-store";

// What is published of a lock's life. The channels are the process's own: each test looks at its own keys.

const NAMES: readonly (keyof LockEvents)[] = [
  "lockweave:acquire",
  "lockweave:wait",
  "lockweave:grant",
  "lockweave:give-up",
  "lockweave:renew",
  "lockweave:lost",
  "lockweave:release",
];

type Told = { readonly event: string } & Record<string, unknown>;

/** All that is published of the key while `act` runs. */
async function toldOf(key: string, act: () => Promise<unknown>): Promise<Told[]> {
  const told: Told[] = [];
  const listen = (message: unknown, name: string | symbol): void => {
    const event = message as LockEvents["lockweave:acquire"];
    if (event.key === key) told.push({ event: String(name).replace("lockweave:", ""), ...event });
  };
  for (const name of NAMES) subscribe(name, listen);
  try {
    await act();
  } finally {
    for (const name of NAMES) unsubscribe(name, listen);
  }
  return told;
}

const events = (told: readonly Told[]): string[] => told.map(({ event }) => event);

/** A body that takes so much virtual time. */
function takes(fleet: Fleet, ms: number): () => Promise<void> {
  return () => passes(fleet.clock, ms);
}

async function runs(fleet: Fleet, work: Promise<unknown>): Promise<void> {
  await fleet.clock.advance(60_000);
  await work;
}

test("a free lock is asked for, granted and released, under one requestId", async (t) => {
  const fleet = new Fleet();
  const told = await toldOf("LOCK_story_1", async () => {
    const lock = fleet.process().lock("LOCK_story_1", { fencing: true }, "OrderService.pay");
    t.true(await lock.acquire());
    await fleet.clock.advance(250);
    await lock.release();
    const { requestId } = lock;
    const about = { key: "LOCK_story_1", site: "OrderService.pay", requestId };
    const { fencingToken } = lock;
    t.deepEqual(Object.keys(about), ["key", "site", "requestId"]);
    t.true(typeof fencingToken === "number");
  });
  t.deepEqual(events(told), ["acquire", "grant", "release"]);
  t.is(new Set(told.map(({ requestId }) => requestId)).size, 1);
  t.true(told.every(({ site }) => site === "OrderService.pay"));
  const [, grant, release] = told;
  t.like(grant, { waitedMs: 0 });
  t.is(typeof grant?.["fencingToken"], "number");
  t.like(release, { heldMs: 250, outcome: "released" });
});

test("who waits is told of once, with the time that it took", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const told = await toldOf("LOCK_story_2", async () => {
    const first = process.call("LOCK_story_2", {}, takes(fleet, 7_000));
    const second = process.call("LOCK_story_2", {}, takes(fleet, 1));
    await runs(fleet, Promise.all([first, second]));
  });
  t.deepEqual(events(told), ["acquire", "acquire", "grant", "wait", "release", "grant", "release"]);
  t.like(told[4], { heldMs: 7_000 });
  t.like(told[5], { waitedMs: 7_000, requestId: told[1]?.["requestId"] });
});

test("a wait in vain ends with give-up", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder("LOCK_story_3", 60_000);
  const told = await toldOf("LOCK_story_3", () =>
    runs(
      fleet,
      t.throwsAsync(fleet.process().call("LOCK_story_3", { retryTimes: 1, waitTime: "2s" }, () => t.fail())),
    ),
  );
  t.deepEqual(events(told), ["acquire", "wait", "give-up"]);
  t.like(told[2], { waitedMs: 2_000 });
});

test("each renewal is told of", async (t) => {
  const fleet = new Fleet();
  const told = await toldOf("LOCK_story_4", () =>
    runs(fleet, fleet.process().call("LOCK_story_4", { lockTime: "3s" }, takes(fleet, 2_500))),
  );
  t.deepEqual(events(told), ["acquire", "grant", "renew", "renew", "release"]);
});

test("a renewal of a shared hold is reported for each of its readers", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const told = await toldOf("LOCK_story_readers", () => {
    const read = (): Promise<unknown> =>
      process.call("LOCK_story_readers", { mode: "read", lockTime: "3s" }, takes(fleet, 1_500));
    return runs(fleet, Promise.all([read(), read(), read()]));
  });
  t.is(fleet.store.renewed[0], 1);
  const renewed = told.filter(({ event }) => event === "renew");
  t.is(renewed.length, 3);
  t.is(new Set(renewed.map(({ requestId }) => requestId)).size, 3);
});

test("a lock that is lost is told of when that is noticed, and its release has no good outcome", async (t) => {
  const fleet = new Fleet();
  const process: FleetProcess = fleet.process();
  fleet.store.onRenew = connectionRefused;
  const told = await toldOf("LOCK_story_5", () =>
    runs(fleet, t.throwsAsync(process.call("LOCK_story_5", { lockTime: "3s" }, takes(fleet, 9_000)))),
  );
  t.deepEqual(events(told), ["acquire", "grant", "lost", "release"]);
  t.like(told[2], { reason: "its deadline passed before a renewal succeeded (connect ECONNREFUSED)" });
  t.like(told[3], { outcome: "expired", heldMs: 9_000 });
});

test("a lock that is handed on is told of at that moment, before the next one holds it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onLook = async (send) => {
    await passes(fleet.clock, 500);
    return await send();
  };
  const told = await toldOf("LOCK_story_6", async () => {
    const first = process.call("LOCK_story_6", {}, takes(fleet, 50));
    const second = process.call("LOCK_story_6", {}, takes(fleet, 1_000));
    await runs(fleet, Promise.all([first, second]));
  });
  t.deepEqual(events(told), ["acquire", "acquire", "grant", "wait", "release", "grant", "release"]);
  t.like(told[4], { outcome: "handed off", heldMs: 50, requestId: told[0]?.["requestId"] });
  t.like(told[5], { waitedMs: 50, requestId: told[1]?.["requestId"] });
  t.like(told[6], { outcome: "released", heldMs: 1_000 });
});

test("of a key that was deleted, the loss and the outcome say so", async (t) => {
  const fleet = new Fleet();
  const told = await toldOf("LOCK_story_7", async () => {
    const lock = fleet.process().lock("LOCK_story_7", { lockTime: "3s", onLost: "warn" });
    t.true(await lock.acquire());
    await fleet.takeAway("LOCK_story_7");
    await fleet.clock.advance(1_000);
    await lock.release();
  });
  t.deepEqual(events(told), ["acquire", "grant", "lost", "release"]);
  t.like(told[2], {
    reason: "its key disappeared early: it was deleted, evicted, or lost with the data of the store",
  });
  t.like(told[3], { outcome: "deleted" });
});

test("of a key that was deleted and is first missed at the release, the outcome says so", async (t) => {
  const fleet = new Fleet();
  const told = await toldOf("LOCK_story_8", async () => {
    const lock = fleet.process().lock("LOCK_story_8");
    t.true(await lock.acquire());
    await fleet.takeAway("LOCK_story_8");
    await t.throwsAsync(lock.release(), { message: /its key disappeared early/ });
  });
  t.deepEqual(events(told), ["acquire", "grant", "release"]);
  t.like(told[2], { outcome: "deleted" });
});

test("the end of a lock is told once, also where a suspension of the machine keeps it from being handed on", async (t) => {
  const fleet = new Fleet();
  const machine = new Machine(fleet.clock);
  const process = fleet.process({ clock: machine });
  const told = await toldOf("LOCK_story_9", async () => {
    const first = process.lock("LOCK_story_9");
    await first.acquire();
    const second = process.call("LOCK_story_9", {}, idle);
    await fleet.clock.advance(30);
    machine.suspend(2_000);
    await runs(fleet, Promise.all([first.release(), second]));
  });
  t.deepEqual(events(told), ["acquire", "grant", "acquire", "wait", "release", "grant", "release"]);
  t.like(told[4], { requestId: told[0]?.["requestId"], outcome: "released" });
});
