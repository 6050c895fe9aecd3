import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { LockMisconfiguredError } from "../../runtime/errors";
import type { Store } from "../../runtime/store";
import { redisStore } from "../../runtime/stores/redis";
import type { RedisClient } from "../../runtime/stores/redis-client";
import { counting } from "../support/counting-client";
import { gathering } from "../support/gathering-store";
import { startRedisCluster, type RedisCluster } from "../support/redis-server";
import {
  acquire,
  hearing,
  listen,
  newId,
  newKey,
  release,
  request,
  storeContract,
  wait,
} from "./store-contract";

let server: RedisCluster;
let store: Store;

test.before(async () => {
  server = await startRedisCluster();
  store = redisStore(server.cluster());
  await hearing(store);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

storeContract(test, () => ({ store, elapse: (ms) => pause(ms + 5) }));

async function slotsOf(pattern: string): Promise<Set<number>> {
  const node = server.client();
  const keys = await node.keys(pattern);
  return new Set(await Promise.all(keys.map((key) => node.cluster("KEYSLOT", key))));
}

for (const name of ["plain", "with{tag}in", "{open"]) {
  test(`the fence and the queue of ${name} live in the slot of its lock key`, async (t) => {
    const key = `${newKey()}${name}`;
    t.true((await acquire(store, key, newId(), { fencing: true })).granted);
    t.false((await wait(store, key, newId(), { fencing: true })).granted);
    t.is((await server.client().keys(`*${key}*`)).length, 3);
    t.is((await slotsOf(`*${key}*`)).size, 1);
  });
}

test("the client's keyPrefix does not part the fence and the queue from their lock key", async (t) => {
  const prefixed = redisStore(server.cluster({ keyPrefix: "shop:" }));
  await hearing(prefixed);
  const [key, requestId, waiter] = [newKey(), newId(), newId()];
  t.true((await acquire(prefixed, key, requestId, { fencing: true })).granted);
  const ear = listen(prefixed, waiter);
  t.false((await wait(prefixed, key, waiter, { fencing: true })).granted);
  t.is((await server.client().keys(`shop:${key}`)).length, 1);
  t.is((await slotsOf(`*${key}*`)).size, 1);
  t.is(await release(prefixed, key, requestId), "released");
  await ear.heard;
  await prefixed.close();
});

for (const braces of ["}closed", "{}empty-tag", "{}a{tag}"]) {
  test(`a key with ${braces} has no fence key in its slot: that is told, not waited for`, async (t) => {
    const key = `${newKey()}${braces}`;
    await t.throwsAsync(acquire(store, key, newId(), { fencing: true }), {
      instanceOf: LockMisconfiguredError,
      message: /CROSSSLOT/,
    });
    const [holder, waiter] = [newId(), newId()];
    t.true((await acquire(store, key, holder)).granted, "without fencing it is a key like any other");
    const reply = await wait(store, key, waiter);
    t.true(!reply.granted && (reply.freeInMs ?? 0) > 0, "with no queue in its slot, too, one can wait");
    t.deepEqual(await store.release(key, holder, request(key, newId())), { outcome: "released" });
    t.true((await wait(store, key, waiter)).granted);
    await store.leave(key, waiter);
    t.true((await acquire(store, key, newId())).granted);
  });
}

test("to a cluster every key is sent alone, because their slots may be on different nodes", async (t) => {
  const { client, commands } = counting(server.cluster());
  const own = gathering(redisStore(client));
  const keys = Array.from({ length: 10 }, newKey);
  const requestId = newId();
  const replies = await Promise.all(keys.map((key) => acquire(own, key, requestId)));
  t.true(replies.every(({ granted }) => granted));
  t.deepEqual(
    commands(),
    Array.from({ length: 10 }, () => "SET"),
  );
  const renewed = await own.renew(keys.map((key) => ({ key, requestId, lockTimeMs: 60_000 })));
  t.true(renewed.every((reply) => reply === "renewed"));
  const released = await Promise.all(keys.map((key) => release(own, key, requestId)));
  t.true(released.every((reply) => reply === "released"));
  await own.close();
});

test("close() leaves the caller's cluster client open", async (t) => {
  const cluster = server.cluster();
  const own = redisStore(cluster);
  await hearing(own);
  await own.close();
  t.is(await cluster.ping(), "PONG");
});

test("when one node of a cluster does not answer, the keys of the others are renewed all the same", async (t) => {
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
  await acquire(own, mine, requestId);
  const holders = [elsewhere, mine].map((key) => ({ key, requestId, lockTimeMs: 60_000 }));
  t.deepEqual(await own.renew(holders), ["unknown", "renewed"]);
  await own.close();
});
