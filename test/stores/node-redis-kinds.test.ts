import { execFile } from "node:child_process";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import test, { type ExecutionContext } from "ava";
import { createClientPool, createCluster, createSentinel } from "redis";
import { openStores } from "../../runtime/config/configured-stores";
import type { NodeRedisClient } from "../../runtime/stores/redis/client";
import type { NodeRedisCluster } from "../../runtime/stores/redis/node-redis/client";
import type { Place } from "../../runtime/stores/redis/node-redis/connection";
import { NodeRedisOwnNode } from "../../runtime/stores/redis/node-redis/own-node";
import { SlotSearch } from "../../runtime/stores/redis/node-redis/slot-search";
import type { Source } from "../../runtime/stores/redis/node-redis/source";
import { NodeRedisTopology } from "../../runtime/stores/redis/node-redis/topology";
import { redisStore } from "../../runtime/stores/redis/redis";
import { untilListening } from "../store-contract";
import { acquire, newId, newKey, TAKEN } from "../store-contract/subject";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { NODE } from "../support/node";
import { startRedisCluster, type ClusterNode, type RedisCluster } from "../support/redis-cluster";
import { startSentinelGroup, type SentinelGroup } from "../support/redis-sentinel";
import { startRedis, type RedisServer } from "../support/redis-server";
import { migrateSlot } from "../support/reshard";
import { retire } from "../support/retire";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// The clients of node-redis that have several connections.

const ENDLESS = { retryTimes: 1, waitTime: "10m" } as const;
const SHORT = { retryTimes: 1, waitTime: "500ms" } as const;
/** For a busy machine. A cluster client that has no connection by then gives up, unlike the other clients. */
const CONNECT_WITHIN_MS = 60_000;

let server: RedisServer;
let group: SentinelGroup;
let cluster: RedisCluster;

test.before(async () => {
  server = await startRedis();
  group = await startSentinelGroup(0, 1);
  cluster = await startRedisCluster(2);
});

test.after.always(async () => {
  await server.stop();
  await group.stop();
  await cluster.stop();
});

interface Client extends NodeRedisClient {
  connect(): Promise<unknown>;
  close(): Promise<unknown>;
  destroy(): unknown;
}

/** Creates a client of each kind, which is not connected yet. */
const KINDS: Record<string, () => Client> = {
  pool: () => server.nodeRedisPool(),
  sentinel() {
    const sentinelRootNodes = group.sentinels.map(({ port }) => ({ host: "127.0.0.1", port }));
    return createSentinel({ name: group.name, sentinelRootNodes });
  },
  cluster() {
    const rootNodes = cluster.nodes.map(({ port }) => ({ socket: { host: "127.0.0.1", port } }));
    return createCluster({ rootNodes, defaults: { socket: { connectTimeout: CONNECT_WITHIN_MS } } });
  },
};

