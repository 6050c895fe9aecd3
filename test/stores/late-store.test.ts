import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { Redis } from "ioredis";
import { LockMisconfiguredError } from "../../runtime";
import { untilListening, storeContract } from "../store-contract";
import { release, newId, newKey, acquire } from "../store-contract/subject";
import { openRedis } from "../../runtime/stores/late-store";
import type { WholeStore } from "../../runtime/stores/port";
import { connectionTo } from "../../runtime/stores/redis/address";
import { storeAt } from "../../runtime/stores/redis/redis";
import type { ClientLibrary } from "../../runtime/stores/redis/client-port";
import { IoredisLibrary } from "../../runtime/stores/redis/ioredis/library";
import { deferred } from "../support/deferred";
import { startRedis, type RedisServer } from "../support/redis-server";
import { registering } from "./registering";

// A store by URL in the ES module, which loads ioredis asynchronously.

let server: RedisServer;
let admin: Redis;
let late: WholeStore;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  late = storeOnce(Promise.resolve(new IoredisLibrary(Redis)));
  await untilListening(late);
});
test.after.always(async () => {
  await late.close();
  await server.stop();
});

function storeOnce(loading: Promise<ClientLibrary>): WholeStore {
  return openRedis(loading, (loaded) => storeAt(loaded, connectionTo(server.url, "redis")));
}

storeContract(registering(test), () => ({
  store: late,
  elapse: (ms) => pause(ms + 5),
  put: async (key, value, ms) => void (await admin.set(key, value, "PX", ms)),
}));

test("commands and listeners work even if ioredis loads later", async (t) => {
  const loading = deferred<ClientLibrary>();
  const store = storeOnce(loading.promise);
  t.teardown(() => store.close());
  const [key, requestId] = [newKey(), newId()];
  const taken = acquire(store, key, requestId);
  loading.resolve(new IoredisLibrary(Redis));
  t.true((await taken).acquired);
  t.deepEqual(await release(store, key, requestId), { released: true });
  await untilListening(store);
});

test("a command that times out before ioredis has loaded is not sent", async (t) => {
  const loading = deferred<ClientLibrary>();
  const store = storeOnce(loading.promise);
  t.teardown(() => store.close());
  const key = newKey();
  const tooLate = store.acquire({ key, requestId: newId(), lockTimeMs: 1_000, fencing: false }, 0);
  loading.resolve(new IoredisLibrary(Redis));
  await t.throwsAsync(tooLate, { message: "the Redis client was still loading" });
  t.true((await acquire(store, key, newId())).acquired);
});

test("the store warns and rejects each command if ioredis is missing", async (t) => {
  const loading = deferred<ClientLibrary>();
  const store = storeOnce(loading.promise);
  const warnings: string[] = [];
  store.listen({ onWakeUp() {}, onReconnect() {}, onWarning: (message) => warnings.push(message) });
  const missing = new LockMisconfiguredError("npm install ioredis");
  loading.reject(missing);
  for (const key of [newKey(), newKey()]) {
    t.is(await t.throwsAsync(acquire(store, key, newId())), missing);
  }
  t.deepEqual(warnings, ["npm install ioredis"]);
  await t.notThrowsAsync(store.close());
});

test("a store that was closed before ioredis loaded opens no connection", async (t) => {
  const loading = deferred<ClientLibrary>();
  let opened = 0;
  const store = openRedis(loading.promise, (loaded) => {
    opened += 1;
    return storeAt(loaded, connectionTo(server.url, "redis"));
  });
  const warnings: string[] = [];
  store.listen({ onWakeUp() {}, onReconnect() {}, onWarning: (message) => warnings.push(message) });
  const taken = acquire(store, newKey(), newId());
  await store.close();
  loading.resolve(new IoredisLibrary(Redis));
  await t.throwsAsync(taken, { message: "the store was closed before it opened" });
  t.is(opened, 0);
  t.deepEqual(warnings, []);
});
