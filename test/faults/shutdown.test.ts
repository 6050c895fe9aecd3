import test from "ava";
import { startChild } from "../support/child";
import { monotonicMs } from "../support/monotonic";
import { startRedis } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import type { ShutdownConfiguration, ShutdownReport } from "./children/shutdown";

// SIGTERM, with 10 locks held and 5 waiters for each of them.

const KEYS = Array.from({ length: 10 }, (_, index) => `LOCK_shutdown_${index}`);
const WAITERS = 5;
/** The child gives its bodies this long. */
const PATIENCE_MS = 500;

async function terminate(endsInTime: boolean, isCutOff = false) {
  const server = await startRedis();
  const proxy = await startTcpProxy(server.port);
  const url = `redis://127.0.0.1:${proxy.port}`;
  const configuration: ShutdownConfiguration = { url, keys: KEYS, waiters: WAITERS, endsInTime };
  const child = startChild<ShutdownReport>("shutdown.ts", configuration);
  const watcher = server.client();
  try {
    await until(() => child.reports.filter(({ event }) => event === "held").length === KEYS.length);
    if (isCutOff) proxy.blackHole();
    const terminatedAt = monotonicMs();
    child.signal("SIGTERM");
    const { code } = await child.ended;
    const tookMs = monotonicMs() - terminatedAt;
    await child.closed;
    const ends = child.reports.flatMap((report) => ("with" in report ? [report] : []));
    return {
      tookMs,
      code,
      complaints: child.complaints,
      bodies: ends.filter(({ event }) => event === "body ended").map((end) => end.with),
      waiters: ends.filter(({ event }) => event === "waiter ended").map((end) => end.with),
      keys: isCutOff ? [] : await watcher.keys("*"),
    };
  } finally {
    await child.kill();
    await proxy.stop();
    await server.stop();
  }
}

test("SIGTERM lets bodies end, serves or rejects their waiters, frees the keys, and ends the process", async (t) => {
  const { tookMs: _, ...rest } = await terminate(true);
  t.like(rest, { code: 0, complaints: "", keys: [] });
  t.deepEqual(
    rest.bodies,
    KEYS.map(() => "success"),
  );
  t.true(
    rest.waiters.every((end) => end === "success" || end === "LOCK_CLOSED"),
    rest.waiters.join(),
  );
  t.is(rest.waiters.length, KEYS.length * WAITERS);
});

test("SIGTERM revokes and releases the locks of bodies that do not end, and ends the process", async (t) => {
  const { tookMs, ...rest } = await terminate(false);
  t.like(rest, { code: 0, complaints: "", keys: [] });
  t.deepEqual(
    rest.bodies,
    KEYS.map(() => "LOCK_LOST"),
  );
  t.deepEqual(new Set(rest.waiters), new Set(["LOCK_CLOSED"]));
  t.is(rest.waiters.length, KEYS.length * WAITERS);
  t.true(tookMs >= PATIENCE_MS, `${tookMs} ms`);
});

test("SIGTERM ends a process even if it is cut off from Redis", async (t) => {
  const { tookMs: _, ...rest } = await terminate(false, true);
  t.like(rest, { code: 0, complaints: "" });
  t.deepEqual(new Set(rest.waiters), new Set(["LOCK_CLOSED"]));
  t.is(rest.waiters.length, KEYS.length * WAITERS);
});
