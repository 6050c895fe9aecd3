import test, { type ExecutionContext } from "ava";
import { Redis } from "ioredis";
import { Client } from "pg";
import { LockMisconfiguredError, LockUnreachableError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { KINDS } from "../stores/postgres/kinds";
import { FleetProcess } from "../support/fleet";
import { startLagWatch } from "../support/lag";
import { monotonicMs } from "../support/monotonic";
import { startPostgresProxy, type PostgresProxy } from "../support/postgres-proxy";
import { signalAll, startPostgres, type PostgresServer } from "../support/postgres-server";
import { retire } from "../support/retire";
import { startRedis, startRedisAt, type ClientOptions, type RedisServer } from "../support/redis-server";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// A wait ends with its budget, however the client is set up and however Redis fails to answer. The next call works when
// Redis is back. An unhandled rejection would fail these tests, too.

/** The options of the application's ioredis client, or a URL. */
const CLIENTS: Record<string, ClientOptions | "URL"> = {
  "default ioredis options": {},
  "unlimited retries": { maxRetriesPerRequest: null },
  "no retries": { maxRetriesPerRequest: 0 },
  "no offline queue": { enableOfflineQueue: false },
  "no resending": { autoResendUnfulfilledCommands: false },
  "unlimited retries and no resending": {
    maxRetriesPerRequest: null,
    autoResendUnfulfilledCommands: false,
  },
  "unlimited retries and no offline queue": { maxRetriesPerRequest: null, enableOfflineQueue: false },
  "a URL": "URL",
};

const BUDGET_MS = 600;
const WAIT = { retryTimes: 3, waitTime: "200ms" } as const;
/** What a wait may take beyond its budget. */
const GRACE_MS = 250;

interface Net {
  server: RedisServer;
  readonly proxy: TcpProxy;
}

interface Outage {
  /** Whether the clients reach Redis through the proxy. */
  readonly isOfNetwork: boolean;
  begin(net: Net): void | Promise<void>;
  end(net: Net): void | Promise<void>;
}

const OUTAGES: Record<string, Outage> = {
  "the network is a black hole": {
    isOfNetwork: true,
    begin: ({ proxy }) => proxy.blackHole(),
    end: ({ proxy }) => proxy.heal(),
  },
  "Redis hangs": {
    isOfNetwork: false,
    begin: ({ server }) => void process.kill(server.pid, "SIGSTOP"),
    end: ({ server }) => void process.kill(server.pid, "SIGCONT"),
  },
  "Redis is down": {
    isOfNetwork: false,
    begin: ({ server }) => server.stop(),
    async end(net) {
      net.server = await startRedisAt(net.server.port);
    },
  },
};

function open(
  port: number,
  options: ClientOptions | "URL",
): { store: WholeStore; close: () => Promise<void> } {
  if (options === "URL") {
    const store = redisStoreAt(`redis://127.0.0.1:${port}`);
    return { store, close: () => store.close() };
  }
  const client = new Redis({ host: "127.0.0.1", port, ...options });
  client.on("error", () => {}); // Each command reports its own failure.
  const store = redisStore(client);
  return {
    store,
    async close() {
      await store.close();
      client.disconnect();
    },
  };
}

/** Checks that concurrent waits for several keys end with their budget. */
async function waitInVain(t: ExecutionContext, process: FleetProcess): Promise<void> {
  const lag = startLagWatch();
  const waits = ["LOCK_a", "LOCK_b", "LOCK_c"].map(async (key) => {
    const startedAt = monotonicMs();
    await t.throwsAsync(
      process.call(key, WAIT, () => t.fail()),
      { instanceOf: LockUnreachableError, code: "LOCK_UNREACHABLE" },
    );
    return monotonicMs() - startedAt;
  });
  const tookMs = await Promise.all(waits);
  const lagMs = lag();
  const mostMs = BUDGET_MS + GRACE_MS + 3 * lagMs;
  for (const ms of tookMs)
    t.true(ms >= BUDGET_MS && ms <= mostMs, `${ms} ms, the event loop late by ${lagMs}`);
}

for (const [outageName, outage] of Object.entries(OUTAGES)) {
  for (const [clientName, options] of Object.entries(CLIENTS)) {
    test(`a wait with ${clientName} ends with its budget while ${outageName}, and a call afterwards works`, async (t) => {
      const server = await startRedis();
      const net = { server, proxy: await startTcpProxy(server.port) };
      const { store, close } = open(outage.isOfNetwork ? net.proxy.port : server.port, options);
      t.teardown(async () => {
        await close();
        await net.proxy.stop();
        await net.server.stop();
      });
      const process = new FleetProcess({ store, logger: { warn: () => {} } });
      await until(() =>
        process
          .call("LOCK_a", {}, () => {})
          .then(
            () => true,
            () => false,
          ),
      ); // Now it is connected.

      await outage.begin(net);
      try {
        await waitInVain(t, process);
      } finally {
        await outage.end(net);
      }
      t.is(await process.call("LOCK_a", { waitTime: "10m" }, () => "in"), "in");
      const watcher = net.server.client();
      await until(async () => (await watcher.dbsize()) === 0); // Nothing is left, not even of commands that arrived late.
    });
  }
}

for (const [clientName, options] of Object.entries(CLIENTS)) {
  test(`a wait with ${clientName} ends with its budget if Redis was never reachable`, async (t) => {
    const server = await startRedis();
    await server.stop();
    const { store, close } = open(server.port, options);
    t.teardown(close);
    await waitInVain(t, new FleetProcess({ store, logger: { warn: () => {} } }));
  });
}

interface PostgresNet {
  readonly server: PostgresServer;
  readonly proxy: PostgresProxy;
}

/** A server that is down must not be behind the proxy, which would accept connections. */
const POSTGRES_OUTAGES: Record<
  string,
  Pick<Outage, "isOfNetwork"> & Record<"begin" | "end", (net: PostgresNet) => unknown>
> = {
  "the network is a black hole": {
    isOfNetwork: true,
    begin: ({ proxy }) => proxy.blackHole(),
    end: ({ proxy }) => proxy.heal(),
  },
  "PostgreSQL hangs": {
    isOfNetwork: false,
    begin: ({ server }) => signalAll(server, "SIGSTOP"),
    end: ({ server }) => signalAll(server, "SIGCONT"),
  },
  "PostgreSQL is down": {
    isOfNetwork: false,
    begin: ({ server }) => server.halt(),
    end: ({ server }) => server.resume(),
  },
};

for (const [name, { isOfNetwork, begin, end }] of Object.entries(POSTGRES_OUTAGES)) {
  test(`a wait for a lock in PostgreSQL ends with its budget over each library while ${name}, and a call afterwards works`, async (t) => {
    const server = await startPostgres();
    const proxy = await startPostgresProxy(server.port);
    const admin = new Client({ connectionString: server.url });
    await admin.connect();
    await admin.query(migrationSql());
    await admin.end();
    const url = isOfNetwork ? `postgres://postgres@127.0.0.1:${proxy.port}/postgres` : server.url;
    const processes = KINDS.map(
      (kind) => new FleetProcess({ store: postgresStore(kind.open(url)), logger: { warn: () => {} } }),
    );
    t.teardown(async () => {
      await Promise.all(processes.map(retire));
      await proxy.stop();
      await server.stop();
    });
    // Now they are connected. With another key, because a crash may lose the release.
    for (const process of processes) await process.call("LOCK_first", { waitTime: "10m" }, () => {});
    await begin({ server, proxy });
    try {
      await Promise.all(processes.map((process) => waitInVain(t, process)));
    } finally {
      await end({ server, proxy });
    }
    for (const process of processes)
      t.is(await process.call("LOCK_a", { waitTime: "10m" }, () => "in"), "in");
  });
}

test("calls fail immediately with a fix if the application has closed its client", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const client = server.client();
  const store = redisStore(client);
  t.teardown(() => store.close());
  const process = new FleetProcess({ store });
  await process.call("LOCK_a", {}, () => {});
  await client.quit();
  await t.throwsAsync(
    process.call("LOCK_a", { waitTime: "10m" }, () => t.fail()),
    { instanceOf: LockMisconfiguredError, message: /closed by quit\(\).*call shutdown\(\) before/ },
  );
});
