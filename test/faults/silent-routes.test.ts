import test, { type ExecutionContext } from "ava";
import { Redis } from "ioredis";
import type { RedisClientType } from "redis";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { acquire, newId, newKey, request } from "../store-contract/subject";
import { recordEvents } from "../stores/noting-listener";
import { IOREDIS, NODE_REDIS_3, NODE_REDIS_POOL, URL_LIBRARIES } from "../support/client-libraries";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { commandsDuring } from "../support/monitor";
import { startRedis, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// A firewall or a failover drops a route. The open connections stay open but carry no more data. New connections work.

const PATIENT = { retryTimes: 1, waitTime: "30s" } as const;
const NAME = "lockweave-test";

interface Setting {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  readonly process: FleetProcess;
  readonly warnings: readonly string[];
}

async function byUrl(t: ExecutionContext, { at }: (typeof URL_LIBRARIES)[number]): Promise<Setting> {
  const [server, proxy] = await serverAndProxy(t);
  const store = redisStoreAt(at(`redis://127.0.0.1:${proxy.port}?connectionName=${NAME}`));
  return await over(t, store, server, proxy);
}

async function overPool(t: ExecutionContext): Promise<Setting> {
  const [server, proxy] = await serverAndProxy(t);
  const pool = await NODE_REDIS_POOL.client(server, { port: proxy.port, name: NAME });
  return await over(t, redisStore(pool), server, proxy);
}

async function over(
  t: ExecutionContext,
  store: WholeStore,
  server: RedisServer,
  proxy: TcpProxy,
): Promise<Setting> {
  const warnings: string[] = [];
  const process = new FleetProcess({
    store,
    commandTimeout: "250ms",
    logger: { warn: (line) => void warnings.push(line) },
  });
  t.teardown(() => retire(process));
  await process.call("LOCK_first", PATIENT, () => {});
  return { server, proxy, process, warnings };
}

async function serverAndProxy(t: ExecutionContext): Promise<[RedisServer, TcpProxy]> {
  const server = await startRedis();
  const proxy = await startTcpProxy(server.port);
  t.teardown(async () => {
    await proxy.stop();
    await server.stop();
  });
  return [server, proxy];
}

/** Returns the IDs of the store's connections for commands. */
async function idsOf(watcher: Redis): Promise<string[]> {
  const clients = String(await watcher.client("LIST")).split("\n");
  return clients
    .filter((line) => line.includes(`name=${NAME} `) && line.includes(" sub=0 "))
    .map((line) => /^id=(\d+)/.exec(line)?.[1] ?? "");
}

/** Ways to open a store with a connection of its own. */
const OWN_CONNECTIONS: Record<string, (t: ExecutionContext) => Promise<Setting>> = {
  ...Object.fromEntries(
    URL_LIBRARIES.map((library) => [
      `${library.title}a store by URL`,
      (t: ExecutionContext) => byUrl(t, library),
    ]),
  ),
  "a store over a pool of node-redis": overPool,
};

for (const [store, open] of Object.entries(OWN_CONNECTIONS)) {
  test(`${store} replaces a connection with a dead route, keeps its locks, and acquires new ones`, async (t) => {
    const { proxy, process } = await open(t);
    const [entered, end] = [deferred(), deferred()];
    const held = process.call("LOCK_held", { lockTime: "20s" }, async ({ signal }) => {
      entered.resolve();
      await end.promise;
      return signal.aborted ? "lost" : "kept";
    });
    await entered.promise;
    proxy.loseRoute();
    t.is(await process.call("LOCK_other", PATIENT, () => "in"), "in");
    end.resolve();
    t.is(await held, "kept");
  });

  test(`${store} does not send commands in flight again on a replaced connection`, async (t) => {
    const { server, proxy, process } = await open(t);
    const commands = await commandsDuring(server.client(), async () => {
      proxy.loseRoute();
      t.is(await process.call("LOCK_once", PATIENT, () => "in"), "in");
    });
    const lostIds = proxy.lostCommands
      .filter((words) => words.includes("LOCK_once"))
      .map((words) => words[words[0] === "set" ? 2 : 7] ?? "");
    t.true(lostIds.length > 1);
    const repeated = commands.filter((words) => words.some((word) => lostIds.includes(word)));
    t.deepEqual(repeated, []);
  });
}

/** Makes the process wait for a lock of another one, so that it opens its connection for messages. */
async function waitsOnce(process: FleetProcess, server: RedisServer, watcher: Redis): Promise<void> {
  const other = new FleetProcess({ store: redisStore(server.client()) });
  let waiting: Promise<unknown> | undefined;
  await other.call("LOCK_before", PATIENT, async () => {
    waiting = process.call("LOCK_before", PATIENT, () => {});
    await until(async () => / sub=1 /.test(String(await watcher.client("LIST"))));
  });
  await waiting;
  await retire(other);
}

const PAUSES: Record<string, (server: RedisServer, watcher: Redis) => Promise<() => Promise<unknown>>> = {
  async "is stopped"({ pid }) {
    process.kill(pid, "SIGSTOP");
    return async () => process.kill(pid, "SIGCONT");
  },
  async "has its writes paused"(_server, watcher) {
    await watcher.call("CLIENT", "PAUSE", "600000", "WRITE");
    return () => watcher.call("CLIENT", "UNPAUSE");
  },
};

const PAUSED = URL_LIBRARIES.flatMap((library) => Object.keys(PAUSES).map((name) => ({ library, name })));

for (const { library, name } of PAUSED) {
  test(`${library.title}a store by URL keeps its connection to a server that ${name}`, async (t) => {
    const { server, proxy, process } = await byUrl(t, library);
    const watcher = server.client();
    await waitsOnce(process, server, watcher);
    const [id] = await idsOf(watcher);
    const connections = proxy.connectionsMade;
    const resume = await PAUSES[name]?.(server, watcher);
    const waiting = process.call("LOCK_paused", PATIENT, () => "in");
    await until(() => proxy.connectionsMade > connections); // It probes the server over a second connection.
    await resume?.();
    t.is(await waiting, "in");
    await until(async () => (await idsOf(watcher)).length === 1);
    t.deepEqual(await idsOf(watcher), [id]);
  });
}

for (const library of URL_LIBRARIES) {
  test(`${library.title}a store by URL keeps its first connection if the server answers a second one first`, async (t) => {
    const { server, proxy, process } = await byUrl(t, library);
    const watcher = server.client();
    const ids = await idsOf(watcher);
    proxy.answerNewConnectionsFirst();
    t.is(await process.call("LOCK_late", PATIENT, () => "in"), "in");
    await until(async () => (await idsOf(watcher)).length === 1);
    t.deepEqual(await idsOf(watcher), ids);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a store by URL gives up on a connection whose handshake gets no answer`, async (t) => {
    const [, proxy] = await serverAndProxy(t);
    proxy.blackHole();
    const process = new FleetProcess({
      store: redisStoreAt(at(`redis://127.0.0.1:${proxy.port}`)),
      logger: { warn() {} },
    });
    t.teardown(() => retire(process));
    const call = process.call("LOCK_first", PATIENT, () => "in");
    await until(() => proxy.connectionsMade === 1);
    proxy.loseRoute();
    proxy.heal();
    t.is(await call, "in");
  });
}

