import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import type { Redis } from "ioredis";
import { LockMisconfiguredError } from "../../runtime/errors";
import { hearing, storeContract } from "../../runtime/stores/contract";
import {
  drop,
  listen,
  newId,
  newKey,
  place,
  placing,
  queued,
  renewal,
  take,
  TAKEN,
  WITHIN_MS,
} from "../../runtime/stores/contract/subject";
import type { Store } from "../../runtime/stores/port";
import type { RedisClient } from "../../runtime/stores/redis/client";
import { redisStore } from "../../runtime/stores/redis/redis";
import { counting } from "../support/counting-client";
import { startRedisCluster, type RedisCluster } from "../support/redis-cluster";
import { noting } from "./noting-listener";
import { registering } from "./registering";

let server: RedisCluster;
let node: Redis;
let store: Store;

test.before(async () => {
  server = await startRedisCluster();
  node = server.client();
  store = redisStore(server.cluster());
  await hearing(store);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

storeContract(registering(test), () => ({
  store,
  elapse: (ms) => pause(ms + 5),
  put: async (key, value, ms) => void (await node.set(key, value, "PX", ms)),
}));

async function slotsOf(pattern: string): Promise<Set<number>> {
  const keys = await node.keys(pattern);
  return new Set(await Promise.all(keys.map((key) => node.cluster("KEYSLOT", key))));
}

for (const name of ["plain", "with{tag}in", "{open"]) {
  test(`the counter and the queue of ${name} live in the slot of its lock key`, async (t) => {
    const key = `${newKey()}${name}`;
    t.true((await take(store, key, newId(), { fencing: true })).taken);
    await queued(store, key, newId());
    t.is((await node.keys(`*${key}*`)).length, 3);
    t.is((await slotsOf(`*${key}*`)).size, 1);
  });
}

for (const keyPrefix of ["shop:", "{shop}:"]) {
  test(`the client's keyPrefix ${keyPrefix} does not part the counter and the queue from their lock key`, async (t) => {
    const prefixed = redisStore(server.cluster({ keyPrefix }));
    await hearing(prefixed);
    const [key, requestId, waiting] = [newKey(), newId(), newId()];
    t.true((await take(prefixed, key, requestId, { fencing: true })).taken);
    const ear = listen(prefixed, waiting);
    await queued(prefixed, key, waiting);
    t.is((await node.keys(`${keyPrefix}${key}`)).length, 1);
    t.is((await node.keys(`*${key}*`)).length, 3);
    t.is((await slotsOf(`*${key}*`)).size, 1);
    t.deepEqual(await drop(prefixed, key, requestId), { dropped: true });
    await ear.heard;
    await prefixed.close();
  });
}

for (const braces of ["}closed", "{}empty-tag", "{}a{tag}"]) {
  test(`a key with ${braces} has no other key in its slot: that is told, not waited for`, async (t) => {
    const key = `${newKey()}${braces}`;
    await t.throwsAsync(take(store, key, newId(), { fencing: true }), {
      instanceOf: LockMisconfiguredError,
      message: /CROSSSLOT/,
    });
    const [holder, waiting, requestId] = [newId(), newId(), newId()];
    t.true((await take(store, key, holder)).taken, "without fencing it is a key like any other");
    const reply = await place(store, key, waiting);
    t.true(!reply.taken && reply.holder === holder && (reply.freeInMs ?? 0) > 0, "one can wait by looking");
    const held = { key, requestId: holder };
    t.deepEqual(await store.next(held, placing(key, newId()), WITHIN_MS), { dropped: true, next: undefined });
    t.deepEqual(await store.next(held, placing(key, newId()), WITHIN_MS), {
      dropped: false,
      holder: undefined,
    });
    t.deepEqual(await place(store, key, waiting, {}, requestId), TAKEN);
    await store.leave(key, waiting, WITHIN_MS);
    t.deepEqual(await drop(store, key, newId()), { dropped: false, holder: requestId });
    t.deepEqual(await drop(store, key, requestId), { dropped: true });
    t.true((await take(store, key, newId())).taken);
  });
}

test("to a cluster every key is sent alone, because their slots may be on different nodes", async (t) => {
  const { client, commands } = counting(server.cluster());
  const own = redisStore(client);
  t.is(own.takeMany, undefined);
  t.is(own.dropMany, undefined);
  const requests = Array.from({ length: 10 }, () => renewal(newKey(), newId()));
  await Promise.all(requests.map((request) => own.take(request, WITHIN_MS)));
  t.deepEqual(
    commands(),
    requests.map(() => "SET"),
  );
  const renewed = await own.renew(requests, WITHIN_MS);
  t.true(renewed.every((reply) => !(reply instanceof Error) && reply.renewed));
  const looked = await own.look(
    requests.map(({ key }) => key),
    WITHIN_MS,
  );
  t.deepEqual(
    looked,
    requests.map(({ requestId }) => requestId),
  );
  await own.close();
});

test("close() leaves the caller's cluster client open", async (t) => {
  const cluster = server.cluster();
  const own = redisStore(cluster);
  await hearing(own);
  await own.close();
  t.is(await cluster.ping(), "PONG");
});

test("when one node of a cluster does not answer, the keys of the others are renewed and looked at all the same", async (t) => {
  const cluster = server.cluster();
  const [mine, elsewhere, requestId] = [newKey(), newKey(), newId()];
  const own = redisStore(
    Object.create(cluster, {
      call: {
        value: async (command: string, ...args: (string | number)[]) => {
          if (args.includes(elsewhere)) throw new Error("CLUSTERDOWN The cluster is down");
          return await cluster.call(command, ...args);
        },
      },
    }) as RedisClient,
  );
  await take(own, mine, requestId);
  const renewed = await own.renew([renewal(elsewhere, requestId), renewal(mine, requestId)], WITHIN_MS);
  t.like(renewed[0], { message: "CLUSTERDOWN The cluster is down" });
  t.deepEqual(renewed[1], { renewed: true });
  const looked = await own.look([elsewhere, mine], WITHIN_MS);
  t.like(looked[0], { message: "CLUSTERDOWN The cluster is down" });
  t.is(looked[1], requestId);
  await own.close();
});

test("that a node is there again is told to who listens", async (t) => {
  const lonely = await startRedisCluster();
  t.teardown(() => lonely.stop());
  const own = redisStore(lonely.cluster());
  await take(own, newKey(), newId());
  const told = noting(own);
  t.is(told.reconnects, 0);
  await lonely.client().call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  // A cluster client makes a connection when it is asked for something.
  while (told.reconnects === 0) await take(own, newKey(), newId()).catch(() => pause(10));
  t.true(told.reconnects > 0);
  await own.close();
});
