import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { Redis, type RedisOptions } from "ioredis";
import { Client } from "pg";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import { redisStore } from "../../runtime/stores/redis/redis";
import { portOf } from "../stores/postgres/kinds";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startPostgresProxy, type PostgresProxy } from "../support/postgres-proxy";
import { startPostgres } from "../support/postgres-server";
import { startRedis, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// An unconfirmed release is sent again until it is confirmed. All lock times here are longer than a test may take, so a free
// key was released.

const KEY = "LOCK_unconfirmed";
const LOCK_TIME = { lockTime: "10m" } as const;
/** Another lock time, because otherwise the lock would be handed off without a command. */
const NEXT = { lockTime: "9m", retryTimes: 1, waitTime: "25s" } as const;

type ClientOptions = Pick<
  RedisOptions,
  "enableOfflineQueue" | "maxRetriesPerRequest" | "retryStrategy" | "autoResendUnfulfilledCommands"
>;

/** Commands that cannot be sent fail at once. */
const FAIL_FAST: ClientOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  retryStrategy: () => 50,
};

interface Trouble {
  readonly client: ClientOptions;
  /** Begins while the body runs. */
  begin(network: Network): void | Promise<void>;
  /** Ends after the release has failed. */
  end(network: Network): void | Promise<void>;
}

interface Network {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  /** A connection that keeps its rights and is not cut. */
  readonly admin: Redis;
}

const TROUBLES: Record<string, Trouble> = {
  "a client that fails fast lost its connection": {
    client: FAIL_FAST,
    begin: ({ proxy }) => proxy.cut(),
    end: () => {},
  },
  "half a second of BUSY": {
    client: {},
    begin: ({ admin }) => beBusy(admin),
    async end({ admin }) {
      await pause(500);
      await admin.script("KILL");
    },
  },
  "half a second of READONLY": {
    client: {},
    begin: async ({ admin }) => void (await admin.replicaof("127.0.0.1", 1)),
    async end({ admin }) {
      await pause(500);
      await admin.replicaof("NO", "ONE");
    },
  },
  "two seconds without network": {
    client: { autoResendUnfulfilledCommands: false },
    begin: ({ proxy }) => proxy.blackHole(),
    async end({ proxy }) {
      await pause(2_000);
      proxy.reset(); // Commands that were sent meanwhile never arrive.
    },
  },
};

/** Runs a script until it is killed. */
async function beBusy(admin: Redis): Promise<void> {
  await admin.call("CONFIG", "SET", "busy-reply-threshold", "20");
  const runaway = admin.duplicate();
  runaway.on("error", () => {});
  void runaway
    .eval("while true do end", 0)
    .catch(() => {}) // It is killed.
    .finally(() => runaway.disconnect());
  await until(() =>
    admin.ping().then(
      () => false,
      (error: unknown) => String(error).includes("BUSY"),
    ),
  );
}

async function scene(t: ExecutionContext, options: ClientOptions) {
  const server = await startRedis();
  const proxy = await startTcpProxy(server.port);
  const client = new Redis({ host: "127.0.0.1", port: proxy.port, ...options });
  client.on("error", () => {}); // Each command reports its own failure.
  const store = redisStore(client);
  const process = new FleetProcess({ store, commandTimeout: "200ms", logger: { warn: () => {} } });
  t.teardown(async () => {
    await retire(process);
    client.disconnect();
    await proxy.stop();
    await server.stop();
  });
  await until(() => client.status === "ready");
  await process.call(`${KEY}:first`, {}, () => {}); // Redis knows the scripts.
  return { server, proxy, admin: server.client(), process };
}

for (const [name, trouble] of Object.entries(TROUBLES)) {
  test(`the key is freed soon after an unconfirmed release: ${name}`, async (t) => {
    const { process, ...network } = await scene(t, trouble.client);
    const call = process.call(KEY, LOCK_TIME, async () => {
      await trouble.begin(network);
      return "result";
    });
    t.is(await call, "result");
    await trouble.end(network);
    // Redis may still be busy, and then does not answer.
    await until(async () => (await network.admin.exists(KEY).catch(() => 1)) === 0);
  });

  test(`the next local caller gets the lock soon after an unconfirmed release: ${name}`, async (t) => {
    const { process, ...network } = await scene(t, trouble.client);
    const [entered, end] = [deferred(), deferred()];
    const call = process.call(KEY, LOCK_TIME, async () => {
      entered.resolve();
      await end.promise;
      await trouble.begin(network);
      return "result";
    });
    await entered.promise;
    const next = process.call(KEY, NEXT, () => "next");
    end.resolve();
    t.is(await call, "result");
    await trouble.end(network);
    t.is(await next, "next");
    await until(async () => (await network.admin.dbsize()) === 0);
  });
}

const POSTGRES_TROUBLES: Record<
  string,
  Record<"begin" | "end", (proxy: PostgresProxy) => void | Promise<void>>
> = {
  "the store lost its connections": { begin: (proxy) => proxy.cut(), end: () => {} },
  "two seconds without network": {
    begin: (proxy) => proxy.blackHole(),
    async end(proxy) {
      await pause(2_000);
      proxy.reset();
    },
  },
};

for (const [name, { begin, end }] of Object.entries(POSTGRES_TROUBLES)) {
  test(`in PostgreSQL, the key is freed soon after an unconfirmed release: ${name}`, async (t) => {
    const server = await startPostgres();
    const proxy = await startPostgresProxy(server.port);
    const admin = new Client({ connectionString: server.url });
    await admin.connect();
    await admin.query(migrationSql());
    const store = postgresStore(portOf(`postgres://postgres@127.0.0.1:${proxy.port}/postgres`));
    const process = new FleetProcess({ store, commandTimeout: "200ms", logger: { warn: () => {} } });
    t.teardown(async () => {
      await retire(process);
      await admin.end();
      await proxy.stop();
      await server.stop();
    });
    const call = process.call(KEY, { ...LOCK_TIME, waitTime: "1m" }, async () => {
      await begin(proxy);
      return "result";
    });
    t.is(await call, "result");
    await end(proxy);
    // A row that has expired may remain: the release reserved the key for the ticket of this call, which the cut kept in the queue.
    const holds = "SELECT FROM lockweave.hold WHERE expires_at > clock_timestamp()";
    await until(async () => (await admin.query(holds)).rowCount === 0);
  });
}