for (const library of [IOREDIS, NODE_REDIS_3]) {
  test(`${library.title}a dead route of the caller's own client logs one warning that says what to do`, async (t) => {
    const [server, proxy] = await serverAndProxy(t);
    const client = await library.client(server, { port: proxy.port });
    const warnings: string[] = [];
    const process = new FleetProcess({
      store: redisStore(client),
      commandTimeout: "250ms",
      logger: { warn: (line) => void warnings.push(line) },
    });
    t.teardown(() => retire(process));
    await process.call("LOCK_first", PATIENT, () => {});
    proxy.loseRoute();
    const refused = t.throwsAsync(
      process.call("LOCK_next", { retryTimes: 1, waitTime: "9s" }, () => t.fail()),
    );
    await until(() =>
      warnings.some((line) =>
        /that connection is dead.*Fix: (?:set .*socketTimeout|pass a redis:\/\/ URL)/.test(line),
      ),
    );
    await refused;
    t.is(warnings.filter((line) => line.includes("socketTimeout")).length, 1, warnings.join("\n"));
  });
}

test("a client in subscriber mode, which itself rejects lock commands, is not reported as a dead route", async (t) => {
  const [server, proxy] = await serverAndProxy(t);
  const client = new Redis(server.port, "127.0.0.1", { protocol: 2 });
  const [store, silent] = [redisStore(client), redisStore(server.client({ port: proxy.port }))];
  t.teardown(async () => {
    await Promise.all([store.close(), silent.close()]);
    client.disconnect();
  });
  const [events, silentEvents] = [recordEvents(store), recordEvents(silent)];
  for (const one of [store, silent]) await acquire(one, newKey(), newId());
  await client.subscribe("messages of the application");
  proxy.loseRoute();
  for (const key of [newKey(), newKey()]) {
    const message = /the Redis client is in subscriber mode/;
    await t.throwsAsync(store.acquire(request(key, newId()), 250), { message });
    silent.acquire(request(key, newId()), 250).catch(() => {});
  }
  t.regex(await silentEvents.warned, /that connection is dead/); // The other store has had the time to warn, too.
  t.deepEqual(events.warnings, []);
});

