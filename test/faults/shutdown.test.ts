import test from "ava";
import { Pool } from "pg";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { startChild } from "../support/child";
import { monotonicMs } from "../support/monotonic";
import { startPostgresProxy } from "../support/postgres-proxy";
import { startPostgres } from "../support/postgres-server";
import { startRedis } from "../support/redis-server";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import type { ShutdownConfiguration, ShutdownReport } from "./children/shutdown";

// SIGTERM, with 10 locks held and 5 waiters for each of them.

const KEYS = Array.from({ length: 10 }, (_, index) => `LOCK_shutdown_${index}`);
const WAITERS = 5;
/** The child gives its bodies this long. */
const PATIENCE_MS = 500;

/** A server of locks behind a proxy. */
interface Medium {
  readonly proxy: Pick<TcpProxy, "blackHole">;
  /** The address of the proxy. */
  readonly url: string;
  /** Returns what is left on the server. */
  keys(): Promise<readonly string[]>;
  stop(): Promise<void>;
}

const MEDIA: Record<string, () => Promise<Medium>> = {
  async Redis() {
    const server = await startRedis();
    const proxy = await startTcpProxy(server.port);
    const watcher = server.client();
    return {
      proxy,
      url: `redis://127.0.0.1:${proxy.port}`,
      keys: () => watcher.keys("*"),
      async stop() {
        await proxy.stop();
        await server.stop();
      },
    };
  },
  async PostgreSQL() {
    const server = await startPostgres();
    const proxy = await startPostgresProxy(server.port);
    const watcher = new Pool({ connectionString: server.url, max: 1 });
    await watcher.query(migrationSql());
    return {
      proxy,
      url: `postgres://postgres@127.0.0.1:${proxy.port}/postgres`,
      async keys() {
        const text = "SELECT key FROM lockweave.hold UNION ALL SELECT key FROM lockweave.waiter";
        return (await watcher.query<{ readonly key: string }>(text)).rows.map(({ key }) => key);
      },
      async stop() {
        await watcher.end();
        await proxy.stop();
        await server.stop();
      },
    };
  },
};

async function terminate(start: () => Promise<Medium>, endsInTime: boolean, isCutOff = false) {
  const medium = await start();
  const { proxy, url } = medium;
  const configuration: ShutdownConfiguration = { url, keys: KEYS, waiters: WAITERS, endsInTime };
  const child = startChild<ShutdownReport>("shutdown.ts", configuration);
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
      keys: isCutOff ? [] : await medium.keys(),
    };
  } finally {
    await child.kill();
    await medium.stop();
  }
}

for (const [name, start] of Object.entries(MEDIA)) {
  test(`${name}: SIGTERM lets bodies end, serves or rejects their waiters, frees the keys, and ends the process`, async (t) => {
    const { tookMs: _, ...rest } = await terminate(start, true);
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

  test(`${name}: SIGTERM revokes and releases the locks of bodies that do not end, and ends the process`, async (t) => {
    const { tookMs, ...rest } = await terminate(start, false);
    t.like(rest, { code: 0, complaints: "", keys: [] });
    t.deepEqual(
      rest.bodies,
      KEYS.map(() => "LOCK_LOST"),
    );
    t.deepEqual(new Set(rest.waiters), new Set(["LOCK_CLOSED"]));
    t.is(rest.waiters.length, KEYS.length * WAITERS);
    t.true(tookMs >= PATIENCE_MS, `${tookMs} ms`);
  });

  test(`${name}: SIGTERM ends a process even if it is cut off from the server`, async (t) => {
    const { tookMs: _, ...rest } = await terminate(start, false, true);
    t.like(rest, { code: 0, complaints: "" });
    t.deepEqual(new Set(rest.waiters), new Set(["LOCK_CLOSED"]));
    t.is(rest.waiters.length, KEYS.length * WAITERS);
  });
}
