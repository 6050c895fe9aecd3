import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { Pool } from "pg";
import { LockUnreachableError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import type { GivenClient } from "../../runtime/stores/redis/client";
import { redisStore } from "../../runtime/stores/redis/redis";
import { KINDS, type Kind } from "../stores/postgres/kinds";
import { queueOf } from "../support/auxiliary-keys";
import { IOREDIS, NODE_REDIS_3, NODE_REDIS_POOL, type ClientLibrary } from "../support/client-libraries";
import { atMost } from "../support/at-most";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { openGlide, openGlideCluster, type OpenGlide } from "../support/glide";
import { hasOtherClients } from "../support/other-clients";
import { startPostgresProxy, type PostgresProxy } from "../support/postgres-proxy";
import { startPostgres, type PostgresServer } from "../support/postgres-server";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster";
import { startSentinelGroup, type SentinelGroup } from "../support/redis-sentinel";
import { startRedis, type RedisServer } from "../support/redis-server";
import { inMatrix, isMatrix, outsideMatrix } from "../support/suites";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// The server executes a command, and its reply is lost. Callers do not notice, and no caller waits for a lock time.

let redis: RedisServer;
let postgres: PostgresServer;
let watcherOfPostgres: Pool;
let group: SentinelGroup;
let cluster: RedisCluster;

test.before(async () => {
  redis = await startRedis();
  postgres = await startPostgres("max_connections=300");
  watcherOfPostgres = new Pool({ connectionString: postgres.url, max: 2 });
  await watcherOfPostgres.query(migrationSql());
  if (!isMatrix) return;
  group = await startSentinelGroup(0, 1);
  cluster = await startRedisCluster(1);
});

test.after.always(async () => {
  await watcherOfPostgres.end();
  await Promise.all([redis.stop(), postgres.stop()]);
  if (!isMatrix) return;
  await group.stop();
  await cluster.stop();
});

/** A server, and one client library for it. */
interface Medium {
  /** The beginning of the titles of its tests. */
  readonly title: string;
  startProxy(): Promise<PostgresProxy>;
  /** @param port the port of a proxy, if there is one between the store and the server */
  open(t: ExecutionContext, port?: number): Promise<WholeStore>;
  isQueued(key: string): Promise<boolean>;
  /** Whether nobody holds the key or waits for it. */
  isForgotten(key: string): Promise<boolean>;
  isHeld(key: string): Promise<boolean>;
}

type Connect = (
  t: ExecutionContext,
  server: RedisServer,
  port?: number,
) => GivenClient | Promise<GivenClient>;

/** @param connect returns a client that reaches the server at a port, or directly */
function inRedis(title: string, server: () => RedisServer, connect: Connect): Medium {
  let client: Redis | undefined;
  const watcher = (): Redis => (client ??= server().client());
  return {
    title,
    startProxy: () => startTcpProxy(server().port),
    open: async (t, port) => redisStore(await connect(t, server(), port)),
    isQueued: async (key) => (await watcher().exists(queueOf(key))) === 1,
    isForgotten: async (key) => (await watcher().exists(key, queueOf(key))) === 0,
    isHeld: async (key) => (await watcher().exists(key)) === 1,
  };
}

function overOneNode({ title, client }: ClientLibrary): Medium {
  return inRedis(
    title,
    () => redis,
    (_, server, port) => client(server, port === undefined ? {} : { port }),
  );
}

function inPostgres({ name, open }: Kind): Medium {
  const has = async (table: "hold" | "waiter", key: string): Promise<boolean> => {
    const text = `SELECT FROM lockweave.${table} WHERE key = $1 AND expires_at > clock_timestamp()`;
    return (await watcherOfPostgres.query(text, [key])).rowCount !== 0;
  };
  return {
    title: `in PostgreSQL over ${name}: `,
    startProxy: () => startPostgresProxy(postgres.port),
    open: async (_, port) =>
      postgresStore(
        open(port === undefined ? postgres.url : `postgres://postgres@127.0.0.1:${port}/postgres`, 1),
      ),
    isQueued: (key) => has("waiter", key),
    isForgotten: async (key) => !(await has("hold", key)) && !(await has("waiter", key)),
    isHeld: (key) => has("hold", key),
  };
}

const POSTGRES_KIND = isMatrix ? "postgres.js, by its URL" : "pg, by its URL";

const IN_REDIS: readonly Medium[] = [IOREDIS, NODE_REDIS_3].map(overOneNode);
const IN_POSTGRES: readonly Medium[] = KINDS.filter(({ name }) => name === POSTGRES_KIND).map(inPostgres);

/** Maps the address of the server to that of the proxy. */
function mapped(
  own: RedisServer,
  port = own.port,
): Record<string, { readonly host: string; readonly port: number }> {
  return { [`127.0.0.1:${own.port}`]: { host: "127.0.0.1", port } };
}

const firstOf = ([first]: readonly RedisServer[]): RedisServer => {
  if (first === undefined) throw new Error("there is no server");
  return first;
};
const master = (): RedisServer => firstOf(group.servers);
const node = (): RedisServer => firstOf(cluster.nodes.map((one) => one.server));

const overGlide = (t: ExecutionContext, given: OpenGlide): GivenClient => {
  t.teardown(() => given.glide.close());
  return given;
};

const OVER_GLIDE: readonly Medium[] = [
  inRedis(
    "over GLIDE: ",
    () => redis,
    async (t, own, port = own.port) => overGlide(t, await openGlide(port)),
  ),
  inRedis("over GLIDE with a cluster: ", node, async (t, own, port = own.port) =>
    overGlide(t, await openGlideCluster(cluster, { addressResolver: (host) => [host, port] })),
  ),
];

const OTHERS_IN_REDIS: readonly Medium[] = [
  overOneNode(NODE_REDIS_POOL),
  inRedis("over Sentinel with ioredis: ", master, (_, own, port) =>
    group.client({ natMap: mapped(own, port) }),
  ),
  inRedis("over Sentinel with node-redis: ", master, (_, own, port) =>
    group.nodeRedis({ nodeAddressMap: mapped(own, port) }),
  ),
  inRedis("over a cluster with ioredis: ", node, (_, own, port) =>
    cluster.cluster({ natMap: mapped(own, port) }),
  ),
  inRedis("over a cluster with node-redis: ", node, (_, own, port) =>
    cluster.nodeRedis({ nodeAddressMap: mapped(own, port) }),
  ),
  ...(hasOtherClients ? OVER_GLIDE : []),
];

/** So long that a test would time out if it waited for their end. */
const LOCK_TIME = { lockTime: "10m", waitTime: "10m" } as const;
const OTHER_LOCK_TIME = { lockTime: "9m", waitTime: "10m" } as const;
/** The network is silent for longer than a command may take, so the reply times out. */
const COMMAND_TIMEOUT_MS = 400;
const SILENCE_MS = 800;

interface Loss {
  readonly fate: "reset" | "silence";
  recover(proxy: PostgresProxy): Promise<void>;
}

const BROKEN: Readonly<Record<string, Loss>> = {
  "the connection is reset": { fate: "reset", recover: async () => {} },
  "the connection falls silent and is reset after the command timeout": {
    fate: "silence",
    async recover(proxy) {
      await pause(SILENCE_MS);
      proxy.reset();
    },
  },
};
const LOSSES: Readonly<Record<string, Loss>> = {
  ...BROKEN,
  "it arrives after the command timeout": {
    fate: "silence",
    async recover(proxy) {
      await pause(SILENCE_MS);
      proxy.heal();
    },
  },
};

let names = 0;

/** With all tests at once, no reply of a busy machine would arrive within the command timeout. */
const inTurn = atMost(8);

/** Creates a process behind a proxy, another one with a direct connection, and a key. */
async function scene(t: ExecutionContext, medium: Medium) {
  const key = `LOCK_lost_${(names += 1)}`;
  const proxy = await medium.startProxy();
  const stores = [await medium.open(t, proxy.port), await medium.open(t)] as const;
  const logger = { warn: () => {} };
  const [process, neighbor] = [
    new FleetProcess({ store: stores[0], commandTimeout: `${COMMAND_TIMEOUT_MS}ms`, logger }),
    new FleetProcess({ store: stores[1], logger }),
  ];
  t.teardown(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await proxy.stop();
  });
  // Loads the scripts into Redis. Otherwise the first reply would be that a script is missing.
  for (const fencing of [true, false])
    await process.call(`${key}:first`, { fencing, ...LOCK_TIME }, () => {});
  return { key, medium, proxy, process, neighbor };
}

