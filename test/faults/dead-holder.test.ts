import test from "ava";
import type { Redis } from "ioredis";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { newId, request, TIMEOUT_MS } from "../store-contract/subject";
import { queueOf } from "../support/auxiliary-keys";
import { startChild, type Child } from "../support/child";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { LOCK_SERVER, startLockServer, type LockServer } from "../support/lock-server";
import { monotonicMs } from "../support/monotonic";
import { startMonitor } from "../support/monitor";
import { startRedis } from "../support/redis-server";
import { retire } from "../support/retire";
import { outsideMatrix } from "../support/suites";
import { until } from "../support/until";
import type { CrowdConfiguration } from "./children/crowd";
import type { HolderConfiguration, HolderReport } from "./children/holder";

let server: LockServer;
let store: WholeStore;

test.before(async () => {
  server = await startLockServer();
  store = server.store();
});

test.after.always(() => server.stop());

/** Returns the number of waiters. Each has two entries in the queue. */
async function waiterCountOf(watcher: Redis, key: string): Promise<number> {
  return (await watcher.zcard(queueOf(key))) / 2;
}

/** Returns the ticket and the inbox of each waiter in the queue. */
async function waitersIn(watcher: Redis, key: string): Promise<{ ticket: string; inbox: string }[]> {
  const entries = (await watcher.zrange(queueOf(key), "0", "-1")).map(String);
  const waiters = entries.filter((entry) => !entry.startsWith("-")).map((entry) => entry.split(" "));
  return waiters.map(([ticket = "", inbox = ""]) => ({ ticket, inbox }));
}

/** Returns the tickets of the waiters that listen on their inboxes. */
async function listenersIn(watcher: Redis, key: string): Promise<string[]> {
  const tickets: string[] = [];
  for (const { ticket, inbox } of await waitersIn(watcher, key)) {
    const [, listeners] = await watcher.pubsub("NUMSUB", inbox);
    if (inbox !== "" && listeners === 1) tickets.push(ticket);
  }
  return tickets;
}

const LOCK_TIME_MS = 1_000;
/** No call gives up before its test does. */
const PATIENT = { waitTime: "10m" } as const;

function startHolder(
  key: string,
  options: { readonly port?: number; readonly lockTimeMs?: number } = {},
): Child<HolderReport> {
  const { port, lockTimeMs = LOCK_TIME_MS } = options;
  const target = server.target(port);
  return startChild("holder.ts", { target, key, lockTime: `${lockTimeMs}ms` } satisfies HolderConfiguration);
}

/** Resolves once this many callers wait in the queue of the key. */
async function areWaiting(callers: number, key: string): Promise<void> {
  await until(async () => (await store.admin.inspect(key, TIMEOUT_MS)).waiting === callers);
}

test(`${LOCK_SERVER}: the key of a killed holder expires within its lock time, and nothing is left`, async (t) => {
  const holder = startHolder("LOCK_killed");
  t.teardown(() => holder.kill());
  await holder.reported(({ event }) => event === "held");
  t.is((await server.traces("LOCK_killed")).length, 1);
  await holder.kill();
  const [left] = (await store.admin.inspect("LOCK_killed", TIMEOUT_MS)).holds;
  const freeInMs = left?.leftMs ?? 0;
  t.true(freeInMs <= LOCK_TIME_MS, `${freeInMs} ms, by the clock of the server`);
  await until(async () => (await server.traces("LOCK_killed")).length === 0);
});

test(`${LOCK_SERVER}: a waiter behind a killed holder and a killed waiter gets the lock and clears what they left`, async (t) => {
  const key = "LOCK_all_killed";
  // A holder whose machine stands still for a second must keep the lock, or nobody waits for it.
  const holder = startHolder(key, { lockTimeMs: 10_000 });
  t.teardown(() => holder.kill());
  await holder.reported(({ event }) => event === "held");
  const waiter = startHolder(key);
  t.teardown(() => waiter.kill());
  await areWaiting(1, key);
  await Promise.all([holder.kill(), waiter.kill()]);

  t.is(await new FleetProcess({ store }).call(key, PATIENT, () => "in"), "in");
  // The key is reserved for the dead waiter for a moment, because it might only be reconnecting.
  await until(async () => (await server.traces(key)).length === 0);
});

