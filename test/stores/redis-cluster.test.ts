import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import type { Cluster } from "ioredis";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import { storeContract } from "../store-contract";
import {
  release,
  listen,
  newId,
  newKey,
  enqueue,
  placing,
  queued,
  renew,
  renewal,
  acquire,
  TAKEN,
  TIMEOUT_MS,
} from "../store-contract/subject";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster";
import { untilSubscribedEverywhere, untilSubscribedTo } from "./subscribed-everywhere";
import { recordEvents } from "./noting-listener";
import { registering } from "./registering";

let server: RedisCluster;
let admin: Cluster;
let store: WholeStore;
let overNodeRedis: WholeStore;

test.before(async () => {
  server = await startRedisCluster(3);
  admin = server.cluster();
  store = redisStore(server.cluster());
  overNodeRedis = redisStore(server.nodeRedis({ keyPrefix: "app:" }));
  await untilSubscribedEverywhere(store, server);
  await untilSubscribedEverywhere(overNodeRedis, server, "app:");
});

test.after.always(async () => {
  await store.close();
  await overNodeRedis.close();
  await server.stop();
});

storeContract(registering(test), () => ({
  store,
  elapse: (ms) => pause(ms + 5),
  put: async (key, value, ms) => void (await admin.set(key, value, "PX", ms)),
}));

storeContract(registering(test, "over node-redis: "), () => ({
  store: overNodeRedis,
  elapse: (ms) => pause(ms + 5),
  put: async (key, value, ms) => void (await admin.set(`app:${key}`, value, "PX", ms)),
}));

async function keysLike(pattern: string): Promise<string[]> {
  return (await Promise.all(server.nodes.map((node) => node.admin.keys(pattern)))).flat();
}

async function slotsOf(pattern: string): Promise<Set<number>> {
  const keys = await keysLike(pattern);
  return new Set(await Promise.all(keys.map((key) => admin.cluster("KEYSLOT", key))));
}

for (const name of ["plain", "with{tag}in", "{open"]) {
  test(`the fencing counter and the queue of ${name} are in the slot of its lock key`, async (t) => {
    const key = `${newKey()}${name}`;
    t.true((await acquire(store, key, newId(), { fencing: true })).acquired);
    await queued(store, key, newId());
    t.is((await keysLike(`*${key}*`)).length, 3);
    t.is((await slotsOf(`*${key}*`)).size, 1);
  });
}

for (const keyPrefix of ["shop:", "{shop}:"]) {
  test(`the fencing counter and the queue stay in the slot of their lock key with keyPrefix ${keyPrefix}`, async (t) => {
    const prefixed = redisStore(server.cluster({ keyPrefix }));
    const [key, requestId, waiting] = [newKey(), newId(), newId()];
    await untilSubscribedTo(prefixed, server, key, keyPrefix);
    t.true((await acquire(prefixed, key, requestId, { fencing: true })).acquired);
    const ear = listen(prefixed, waiting);
    await queued(prefixed, key, waiting);
    t.is((await keysLike(`${keyPrefix}${key}`)).length, 1);
    t.is((await keysLike(`*${key}*`)).length, 3);
    t.is((await slotsOf(`*${key}*`)).size, 1);
    await queued(prefixed, key, waiting); // On a busy machine, the ticket may be over.
    t.deepEqual(await release(prefixed, key, requestId), { released: true });
    await ear.woken;
    await prefixed.close();
  });
}

for (const braces of ["}closed", "{}empty-tag", "{}a{tag}"]) {
  test(`a key with ${braces} has no queue and no fencing: fencing throws, and waiters poll`, async (t) => {
    const key = `${newKey()}${braces}`;
    await t.throwsAsync(acquire(store, key, newId(), { fencing: true }), {
      instanceOf: LockMisconfiguredError,
      message: /CROSSSLOT/,
    });
    const [holder, waiting, requestId] = [newId(), newId(), newId()];
    t.true((await acquire(store, key, holder)).acquired, "the key works without fencing");
    const reply = await enqueue(store, key, waiting);
    t.true(!reply.acquired && reply.holder === holder && (reply.freeInMs ?? 0) > 0, "a waiter can poll");
    const held = { key, requestId: holder };
    t.deepEqual(await store.queue.releaseAndEnqueue(held, placing(key, newId()), TIMEOUT_MS), {
      released: true,
      next: undefined,
    });
    t.deepEqual(await store.queue.releaseAndEnqueue(held, placing(key, newId()), TIMEOUT_MS), {
      released: false,
      holder: undefined,
    });
    t.deepEqual(await enqueue(store, key, waiting, {}, requestId), TAKEN);
    await store.queue.dequeue(key, waiting, TIMEOUT_MS);
    t.deepEqual(await release(store, key, newId()), { released: false, holder: requestId });
    t.deepEqual(await release(store, key, requestId), { released: true });
    t.true((await acquire(store, key, newId())).acquired);
  });
}