function processOver(t: ExecutionContext, client: NodeRedisClient): FleetProcess {
  const process = new FleetProcess({ store: redisStore(client), logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  return process;
}

for (const [name, create] of Object.entries(KINDS)) {
  test(`a ${name}: a lock waits until it is connected, and the error says how to connect it`, async (t) => {
    const client = create();
    const process = processOver(t, client);
    // On a busy machine, a call may give up before the command does.
    await until(async () => {
      const error = await t.throwsAsync(
        process.call("LOCK_early", SHORT, () => t.fail()),
        { code: "LOCK_UNREACHABLE" },
      );
      return (error?.message ?? "").includes(
        `client is not connected. Fix: call \`await ${name}.connect()\` at startup`,
      );
    });
    const call = process.call("LOCK_early", ENDLESS, () => "in");
    await client.connect();
    t.is(await call, "in");
    await client.destroy();
  });

  test(`a ${name}: after the application closed it, the error of a lock call says so`, async (t) => {
    const client = create();
    await client.connect();
    const process = processOver(t, client);
    t.is(await process.call("LOCK_closed", ENDLESS, () => "in"), "in");
    await client.close();
    await t.throwsAsync(
      process.call("LOCK_closed", ENDLESS, () => t.fail()),
      {
        code: "LOCK_MISCONFIGURED",
        message: /^LOCK_closed: the Redis client was closed by close\(\), quit\(\), or destroy\(\)\. Fix:/,
      },
    );
  });

  test(`a ${name}: close() leaves it open, and a view with type mappings also works`, async (t) => {
    const client = create();
    await client.connect();
    const view = client.withTypeMapping({ 36: Buffer, 58: String } as never) as NodeRedisClient;
    const store = redisStore(view);
    t.deepEqual(await acquire(store, newKey(), newId()), TAKEN);
    await store.close();
    t.true(client.isOpen);
    await client.close();
  });
}

async function connectionsTo(one: RedisServer): Promise<number> {
  const list = String(await one.client().client("LIST", "TYPE", "NORMAL"));
  return list.split("\n").filter((line) => line.includes(" name=pooled ")).length;
}

test("locks over a pool use one connection of their own, so a busy pool does not delay them", async (t) => {
  const pool = createClientPool(
    { url: server.url, database: 4, keyPrefix: "app:", name: "pooled", RESP: 2 },
    { minimum: 1, maximum: 1 },
  );
  pool.on("error", () => {});
  await pool.connect();
  const store = redisStore(pool);
  const first = { key: newKey(), requestId: newId() };
  t.deepEqual(await acquire(store, first.key, first.requestId), TAKEN);
  t.is(await server.client({ db: 4 }).get(`app:${first.key}`), first.requestId);
  const end = deferred();
  const busy = pool.execute(() => end.promise);
  const keys = Array.from({ length: 50 }, newKey);
  const replies = await Promise.all(keys.map((key) => acquire(store, key, newId())));
  t.true(replies.every(({ acquired }) => acquired));
  await untilListening(store);
  t.is(await connectionsTo(server), 2);
  end.resolve();
  await busy;
  await store.close();
  await until(async () => (await connectionsTo(server)) === 1);
  await pool.close();
});

test("a store over a pool that is closed while it connects leaves no connection", async (t) => {
  const proxy = await startTcpProxy(server.port);
  t.teardown(() => proxy.stop());
  const pool = createClientPool({ socket: { host: "127.0.0.1", port: proxy.port } }, { maximum: 1 });
  pool.on("error", () => {});
  await pool.connect();
  t.teardown(() => pool.destroy());
  const opened = deferred<{ readonly isOpen: boolean }>();
  await pool.execute((client) => {
    const duplicate = client.duplicate.bind(client);
    client.duplicate = (overrides) => {
      const other = duplicate(overrides);
      opened.resolve(other);
      return other;
    };
  });
  proxy.blackHole();
  const store = redisStore(pool);
  const lock = t.throwsAsync(acquire(store, newKey(), newId()), { message: /the store was closed/ });
  const connection = await opened.promise;
  t.true(connection.isOpen);
  await store.close();
  t.false(connection.isOpen);
  await lock;
});

test("the error about a pool whose only connection is in use says how to avoid that", async (t) => {
  const pool = createClientPool({ url: server.url }, { maximum: 1, acquireTimeout: 100 });
  pool.on("error", () => {});
  t.teardown(() => pool.close());
  const process = processOver(t, pool);
  await pool.connect();
  await pool.execute(async () => {
    await t.throwsAsync(
      process.call("LOCK_inside", { retryTimes: 1, waitTime: "2s" }, () => t.fail()),
      { message: /all connections of the pool are in use.*Fix: connect the pool before you call configure/ },
    );
  });
  t.is(await process.call("LOCK_inside", ENDLESS, () => "in"), "in");
});

for (const [what, program] of [
  ["before shutdown()", "await withLock('LOCK_idle', {}, () => {});"],
  [
    "after shutdown(), if a caller has waited",
    "await Promise.all([1, 2].map(() => withLock('LOCK_waited', { watchdog: false }, () => {}))); await shutdown();",
  ],
] as const) {
  test(`the idle connection of locks over a pool does not keep the process alive ${what}`, async (t) => {
    const [node, ...args] = NODE;
    const source = `
      const { createClientPool } = require("redis");
      const { configure, shutdown, withLock } = require(${JSON.stringify(join(__dirname, "../../runtime"))});
      (async () => {
        const pool = createClientPool({ url: ${JSON.stringify(server.url)} });
        await pool.connect();
        configure({ redis: pool, woven: false });
        ${program}
        await pool.close();
        console.log("end");
      })();`;
    const { stdout, stderr } = await promisify(execFile)(node, [...args, "-e", source], { timeout: 60_000 });
    t.is(stderr, "");
    t.is(stdout, "end\n");
  });
}

for (const name of ["pool", "sentinel"] as const) {
  test(`a ${name}: the first lock may be acquired while the only connection is in use`, async (t) => {
    const busy = name === "pool" ? await busyPool() : await busySentinel();
    const store = redisStore(busy.client);
    t.teardown(() => store.close());
    await busy.use(async () => t.deepEqual(await acquire(store, newKey(), newId()), TAKEN));
    await busy.client.close();
  });
}

/** A client with one connection, and a function that uses it as long as `use` runs. */
interface Busy {
  readonly client: Client;
  use(use: () => Promise<unknown>): Promise<unknown>;
}

async function busyPool(): Promise<Busy> {
  const client = createClientPool({ url: server.url }, { maximum: 1 });
  client.on("error", () => {});
  await client.connect();
  return { client, use: (use) => client.execute(use) };
}

async function busySentinel(): Promise<Busy> {
  const sentinelRootNodes = group.sentinels.map(({ port }) => ({ host: "127.0.0.1", port }));
  const client = createSentinel({ name: group.name, sentinelRootNodes });
  client.on("error", () => {});
  await client.connect();
  return { client, use: (use) => client.use(use) };
}

test("a subscription that was opened to the old master after a failover ends once the new master is known", async (t) => {
  const [other] = group.servers;
  if (other === undefined) throw new Error("there is no master");
  const client = server.nodeRedis() as unknown as Place["client"];
  const node = new NodeRedisOwnNode({ keyPrefix: "" } as Source, () => Promise.reject(new Error("not used")));
  const [subscribed, ended] = [deferred(), deferred()];
  let isSubscribed = false;
  const open = (): unknown =>
    node.openSubscription("failover", {
      subscribed() {
        isSubscribed = true;
        subscribed.resolve();
      },
      message() {},
      failed() {},
      ended: () => (isSubscribed ? ended.resolve() : open()), // On a slow machine, the connection may end before it is ready.
    });
  node.connected({ client, address: { host: "127.0.0.1", port: server.port } });
  open();
  await subscribed.promise;
  node.connected({ client, address: { host: "127.0.0.1", port: other.port } });
  await t.notThrowsAsync(ended.promise);
});

test("a Sentinel client does not repeat the command of a lock whose reply is lost", async (t) => {
  const [master] = group.servers;
  if (master === undefined) throw new Error("there is no master");
  const proxy = await startTcpProxy(master.port);
  t.teardown(() => proxy.stop());
  const client = createSentinel({
    name: group.name,
    sentinelRootNodes: group.sentinels.map(({ port }) => ({ host: "127.0.0.1", port })),
    nodeAddressMap: { [`127.0.0.1:${master.port}`]: { host: "127.0.0.1", port: proxy.port } },
  });
  client.on("error", () => {});
  await client.connect();
  t.teardown(() => client.destroy());
  const store = redisStore(client);
  t.teardown(() => store.close());
  await acquire(store, newKey(), newId());
  const [key, requestId] = [newKey(), newId()];
  const struck = proxy.strike(1, "reset", key);
  await t.throwsAsync(acquire(store, key, requestId), { message: /connection to Redis broke/ });
  await struck;
  t.is(await master.client().get(key), requestId, "Redis ran the command once");
  t.deepEqual(await acquire(store, newKey(), newId()), TAKEN);
});

test("an entry of `stores` accepts a Sentinel client, although it has a method acquire()", async (t) => {
  const stores = { payments: group.nodeRedis() };
  const store = openStores({ redis: server.client(), stores }, console, (opened) => opened.get("payments"));
  t.like(
    await store?.acquire(
      { key: newKey(), requestId: newId(), lockTimeMs: 60_000, fencing: false },
      CONNECT_WITHIN_MS,
    ),
    {
      acquired: true,
    },
  );
  await store?.close?.();
});

test("a cluster client learns where a slot has moved", async (t) => {
  const client = cluster.nodeRedis();
  const store = redisStore(client);
  t.teardown(() => store.close());
  const [key, requestId] = [`{${newKey()}}`, newId()];
  t.deepEqual(await acquire(store, key, requestId), TAKEN);
  const target = await cluster.otherMaster(key);
  await migrateSlot(cluster, key, target);
  t.like(await acquire(store, key, newId()), { acquired: false, holder: requestId });
  const slot = await target.admin.cluster("KEYSLOT", key);
  await until(() => client.slots[slot]?.master.port === target.port);
  t.deepEqual(await store.queue.dequeue(key, newId(), 10_000), undefined);
});

test("a cluster client with `minimizeConnections` connects to the nodes whose locks are used", async (t) => {
  const client = cluster.nodeRedis({ minimizeConnections: true });
  const store = redisStore(client);
  t.teardown(() => store.close());
  for (const node of cluster.nodes) {
    t.deepEqual(await acquire(store, await keyOf(node), newId()), TAKEN);
  }
  t.true(client.masters.every((master) => master.client?.isReady));
});

test("a cluster client whose node is silent asks another node for the slots", async (t) => {
  const [silent] = cluster.nodes;
  if (silent === undefined) throw new Error("the cluster has no nodes");
  const proxy = await startTcpProxy(silent.port);
  t.teardown(() => proxy.stop());
  const client = createCluster({
    rootNodes: cluster.nodes.map(({ port }) => ({ socket: { host: "127.0.0.1", port } })),
    nodeAddressMap: { [`127.0.0.1:${silent.port}`]: { host: "127.0.0.1", port: proxy.port } },
  });
  client.on("error", () => {});
  await client.connect();
  t.teardown(() => client.destroy());
  const key = await keyOf(silent);
  const slots = [...client.slots];
  const search = new SlotSearch(client as unknown as ConstructorParameters<typeof SlotSearch>[0]);
  proxy.blackHole();
  await search.find(key);
  t.deepEqual([...client.slots], slots, "the silent node still has its slot");
  const before = client.slots;
  await search.find(key);
  t.not(client.slots, before, "the client has asked for the slots");
});

test("a topology forgets a node that left the cluster while its connection was broken", (t) => {
  const client = Object.assign(new EventEmitter(), { isOpen: true, isReady: true, options: {} });
  const own = { slots: [{ master: { address: "a:1", client } }], masters: [{ address: "a:1", client }] };
  const topology = new NodeRedisTopology(own as unknown as NodeRedisCluster, "", () => {});
  const notified: string[] = [];
  topology.onChange({
    nodeAdded: () => notified.push("added"),
    nodeGone: () => notified.push("gone"),
    nodeDown() {},
    refreshed() {},
  });
  client.isReady = false;
  client.emit("reconnecting");
  client.isReady = true;
  client.emit("ready");
  client.isReady = false;
  client.emit("reconnecting");
  t.deepEqual(notified.splice(0), ["gone", "added", "gone"]);
  Object.assign(own, { slots: [], masters: [] });
  client.isOpen = false;
  client.emit("end");
  topology.addressOf(0);
  client.emit("ready");
  t.deepEqual(notified, []);
});

async function keyOf(node: ClusterNode): Promise<string> {
  for (;;) {
    const key = `{${newKey()}}`;
    if ((await cluster.masterOf(key)) === node) return key;
  }
}