// PostgreSQL does not know who listens, so there the tickets of dead waiters expire.
outsideMatrix("six killed waiters at the head of the queue do not cost one claim time each", async (t) => {
  const redis = await startRedis();
  t.teardown(redis.stop);
  const watcher = redis.client();
  const key = "LOCK_six_killed";
  const [holder, waiter] = [redis.client(), redis.client()].map(
    (client) => new FleetProcess({ store: redisStore(client) }),
  );
  if (holder === undefined || waiter === undefined) throw new Error("a process is missing");
  t.teardown(() => Promise.all([retire(holder), retire(waiter)]));
  const [entered, end] = [deferred(), deferred()];
  const held = holder.call(key, { lockTime: "10m" }, async () => {
    entered.resolve();
    await end.promise;
  });
  await entered.promise;
  const crowd = startChild("crowd.ts", { url: redis.url, key, size: 6 } satisfies CrowdConfiguration);
  t.teardown(() => crowd.kill());
  await until(async () => (await waiterCountOf(watcher, key)) === 6);
  const dead = (await waitersIn(watcher, key)).map(({ ticket }) => ticket);
  const monitor = await startMonitor(watcher);
  t.teardown(monitor.stop);
  const waited = waiter.call(key, PATIENT, async () => {
    await monitor.catchUp();
    return monitor.commands.flat().join(" ");
  });
  await until(async () => (await waiterCountOf(watcher, key)) === 7);
  await crowd.kill();

  await until(async () => {
    const listeners = await listenersIn(watcher, key); // Redis soon closes the inboxes of the killed processes.
    return listeners.length === 1 && !dead.some((ticket) => listeners.includes(ticket));
  });
  end.resolve();
  await held;
  const seenByThen = (await waited) ?? "";
  t.true(seenByThen.includes("reserved:"));
  const keptFor = dead.filter((ticket) => seenByThen.includes(`reserved:${ticket}`));
  t.deepEqual(keptFor, [], "the key was not reserved for a dead waiter before the living one got it");
});

test(`${LOCK_SERVER}: the queue of a killed waiter expires by itself`, async (t) => {
  const key = "LOCK_waiter_killed";
  await store.acquire(request(key, newId()), TIMEOUT_MS);
  const waiter = startHolder(key);
  t.teardown(() => waiter.kill());
  await areWaiting(1, key);
  await waiter.kill();
  await until(async () => (await server.traces(key)).length === 1);
  t.is((await store.admin.inspect(key, TIMEOUT_MS)).waiting, 0);
});

test(`${LOCK_SERVER}: the signal of a holder that is cut off aborts before another caller enters`, async (t) => {
  const key = "LOCK_cut_off";
  const proxy = await server.proxy();
  t.teardown(proxy.stop);
  const holder = startHolder(key, { port: proxy.port, lockTimeMs: 2_000 });
  t.teardown(() => holder.kill());
  await holder.reported(({ event }) => event === "held");
  proxy.blackHole();

  const enteredAt = await new FleetProcess({ store }).call(key, PATIENT, monotonicMs);
  const aborted = await holder.reported(({ event }) => event === "aborted");
  if (enteredAt === undefined || aborted.event !== "aborted") throw new Error("nobody entered");
  const sure = enteredAt - aborted.believedUntil;
  const before = enteredAt - aborted.at;
  t.log(`aborted ${before.toFixed(1)} ms and sure until ${sure.toFixed(1)} ms before another caller entered`);
  t.true(sure > 0, "its deadline passed before, however late its timers are");
  t.true(before > -aborted.worstLagMs, "its signal aborted as early as its process could run");
});
