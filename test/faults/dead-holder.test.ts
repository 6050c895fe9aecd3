import test from "ava";
import type { Redis } from "ioredis";
import { redisStore } from "../../runtime/stores/redis/redis";
import { CLAIM_TIME_MS } from "../../runtime/stores/port";
import { queueOf } from "../support/beside";
import { startChild, type Child } from "../support/child";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startLagWatch } from "../support/lag";
import { monotonicMs } from "../support/monotonic";
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

/** How many wait: each has two entries in the queue. */
async function placesIn(watcher: Redis, key: string): Promise<number> {
  return (await watcher.zcard(queueOf(key))) / 2;
}

const LOCK_TIME_MS = 1_000;
/** For processes that do not get a processor at once. It proves nothing, and fails only what hangs. */
const NOISE_MS = 1_500;

function startHolder(
  key: string,
  options: { readonly port?: number; readonly lockTimeMs?: number } = {},
): Child<HolderReport> {
  const { port = server.port, lockTimeMs = LOCK_TIME_MS } = options;
  const url = `redis://127.0.0.1:${port}`;
  return startChild("holder.ts", { url, key, lockTime: `${lockTimeMs}ms` } satisfies HolderConfiguration);
}

test("the key of a killed holder is free within its lock time, and nothing of it is left", async (t) => {
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

test("who waits behind a killed holder and a killed waiter enters soon, and clears what they left", async (t) => {
  const watcher = server.client();
  const key = "LOCK_all_killed";
  const holder = startHolder(key);
  t.teardown(() => holder.kill());
  await holder.reported(({ event }) => event === "held");
  const waiter = startHolder(key);
  t.teardown(() => waiter.kill());
  await until(async () => (await watcher.exists(queueOf(key))) === 1);
  await Promise.all([holder.kill(), waiter.kill()]);

  const killedAt = monotonicMs();
  const store = redisStore(server.client());
  t.teardown(() => store.close());
  await new FleetProcess({ store }).call(key, {}, () => {
    const tookMs = monotonicMs() - killedAt;
    t.true(tookMs < LOCK_TIME_MS + CLAIM_TIME_MS + NOISE_MS, `${tookMs} ms`);
  });
  // Where nobody hears, the key is kept for the dead one for a moment: it might only be reconnecting.
  await until(async () => (await watcher.keys(`*${key}*`)).length === 0);
});

test("six waiters that are killed at once at the head of the queue do not cost the claim time each", async (t) => {
  const watcher = server.client();
  const key = "LOCK_six_killed";
  const [holder, waiter] = [server.client(), server.client()].map(
    (client) => new FleetProcess({ store: redisStore(client) }),
  );
  if (holder === undefined || waiter === undefined) throw new Error("nobody is there");
  t.teardown(() => Promise.all([retire(holder), retire(waiter)]));
  const [entered, end] = [deferred(), deferred()];
  const held = holder.call(key, {}, async () => {
    entered.resolve();
    await end.promise;
    return monotonicMs();
  });
  await entered.promise;
  const crowd = startChild("crowd.ts", { url: server.url, key, size: 6 } satisfies CrowdConfiguration);
  t.teardown(() => crowd.kill());
  await until(async () => (await placesIn(watcher, key)) === 6);
  const waited = waiter.call(key, {}, monotonicMs);
  await until(async () => (await placesIn(watcher, key)) === 7);
  await crowd.kill();

  const lag = startLagWatch();
  end.resolve();
  const [leftAt = NaN, enteredAt = NaN] = await Promise.all([held, waited]);
  const tookMs = enteredAt - leftAt;
  t.log(`${tookMs.toFixed(1)} ms`);
  t.true(tookMs < CLAIM_TIME_MS + 3 * lag(), `${tookMs} ms`);
});

test("what killed waiters leave expires by itself", async (t) => {
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

test("a holder that is cut off learns by its signal that the lock is over before anybody else enters", async (t) => {
  const key = "LOCK_cut_off";
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const holder = startHolder(key, { port: proxy.port, lockTimeMs: 2_000 });
  t.teardown(() => holder.kill());
  await holder.reported(({ event }) => event === "held");
  proxy.blackHole();

  const store = redisStore(server.client());
  const enteredAt = await new FleetProcess({ store }).call(key, {}, monotonicMs);
  const told = await holder.reported(({ event }) => event === "told");
  if (enteredAt === undefined || told.event !== "told") throw new Error("nobody entered");
  const sure = enteredAt - told.believedUntil;
  const before = enteredAt - told.at;
  t.log(`told ${before.toFixed(1)} ms before, and sure until ${sure.toFixed(1)} ms before somebody entered`);
  t.true(sure > 0, "by arithmetic, however late its timers are");
  t.true(before > -told.worstLagMs, "and as early as its process could run");
  await store.close();
});