type Scene = Awaited<ReturnType<typeof scene>>;

/** Checks that the neighbor gets the lock without waiting for a lock time, and that nothing is left. */
async function isFree(t: ExecutionContext, { key, neighbor, medium }: Scene): Promise<void> {
  t.is(await neighbor.call(key, LOCK_TIME, () => "in"), "in");
  await until(() => medium.isForgotten(key));
}

/** Holds the lock until `end` is called. */
async function holding(process: FleetProcess, key: string, lockTime: typeof LOCK_TIME) {
  const [entered, end] = [deferred(), deferred()];
  const call = process.call(key, lockTime, async () => {
    entered.resolve();
    await end.promise;
    return "first";
  });
  await entered.promise;
  return { call, end: () => end.resolve() };
}

for (const [medium, losses, register] of [
  ...IN_REDIS.map((one) => [one, LOSSES, outsideMatrix] as const),
  ...IN_POSTGRES.map((one, nth) => [one, LOSSES, nth === 0 ? outsideMatrix : inMatrix] as const),
  // Serially, because on a busy machine, many such clients at once would take longer to connect than a command may take.
  ...(isMatrix ? OTHERS_IN_REDIS : []).map((one) => [one, BROKEN, test.serial] as const),
]) {
  const declare = (title: string, run: (t: ExecutionContext) => Promise<void>): void =>
    register(title, (t) => inTurn(() => run(t)));
  for (const [name, { fate, recover }] of Object.entries(losses)) {
    for (const fencing of [false, true]) {
      const token = fencing ? " with a fencing token" : "";
      declare(
        `${medium.title}a caller gets the lock if the reply to its acquire${token} is lost: ${name}`,
        async (t) => {
          const here = await scene(t, medium);
          const { key, proxy, process } = here;
          const struck = proxy.strike(1, fate, key);
          let runs = 0;
          const call = process.call(key, { ...LOCK_TIME, fencing }, (lock) => {
            lock.assertHeld();
            runs += 1;
            return "result";
          });
          await struck;
          await recover(proxy);
          t.is(await call, "result");
          t.is(runs, 1);
          await isFree(t, here);
        },
      );
    }

    declare(
      `${medium.title}a waiter gets the lock if the reply to its enqueue is lost: ${name}`,
      async (t) => {
        const here = await scene(t, medium);
        const { key, proxy, process, neighbor } = here;
        const other = await holding(neighbor, key, LOCK_TIME);
        const struck = proxy.strike(2, fate, key); // After the acquire, which is refused.
        const call = process.call(key, LOCK_TIME, () => "result");
        await struck;
        other.end();
        await recover(proxy);
        t.is(await call, "result");
        t.is(await other.call, "first");
        await isFree(t, here);
      },
    );

    declare(
      `${medium.title}a waiter gets the lock if the reply that grants it is lost: ${name}`,
      async (t) => {
        const here = await scene(t, medium);
        const { key, proxy, process, neighbor } = here;
        const other = await holding(neighbor, key, LOCK_TIME);
        const call = process.call(key, LOCK_TIME, () => "result");
        await until(() => medium.isQueued(key));
        const struck = proxy.strike(1, fate, key);
        other.end();
        await struck;
        await recover(proxy);
        t.is(await call, "result");
        await isFree(t, here);
      },
    );

    declare(
      `${medium.title}a holder keeps the lock if the reply to a renewal is lost: ${name}`,
      async (t) => {
        const here = await scene(t, medium);
        const { key, proxy, process } = here;
        const call = process.call(key, { lockTime: "18s" }, async (lock) => {
          await proxy.strike(1, fate, key);
          const before = lock.remaining();
          await recover(proxy);
          await until(() => lock.remaining() > before); // A later renewal succeeded.
          t.false(lock.signal.aborted);
          return "result";
        });
        t.is(await call, "result");
        await isFree(t, here);
      },
    );

    declare(`${medium.title}extend() extends the lock even if its reply is lost: ${name}`, async (t) => {
      const here = await scene(t, medium);
      const { key, proxy, process } = here;
      const call = process.call(key, LOCK_TIME, async (lock) => {
        const struck = proxy.strike(1, fate, key);
        const extended = lock.extend("1h");
        await struck;
        await recover(proxy);
        await extended;
        return lock.remaining();
      });
      t.true(((await call) ?? 0) > 3_000_000);
      await isFree(t, here);
    });

    declare(`${medium.title}a release frees the key even if its reply is lost: ${name}`, async (t) => {
      const here = await scene(t, medium);
      const { proxy, process } = here;
      let struck = Promise.resolve();
      const call = process.call(here.key, LOCK_TIME, () => {
        struck = proxy.strike(1, fate, here.key);
        return "result";
      });
      t.is(await call, "result", "the lost reply does not fail a body that succeeded");
      await struck;
      await isFree(t, here); // Before the network recovers.
      await recover(proxy);
      t.is(await process.call(here.key, LOCK_TIME, () => "again"), "again");
    });

    declare(
      `${medium.title}the next local caller gets the lock if the reply to the release before it is lost: ${name}`,
      async (t) => {
        const here = await scene(t, medium);
        const { key, proxy, process } = here;
        const first = await holding(process, key, LOCK_TIME);
        // With another lock time, because otherwise the lock would be handed off.
        const second = process.call(key, OTHER_LOCK_TIME, () => "second");
        const struck = proxy.strike(1, fate, key);
        first.end();
        await struck;
        await recover(proxy);
        t.is(await first.call, "first");
        t.is(await second, "second");
        await isFree(t, here);
      },
    );
  }

  for (const recovery of ["heal", "reset"] as const) {
    declare(
      `${medium.title}a lock whose grant reply was missed is released after the network's ${recovery}`,
      async (t) => {
        const here = await scene(t, medium);
        const { key, proxy, process } = here;
        const struck = proxy.strike(1, "silence", key);
        const call = process.call(key, { ...LOCK_TIME, retryTimes: 1, waitTime: "600ms" }, () => t.fail());
        await struck;
        proxy.blackHole(); // Otherwise the store may open another connection.
        await t.throwsAsync(call, { instanceOf: LockUnreachableError });
        proxy[recovery]();
        await until(async () => !(await medium.isHeld(key)));
        await isFree(t, here);
      },
    );
  }
}
