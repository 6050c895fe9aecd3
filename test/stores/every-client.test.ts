import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { configure, shutdown } from "../../runtime/config/configure";
import { health } from "../../runtime/diagnostics/health";
import { ready } from "../../runtime/diagnostics/ready";
import { FENCING_STRIDE, type WholeStore } from "../../runtime/stores/port";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { untilListening } from "../store-contract";
import {
  acquire,
  enqueue,
  listen,
  newId,
  newKey,
  queued,
  release,
  TIMEOUT_MS,
  token,
} from "../store-contract/subject";
import { fenceOf } from "../support/auxiliary-keys";
import { IOREDIS, NODE_REDIS, NODE_REDIS_POOL, URL_LIBRARIES } from "../support/client-libraries";
import { openGlide, openGlideCluster, type OpenGlide } from "../support/glide";
import { hasOtherClients } from "../support/other-clients";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster";
import { startSentinelGroup, type SentinelGroup } from "../support/redis-sentinel";
import type { RedisServer } from "../support/redis-server";
import { inMatrixSerially, isMatrix } from "../support/suites";
import { until } from "../support/until";
import { recordEvents } from "./noting-listener";
import { untilSubscribedEverywhere } from "./subscribed-everywhere";

// Wake-ups, replicas, and broken connections over each kind of client for Node. Other tests cover the details over one of them.

let group: SentinelGroup;
let cluster: RedisCluster;

test.before(async () => {
  if (!isMatrix) return;
  group = await startSentinelGroup(1, 1);
  cluster = await startRedisCluster(1, 1);
});

test.after.always(async () => {
  if (!isMatrix) return;
  await group.stop();
  await cluster.stop();
});

/** A master and its replica. */
interface Pair {
  readonly master: Redis;
  readonly replica: Redis;
  readonly replicaPid: number;
}

type Open = (t: ExecutionContext) => WholeStore | Promise<WholeStore>;

function firstServer(): RedisServer {
  const [master] = group.servers;
  if (master === undefined) throw new Error("the group has no master");
  return master;
}

/** @param options options of the client of the replica */
function pairOf(
  [master, replica]: readonly RedisServer[],
  options: { readonly readOnly?: boolean } = {},
): Pair {
  if (master === undefined || replica === undefined) throw new Error("the master or its replica is missing");
  return { master: master.client(), replica: replica.client(options), replicaPid: replica.pid };
}

const GIVEN = [IOREDIS, ...NODE_REDIS, NODE_REDIS_POOL].map(({ title, client }): [string, Open] => [
  title === "" ? "over ioredis: " : title,
  async () => redisStore(await client(firstServer())),
]);

const URLS = URL_LIBRARIES.flatMap(({ name, at }): [string, Open][] => [
  [`by URL over ${name}: `, () => redisStoreAt(at(firstServer().url))],
  [`by Sentinel URL over ${name}: `, () => redisStoreAt(at(group.url))],
]);

const GLIDE = "over GLIDE";
const GLIDE_CLUSTER = `${GLIDE} with a cluster: `;

/** Clients whose master is the one of the Sentinel group. */
const OF_ONE_MASTER: Readonly<Record<string, Open>> = {
  ...Object.fromEntries([...GIVEN, ...URLS]),
  "over Sentinel with ioredis: ": () => redisStore(group.client()),
  "over Sentinel with node-redis: ": () => redisStore(group.nodeRedis()),
  ...(hasOtherClients && { [`${GLIDE}: `]: async (t) => overGlide(t, await openGlide(firstServer().port)) }),
};

const OF_CLUSTERS: Readonly<Record<string, Open>> = {
  "over a cluster with ioredis: ": () => redisStore(cluster.cluster()),
  "over a cluster with node-redis: ": () => redisStore(cluster.nodeRedis()),
  ...(hasOtherClients && { [GLIDE_CLUSTER]: async (t) => overGlide(t, await openGlideCluster(cluster)) }),
};

function overGlide(t: ExecutionContext, given: OpenGlide): WholeStore {
  t.teardown(() => given.glide.close());
  return redisStore(given);
}

/** Whether a release wakes the waiter for its key. It does not while the subscription is not open yet, or not again. */
async function receivesWakeUp(store: WholeStore): Promise<boolean> {
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  const ear = listen(store, waiting);
  await acquire(store, key, holder);
  await queued(store, key, waiting);
  await release(store, key, holder);
  await store.queue.dequeue(key, waiting, TIMEOUT_MS);
  ear.unsubscribe();
  return ear.isWoken();
}