for (const [library, says] of [
  [
    IOREDIS,
    /because of the blocking command BLPOP of the application.*Fix: give blocking commands a client of their own/,
  ],
  [
    NODE_REDIS_3,
    /or a blocking command of the application holds it, such as BLPOP, which needs a client of its own/,
  ],
] as const) {
  test(`${library.title}a blocking command of the application on the client of the locks is named`, async (t) => {
    const [server] = await serverAndProxy(t);
    const client = await library.client(server, { port: server.port });
    const warnings: string[] = [];
    const process = new FleetProcess({
      store: redisStore(client),
      commandTimeout: "250ms",
      logger: { warn: (line) => void warnings.push(line) },
    });
    t.teardown(() => retire(process));
    await process.call("LOCK_first", PATIENT, () => {});
    const popped =
      library === IOREDIS ? (client as Redis).blpop("jobs", 0) : (client as RedisClientType).blPop("jobs", 0);
    const call = process.call("LOCK_next", PATIENT, () => "in");
    await until(() => warnings.some((line) => says.test(line)));
    t.false(
      warnings.some((line) => line.includes("set socketTimeout")),
      warnings.join("\n"),
    );
    await server.client().rpush("jobs", "job");
    await popped;
    t.is(await call, "in");
  });
}

test("a dead route is named although a command waits there that should have ended", async (t) => {
  const [server, proxy] = await serverAndProxy(t);
  const client = (await IOREDIS.client(server, { port: proxy.port })) as Redis;
  const warnings: string[] = [];
  const process = new FleetProcess({
    store: redisStore(client),
    commandTimeout: "250ms",
    logger: { warn: (line) => void warnings.push(line) },
  });
  t.teardown(() => retire(process));
  await process.call("LOCK_first", PATIENT, () => {});
  proxy.loseRoute();
  client.blpop("jobs", 1).catch(() => {});
  client.xread("STREAMS", "jobs", 0).catch(() => {});
  const refused = t.throwsAsync(process.call("LOCK_next", { retryTimes: 1, waitTime: "9s" }, () => t.fail()));
  await until(() => warnings.some((line) => line.includes("that connection is dead")));
  t.false(
    warnings.some((line) => line.includes("blocking commands")),
    warnings.join("\n"),
  );
  await refused;
});