test("close() leaves the caller's cluster client open", async (t) => {
  const cluster = server.cluster();
  const own = redisStore(cluster);
  await untilSubscribedEverywhere(own, server);
  await own.close();
  t.is(await cluster.ping(), "PONG");
});

test("close() leaves no listener on the caller's cluster client or its nodes", async (t) => {
  const cluster = server.cluster();
  await cluster.ping();
  await Promise.all(cluster.nodes().map((node) => node.ping())); // All nodes are ready from here on.
  const listeners = (): unknown =>
    [cluster, ...cluster.nodes()].map((one) =>
      one.eventNames().map((event) => [event, one.listenerCount(event)]),
    );
  const before = listeners();
  const own = redisStore(cluster);
  t.true((await acquire(own, newKey(), newId())).acquired);
  t.notDeepEqual(listeners(), before);
  await own.close();
  t.deepEqual(listeners(), before);
});

test("locks continue if the connections to the only master are killed, but not those to its replica", async (t) => {
  const small = await startRedisCluster(1, 1);
  t.teardown(() => small.stop());
  const own = redisStore(small.cluster());
  t.teardown(() => own.close());
  const [key, requestId] = [newKey(), newId()];
  await acquire(own, key, requestId);
  await small.nodes[0]?.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  t.deepEqual(await renew(own, key, requestId, 60_000), { renewed: true });
  t.like(await enqueue(own, key, newId()), { acquired: false, holder: requestId });
});

test("keys of the other nodes are renewed, read, and released if one node of a cluster is gone", async (t) => {
  const lonely = await startRedisCluster(2);
  t.teardown(() => lonely.stop());
  for (const node of lonely.nodes) await node.admin.config("SET", "cluster-require-full-coverage", "no");
  const own = redisStore(lonely.cluster({ maxRedirections: 1 }));
  const holds = Array.from({ length: 20 }, () => ({ key: newKey(), requestId: newId() }));
  await Promise.all(holds.map(({ key, requestId }) => acquire(own, key, requestId)));
  const [gone] = lonely.nodes;
  const lost = await Promise.all(holds.map(async ({ key }) => (await lonely.masterOf(key)) === gone));
  await gone?.kill();
  const renewed = await own.renew(
    holds.map(({ key, requestId }) => renewal(key, requestId)),
    TIMEOUT_MS,
  );
  const looked = await own.peek(
    holds.map(({ key }) => key),
    TIMEOUT_MS,
  );
  const dropped = (await own.batch?.releaseMany(holds, TIMEOUT_MS)) ?? [];
  for (const [index, isLost] of lost.entries()) {
    const replies = [renewed[index], looked[index], dropped[index]];
    if (isLost) t.true(replies.every((reply) => reply instanceof Error));
    else t.deepEqual(replies, [{ renewed: true }, holds[index]?.requestId, { released: true }]);
  }
  t.true(lost.includes(true) && lost.includes(false));
  await own.close();
});

test("a listener is notified that a node is gone, without sending a command", async (t) => {
  t.timeout(300_000);
  const lonely = await startRedisCluster(2);
  t.teardown(() => lonely.stop());
  const own = redisStore(lonely.cluster());
  await untilSubscribedEverywhere(own, lonely);
  const events = recordEvents(own);
  await lonely.nodes[1]?.kill();
  await events.reconnected;
  await own.close();
  t.pass();
});

test("a listener is notified that a node is reachable again", async (t) => {
  const lonely = await startRedisCluster();
  t.teardown(() => lonely.stop());
  const own = redisStore(lonely.cluster());
  await acquire(own, newKey(), newId());
  const events = recordEvents(own);
  t.is(events.reconnects, 0);
  await lonely.client().call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  // A cluster client reconnects only when it sends a command.
  while (events.reconnects === 0) await acquire(own, newKey(), newId()).catch(() => pause(10));
  t.true(events.reconnects > 0);
  await own.close();
});
