import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import test, { type ExecutionContext } from "ava";
import { configure, shutdown, withLock } from "../../runtime";
import { startChild } from "../support/child";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";
import type { CallersConfiguration, CallersReport } from "./children/callers";

// A process never believes it holds more than Redis has for it, even if its commands arrive out of order. Each body compares
// remaining() with PTTL, while two other processes use the same key.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

/** Several processes are compiled as they start, and may get no CPU for a long time. */
const STARTED_BY_MS = 180_000;

const KEY = "LOCK_belief";
const LOCK_TIME_MS = 30_000;
const ROUND_TRIP_MS = 20;

async function startOthers(t: ExecutionContext): Promise<void> {
  t.timeout(STARTED_BY_MS);
  const configuration: CallersConfiguration = {
    url: server.url,
    key: KEY,
    callers: 1,
    lockTimeMs: LOCK_TIME_MS,
    restMs: 0,
    longestMs: 0,
  };
  const others = [1, 2].map(() => startChild<CallersReport>("callers.ts", configuration));
  t.teardown(async () => {
    await Promise.all(others.map((other) => other.kill()));
    await server.client().del(KEY);
  });
  await Promise.all(others.map((other) => other.reported(({ event }) => event === "entered")));
}

const BEHIND = { retryTimes: 100 } as const;

/** Acquires the lock, and returns by how much its remaining time exceeds the time to live of the key in Redis. */
async function excessMs(watcher: Redis): Promise<number> {
  let excess = NaN;
  await withLock(KEY, BEHIND, async (lock) => {
    const leftMs = await watcher.pttl(KEY); // Read first, because the remaining time shrinks.
    excess = lock.remaining() - leftMs;
  });
  return excess;
}

test.serial(
  "a waiter behind a call that aborts in the same tick never trusts its lock for longer than Redis holds it",
  async (t) => {
    await startOthers(t);
    configure({ redis: server.url, woven: false });
    t.teardown(() => shutdown());
    const watcher = server.client();
    const excesses: number[] = [];
    for (let round = 1; round <= 300; round += 1) {
      await watcher.ping();
      const traffic = ["x", "y"].map((other) => withLock(`LOCK_${other}${round}`, {}, () => {}));
      await Promise.resolve();
      const aborter = new AbortController();
      const gone = withLock(KEY, { signal: aborter.signal }, () => {});
      const next = excessMs(watcher);
      aborter.abort(new Error("gone"));
      await t.throwsAsync(gone, { message: "gone" });
      excesses.push(await next);
      await Promise.all(traffic);
    }
    t.deepEqual(
      excesses.filter((ms) => !(ms <= 0)),
      [],
    );
  },
);

test.serial(
  "a waiter behind a call that aborts during a script reload never trusts its lock for longer than Redis holds it",
  async (t) => {
    const proxy = await startTcpProxy(server.port);
    t.teardown(proxy.stop);
    await startOthers(t);
    configure({ redis: `redis://127.0.0.1:${proxy.port}`, woven: false, logger: { warn: () => {} } });
    t.teardown(() => shutdown());
    const watcher = server.client();
    proxy.delayReplies(ROUND_TRIP_MS);
    const excesses: number[] = [];
    for (let round = 1; round <= 60; round += 1) {
      await watcher.script("FLUSH"); // The others soon reload their scripts, but not the one for many keys.
      const traffic = ["x", "y"].map((other) => withLock(`LOCK_${other}${round}`, {}, () => {}));
      const aborter = new AbortController();
      const gone = withLock(KEY, { signal: aborter.signal }, () => {}).catch(() => {}); // It may also get the lock.
      const next = excessMs(watcher);
      await pause((round % 4) * (ROUND_TRIP_MS / 4));
      aborter.abort(new Error("gone"));
      excesses.push(await next);
      await Promise.all([gone, ...traffic]);
    }
    t.deepEqual(
      excesses.filter((ms) => !(ms <= 0)),
      [],
    );
  },
);