async function opened(t: ExecutionContext, open: Open): Promise<WholeStore> {
  const store = await open(t);
  t.teardown(() => store.close());
  return store;
}

const KINDS = [
  ...Object.entries(OF_ONE_MASTER).map(([title, open]) => ({
    title,
    open,
    confirms: true,
    pair: () => pairOf(group.servers),
    set: (key: string, value: string) => firstServer().client().set(key, value),
    listening: untilListening,
  })),
  ...Object.entries(OF_CLUSTERS).map(([title, open]) => ({
    title,
    open,
    confirms: title !== GLIDE_CLUSTER,
    pair: () =>
      pairOf(
        cluster.nodes.map(({ server }) => server),
        { readOnly: true }, // Otherwise it redirects each read to the master.
      ),
    set: async (key: string, value: string) => (await cluster.masterOf(key)).admin.set(key, value),
    listening: (store: WholeStore) => untilSubscribedEverywhere(store, cluster),
  })),
];

for (const { title, open } of KINDS) {
  inMatrixSerially(`${title}ready() resolves, and health() is up`, async (t) => {
    configure({ store: await open(t), logger: { warn() {} }, woven: false });
    t.teardown(() => shutdown());
    await ready({ timeout: "1m" });
    t.is(health().status, "up");
  });
}

for (const { title, open, confirms, pair, set, listening } of KINDS) {
  inMatrixSerially(`${title}waiters get wake-ups, even after their subscription was killed`, async (t) => {
    const store = await opened(t, open);
    const { master } = pair();
    await listening(store);
    await until(() => receivesWakeUp(store));
    const { wakeUps } = recordEvents(store);
    await master.call("CLIENT", "KILL", "TYPE", "pubsub");
    // A store over a cluster opens another subscription only when a waiter asks.
    await until(() => receivesWakeUp(store));
    // GLIDE subscribes again by itself, and does not report that. Its waiters poll once a second, like all others.
    if (!title.startsWith(GLIDE)) await until(() => wakeUps.includes(undefined));
    t.pass();
  });

  (confirms ? inMatrixSerially : test.skip)(
    `${title}a lock with replicas counts only after the replica has confirmed it`,
    async (t) => {
      const store = await opened(t, open);
      const { replica, replicaPid } = pair();
      const one = { key: newKey(), requestId: newId(), lockTimeMs: 60_000, fencing: true, replicas: 1 };
      await until(async () => {
        const reply = await store.acquire(one, TIMEOUT_MS).catch(() => undefined);
        return reply?.acquired === true; // The replica may still be loading.
      });
      t.is(await replica.get(one.key), one.requestId);
      t.like((await store.renew([one], TIMEOUT_MS))[0], { renewed: true });
      process.kill(replicaPid, "SIGSTOP");
      t.teardown(() => process.kill(replicaPid, "SIGCONT"));
      const other = { ...one, key: newKey(), requestId: newId() };
      await t.throwsAsync(store.acquire(other, 500), {
        message: /0 of 1 replicas confirmed|replicas did not answer in time/,
      });
      process.kill(replicaPid, "SIGCONT");
      t.like(await store.release(one, TIMEOUT_MS), { released: true });
    },
  );

  inMatrixSerially(`${title}the largest fencing tokens are exact`, async (t) => {
    const store = await opened(t, open);
    const key = newKey();
    const counter = Number.MAX_SAFE_INTEGER - 2 * FENCING_STRIDE;
    await set(fenceOf(key), String(counter));
    t.is(token(await acquire(store, key, newId(), { fencing: true })), counter + 1);
  });

  inMatrixSerially(
    `${title}a store holds and waits again after all its connections were killed`,
    async (t) => {
      const store = await opened(t, open);
      const { master } = pair();
      const [key, holder] = [newKey(), newId()];
      await listening(store);
      await acquire(store, key, holder);
      for (const type of ["normal", "pubsub"]) {
        await master.call("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
      }
      await until(async () => {
        const reply = await enqueue(store, key, newId()).catch(() => undefined);
        return reply?.acquired === false;
      });
      t.like(await release(store, key, holder), { released: true });
      await until(() => receivesWakeUp(store));
    },
  );
}
