import test from "ava";
import type { Redis } from "ioredis";
import { redisStore } from "../../runtime/stores/redis/redis";
import { queueOf } from "../support/beside";
import { startChild, type Child } from "../support/child";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { monotonicMs } from "../support/monotonic";
import { startMonitor } from "../support/monitor";
import { startRedis, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import type { CrowdConfiguration } from "./children/crowd";
import type { HolderConfiguration, HolderReport } from "./children/holder";

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
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
  const { port = server.port, lockTimeMs = LOCK_TIME_MS } = options;
  const url = `redis://127.0.0.1:${port}`;
  return startChild("holder.ts", { url, key, lockTime: `${lockTimeMs}ms` } satisfies HolderConfiguration);
}

test("the key of a killed holder expires within its lock time, and nothing is left", async (t) => {
  const watcher = server.client();
  const holder = startHolder("LOCK_killed");
  t.teardown(() => holder.kill());
  await holder.reported(({ event }) => event === "held");
  t.deepEqual(await watcher.keys("*LOCK_killed*"), ["LOCK_killed"]);
  await holder.kill();
  const freeInMs = await watcher.pttl("LOCK_killed");
  t.true(freeInMs > 0 && freeInMs <= LOCK_TIME_MS, `${freeInMs} ms, by the clock of Redis`);
  await until(async () => (await watcher.keys("*LOCK_killed*")).length === 0);
});

test("a waiter behind a killed holder and a killed waiter gets the lock and clears what they left", async (t) => {
  const watcher = server.client();
  const key = "LOCK_all_killed";
  const holder = startHolder(key);
  t.teardown(() => holder.kill());
  await holder.reported(({ event }) => event === "held");
  const waiter = startHolder(key);
  t.teardown(() => waiter.kill());
  await until(async () => (await watcher.exists(queueOf(key))) === 1);
  await Promise.all([holder.kill(), waiter.kill()]);

  const store = redisStore(server.client());
  t.teardown(() => store.close());
  t.is(await new FleetProcess({ store }).call(key, PATIENT, () => "in"), "in");
  // The key is reserved for the dead waiter for a moment, because it might only be reconnecting.
  await until(async () => (await watcher.keys(`*${key}*`)).length === 0);
});

test("six killed waiters at the head of the queue do not cost one claim time each", async (t) => {
  const watcher = server.client();
  const key = "LOCK_six_killed";
  const [holder, waiter] = [server.client(), server.client()].map(
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
  const crowd = startChild("crowd.ts", { url: server.url, key, size: 6 } satisfies CrowdConfiguration);
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
    const listeners = await listenersIn(watcher, key); // Redis soon closes the inboxes of the dead.
    return listeners.length === 1 && !dead.some((ticket) => listeners.includes(ticket));
  });
  end.resolve();
  await held;
  const seenByThen = (await waited) ?? "";
  t.true(seenByThen.includes("reserved:"));
  const keptFor = dead.filter((ticket) => seenByThen.includes(`reserved:${ticket}`));
  t.deepEqual(keptFor, [], "the key was not reserved for a dead waiter before the living one got it");
});

test("the queue of a killed waiter expires by itself", async (t) => {
  const watcher = server.client();
  const key = "LOCK_waiter_killed";
  await watcher.set(key, "somebody else's", "PX", 600_000);
  const waiter = startHolder(key);
  t.teardown(() => waiter.kill());
  const queue = queueOf(key);
  await until(async () => (await watcher.exists(queue)) === 1);
  await waiter.kill();
  t.true((await watcher.pttl(queue)) > 0);
});

test("the signal of a holder that is cut off aborts before another caller enters", async (t) => {
  const key = "LOCK_cut_off";
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const holder = startHolder(key, { port: proxy.port, lockTimeMs: 2_000 });
  t.teardown(() => holder.kill());
  await holder.reported(({ event }) => event === "held");
  proxy.blackHole();

  const store = redisStore(server.client());
  const enteredAt = await new FleetProcess({ store }).call(key, PATIENT, monotonicMs);
  const aborted = await holder.reported(({ event }) => event === "aborted");
  if (enteredAt === undefined || aborted.event !== "aborted") throw new Error("nobody entered");
  const sure = enteredAt - aborted.believedUntil;
  const before = enteredAt - aborted.at;
  t.log(`aborted ${before.toFixed(1)} ms and sure until ${sure.toFixed(1)} ms before another caller entered`);
  t.true(sure > 0, "its deadline passed before, however late its timers are");
  t.true(before > -aborted.worstLagMs, "its signal aborted as early as its process could run");
  await store.close();
});
