import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import type { Redis } from "ioredis";
import { untilListening, storeContract } from "../store-contract";
import { newId, newKey, acquire } from "../store-contract/subject";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { NODE_REDIS, NODE_REDIS_POOL } from "../support/client-libraries";
import { startRedis, type RedisServer } from "../support/redis-server";
import { beforeRedis7 } from "./before-redis-7";
import { asOneOfMany } from "./one-of-many";
import { registering } from "./registering";

// The store contract for each way in which the store accesses a single Redis node.

const LIBRARIES = [...NODE_REDIS, NODE_REDIS_POOL];

let server: RedisServer;
let admin: Redis;
let stores: {
  readonly plain: WholeStore;
  readonly byUrl: WholeStore;
  readonly byNodeRedis: WholeStore;
  readonly old: WholeStore;
};
let overNodeRedis: readonly WholeStore[];

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  stores = {
    plain: redisStore(server.client()),
    byUrl: redisStoreAt({ url: server.url, client: "ioredis" }),
    byNodeRedis: redisStoreAt({ url: server.url, client: "redis" }),
    old: redisStore(beforeRedis7(server.client()).client),
  };
  overNodeRedis = await Promise.all(
    LIBRARIES.map(async ({ client }) => redisStore(await client(server, { keyPrefix: "app:" }))),
  );
  await Promise.all([...Object.values(stores), ...overNodeRedis].map((store) => untilListening(store)));
  await acquire(stores.old, newKey(), newId()); // The refusal tells the store that the server is old.
});

test.after.always(async () => {
  await Promise.all([...Object.values(stores), ...overNodeRedis].map((store) => store.close()));
  await server.stop();
});

/** Redis expires a key up to a millisecond late, so this waits for a few milliseconds more. */
const elapse = (ms: number): Promise<void> => pause(ms + 5);

async function put(key: string, value: string, ms: number): Promise<void> {
  await admin.set(key, value, "PX", ms);
}

storeContract(registering(test), () => ({ store: stores.plain, elapse, put }));
storeContract(registering(test, "by URL: "), () => ({ store: stores.byUrl, elapse, put }));
storeContract(registering(test, "by URL over node-redis: "), () => ({
  store: stores.byNodeRedis,
  elapse,
  put,
}));
storeContract(registering(test, "before Redis 7: "), () => ({ store: stores.old, elapse, put }));
storeContract(registering(test, "as one of many: "), () => ({
  store: asOneOfMany(stores.plain),
  elapse,
  put,
}));
LIBRARIES.forEach(({ title }, index) => {
  storeContract(registering(test, title), () => ({
    get store() {
      return overNodeRedis[index] ?? stores.plain;
    },
    elapse,
    put: (key, value, ms) => put(`app:${key}`, value, ms),
  }));
});
