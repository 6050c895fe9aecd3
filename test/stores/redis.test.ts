import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { LockMisconfiguredError } from "../../runtime/errors";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis";
import type { RedisClient } from "../../runtime/stores/redis-client";
import { FENCING_STRIDE, PLACE_TIME_MS } from "../../runtime/store";
import { counting } from "../support/counting-client";
import { deferred } from "../support/deferred";
import { asOneOfMany, gathering } from "../support/gathering-store";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import type { Store } from "../../runtime/store";
import {
  acquire,
  hearing,
  listen,
  newId,
  newKey,
  release,
  renew,
  request,
  storeContract,
  token,
  wait,
} from "./store-contract";

let server: RedisServer;
let store: Store;

test.before(async () => {
  server = await startRedis();
  store = redisStore(server.client());
  await hearing(store);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

storeContract(test, () => ({ store, elapse }));
storeContract(test, () => ({ store: asOneOfMany(store), elapse }), "as one of many: ");

/** Redis ends a key in the millisecond after its time; its clock and ours run side by side. */
async function elapse(ms: number): Promise<void> {
  await pause(ms + 5);
}

test("in Redis, the key's bytes are the lock's name and its value is the requestId", async (t) => {
  const client = server.client();
  const requestId = newId();
  await acquire(store, "LOCK_payOrder_Test001", requestId, { lockTimeMs: 30_000 });
  t.is(await client.get("LOCK_payOrder_Test001"), requestId);
  const pttl = await client.pttl("LOCK_payOrder_Test001");
  t.true(pttl > 0 && pttl <= 30_000, String(pttl));
  await store.release("LOCK_payOrder_Test001", requestId);
  t.is(await client.exists("LOCK_payOrder_Test001"), 0);
});

test("a lock that draws no fencing token leaves no other key", async (t) => {
  const client = server.client();
  const [key, requestId] = [newKey(), newId()];
  await acquire(store, key, requestId);
  t.deepEqual(await client.keys(`*${key}*`), [key]);
});

test("in Redis, the queue is gone with the last who waits", async (t) => {
  const client = server.client();
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  await acquire(store, key, holder);
  await wait(store, key, first);
  await wait(store, key, second);
  t.deepEqual((await client.keys(`*${key}*`)).toSorted(), [key, `{${key}}:queue`].toSorted());
  await store.leave(key, second);
  await store.release(key, holder);
  t.true((await wait(store, key, first)).granted);
  t.deepEqual(await client.keys(`*${key}*`), [key]);
  await store.release(key, first);
  t.deepEqual(await client.keys(`*${key}*`), []);
});

test("in Redis, the queue of those who all died expires", async (t) => {
  const client = server.client();
  const key = newKey();
  await acquire(store, key, newId());
  await wait(store, key, newId());
  const pttl = await client.pttl(`{${key}}:queue`);
  t.true(pttl > PLACE_TIME_MS && pttl <= 2 * PLACE_TIME_MS, `${pttl}`);
});

test("a release frees the key even when something else lives where its queue should be", async (t) => {
  const foreigner = server.client();
  const { client, commands } = counting(foreigner);
  const own = gathering(redisStore(client));
  const [key, innocent, requestId] = [newKey(), newKey(), newId()];
  await Promise.all([key, innocent].map((name) => acquire(own, name, requestId)));
  await foreigner.set(`{${key}}:queue`, "text");
  commands();
  const released = await Promise.all([key, innocent].map((name) => release(own, name, requestId)));
  t.deepEqual(released, ["released", "released"]);
  t.true(commands().every((name) => name.startsWith("EVAL")));
  t.is(await foreigner.exists(key, innocent), 0);
  t.is(await foreigner.get(`{${key}}:queue`), "text");
  await own.close();
});

test("a release frees the key, or gives it on, even when Redis has no memory left", async (t) => {
  const full = await startRedis();
  t.teardown(full.stop);
  const admin = full.client();
  const own = redisStore(full.client());
  const [alone, handedOn, queued, requestId] = [newKey(), newKey(), newKey(), newId()];
  for (const key of [alone, handedOn, queued]) await acquire(own, key, requestId);
  const waiter = newId();
  await wait(own, queued, waiter);
  await admin.config("SET", "maxmemory", "1");
  t.is(await release(own, alone, requestId), "released");
  t.is((await own.release(handedOn, requestId, request(handedOn, newId()))).outcome, "released");
  t.is(await release(own, queued, requestId), "released");
  t.is(await admin.exists(alone, handedOn), 0);
  t.true([waiter, null].includes(await admin.get(queued)));
  await own.close();
});

test("the fence key outlives the lock, and not for ever", async (t) => {
  const client = server.client();
  const [key, requestId] = [newKey(), newId()];
  const granted = await acquire(store, key, requestId, { fencing: true, lockTimeMs: 30_000 });
  await store.release(key, requestId);
  const fence = `{${key}}:fence`;
  t.is(await client.get(fence), String(token(granted) + FENCING_STRIDE - 1));
  const pttl = await client.pttl(fence);
  t.true(pttl > 30_000 && pttl <= 30_000 + 3_600_000, String(pttl));
});

test("a fencing token rises even when the server's clock has gone back", async (t) => {
  const client = server.client();
  const key = newKey();
  const future = 4_000_000_000_000_000;
  await client.set(`{${key}}:fence`, String(future), "PX", 60_000);
  t.is(token(await acquire(store, key, newId(), { fencing: true })), future + 1);
  const waiter = newKey();
  await client.set(`{${waiter}}:fence`, String(future), "PX", 60_000);
  t.is(token(await wait(store, waiter, newId(), { fencing: true })), future + 1);
});

test("SCRIPT FLUSH, as after a restart, is survived by every script", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const client = lonely.client();
  const flushed = redisStore(client);
  const [key, requestId] = [newKey(), newId()];
  t.true((await acquire(flushed, key, requestId, { fencing: true })).granted);
  await client.script("FLUSH");
  t.true((await acquire(flushed, key, requestId, { fencing: true })).granted);
  t.is(await renew(flushed, key, requestId, 60_000), "renewed");
  await client.script("FLUSH");
  t.is(await renew(flushed, key, requestId, 60_000), "renewed");
  t.is(await release(flushed, key, requestId), "released");
});

test("the client's keyPrefix is kept in the lock key, the fence and the queue, and hints come all the same", async (t) => {
  const plain = server.client();
  const prefixed = redisStore(server.client({ keyPrefix: "shop:" }));
  await hearing(prefixed);
  const [key, requestId, waiter] = [newKey(), newId(), newId()];
  const ear = listen(prefixed, waiter);
  await acquire(prefixed, key, requestId, { fencing: true });
  await wait(prefixed, key, waiter, { fencing: true });
  t.is(await plain.get(`shop:${key}`), requestId);
  const keys = await plain.keys(`*${key}*`);
  t.is(keys.length, 3);
  t.true(keys.every((name) => name.startsWith("shop:")));
  t.true((await acquire(store, key, newId())).granted, "without the prefix it is another key");
  await prefixed.release(key, requestId);
  await ear.heard;
  await prefixed.close();
});

test("two prefixes in one Redis do not hear each other's hints", async (t) => {
  const one = redisStore(server.client({ keyPrefix: "one:" }));
  const two = redisStore(server.client({ keyPrefix: "two:" }));
  await Promise.all([hearing(one), hearing(two)]);
  const [key, requestId, waiter] = [newKey(), newId(), newId()];
  const ear = listen(one, waiter);
  const otherEar = listen(two, waiter);
  await acquire(one, key, requestId);
  await wait(one, key, waiter);
  await one.release(key, requestId);
  await ear.heard;
  t.false(otherEar.hasHeard());
  await Promise.all([one.close(), two.close()]);
});

test("a client that connects when it is first used hears hints all the same", async (t) => {
  const lazy = redisStore(server.client({ lazyConnect: true }));
  await hearing(lazy);
  await lazy.close();
  t.pass();
});

test("a client without an offline queue hears hints all the same", async (t) => {
  const client = server.client({ enableOfflineQueue: false });
  await until(() => client.status === "ready");
  const strict = redisStore(client);
  await hearing(strict);
  await strict.close();
  t.pass();
});

test("a foreigner's plain SET NX PX and a lock exclude each other, both ways", async (t) => {
  const foreigner = server.client();
  const [key, requestId] = [newKey(), newId()];
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), "OK");
  t.false((await acquire(store, key, requestId)).granted);
  const refused = await wait(store, key, requestId);
  t.true(!refused.granted && refused.freeInMs !== undefined && refused.freeInMs > 0);
  t.is(await release(store, key, requestId), "stolen");
  t.is(await foreigner.get(key), "foreigner");
  await foreigner.del(key);
  t.true((await acquire(store, key, requestId)).granted);
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), null);
});

test("those who wait go on in their order when a foreigner frees the key, and wait when it takes it", async (t) => {
  const foreigner = server.client();
  const [key, first, second] = [newKey(), newId(), newId()];
  const ear = listen(store, first);
  await foreigner.set(key, "foreigner");
  t.deepEqual(await wait(store, key, first), { granted: false, freeInMs: undefined });
  t.false((await wait(store, key, second)).granted);
  await foreigner.del(key);
  t.is(await foreigner.set(key, "another", "PX", 600_000, "NX"), "OK");
  t.false((await wait(store, key, first)).granted);
  await foreigner.del(key);
  t.false((await wait(store, key, second)).granted, "the second notices, and it is the first's turn");
  await ear.heard;
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), null);
  t.true((await wait(store, key, first)).granted);
  await foreigner.del(key); // From under the holder.
  t.true((await wait(store, key, second)).granted);
  t.is(await release(store, key, first), "stolen");
  t.is(await release(store, key, second), "released");
  ear.deafen();
});

for (const value of ["", "error ", "error ERR syntax error", "fresh"]) {
  test(`a foreigner's ${JSON.stringify(value)} is a holder like any other`, async (t) => {
    const foreigner = server.client();
    const [key, free, requestId] = [newKey(), newKey(), newId()];
    await foreigner.set(key, value, "PX", 600_000);
    t.false((await acquire(store, key, requestId)).granted, "alone");
    const [held, granted] = await Promise.all([key, free].map((name) => acquire(store, name, requestId)));
    t.false(held?.granted, "among others");
    t.true(granted?.granted);
    t.false((await acquire(store, key, requestId, { fencing: true })).granted, "with fencing");
    t.false((await wait(store, key, requestId)).granted);
    t.is(await renew(store, key, requestId, 60_000), "stolen");
    t.is(await release(store, key, requestId), "stolen");
    t.deepEqual(await store.release(key, requestId, request(key, newId())), { outcome: "stolen" });
    t.is(await foreigner.get(key), value);
  });
}

test("a foreign key without time to live is refused, and nobody knows when it becomes free", async (t) => {
  const foreigner = server.client();
  const key = newKey();
  await foreigner.set(key, "for ever");
  t.deepEqual(await acquire(store, key, newId()), { granted: false, freeInMs: undefined });
  t.deepEqual(await acquire(store, key, newId(), { fencing: true }), {
    granted: false,
    freeInMs: undefined,
  });
});

for (const fencing of [false, true]) {
  const how = fencing ? "with" : "without";
  test(`a key that holds other data than a lock is a misconfiguration, ${how} fencing`, async (t) => {
    const foreigner = server.client();
    const [key, requestId] = [newKey(), newId()];
    await foreigner.rpush(key, "an element");
    const error = await t.throwsAsync(acquire(store, key, requestId, { fencing }), {
      instanceOf: LockMisconfiguredError,
      message: /the key holds other data than a lock: choose another businessFlag \(WRONGTYPE/,
    });
    t.true(error?.cause instanceof Error);
    await t.throwsAsync(wait(store, key, requestId, { fencing }), { instanceOf: LockMisconfiguredError });
    t.is(await renew(store, key, requestId, 1_000), "stolen");
    t.is(await release(store, key, requestId), "stolen");
    t.deepEqual(await foreigner.lrange(key, 0, -1), ["an element"]);
  });
}

test("a fence key that holds other data is a misconfiguration, and the lock key is not taken", async (t) => {
  const foreigner = server.client();
  const key = newKey();
  await foreigner.rpush(`{${key}}:fence`, "an element");
  await t.throwsAsync(acquire(store, key, newId(), { fencing: true }), {
    instanceOf: LockMisconfiguredError,
  });
  t.is(await foreigner.exists(key), 0);
});

test("a Redis that asks for a password is a misconfiguration", async (t) => {
  const guarded = await startRedis("--requirepass", "open sesame");
  t.teardown(guarded.stop);
  const silent = guarded.client({ enableReadyCheck: false });
  const byUrl = redisStoreAt(guarded.url);
  t.teardown(() => byUrl.close());
  for (const shut of [redisStore(silent), byUrl]) {
    await t.throwsAsync(acquire(shut, newKey(), newId()), {
      instanceOf: LockMisconfiguredError,
      message: /Redis asks for a password: give it to the client \(.*NOAUTH/,
    });
  }
  const open = redisStoreAt(`redis://:open%20sesame@127.0.0.1:${guarded.port}`);
  t.teardown(() => open.close());
  t.true((await acquire(open, newKey(), newId())).granted);
});

test("a wrong password is a misconfiguration", async (t) => {
  const guarded = await startRedis("--requirepass", "open sesame");
  t.teardown(guarded.stop);
  const shut = redisStoreAt(`redis://:guess@127.0.0.1:${guarded.port}`);
  t.teardown(() => shut.close());
  await t.throwsAsync(acquire(shut, newKey(), newId()), {
    instanceOf: LockMisconfiguredError,
    message: /WRONGPASS|NOAUTH/,
  });
});

test("a user who may not run a command is a misconfiguration", async (t) => {
  const admin = server.client();
  await admin.call("ACL", "SETUSER", "reader", "on", "nopass", "~*", "&*", "+@read", "+@connection", "+info");
  const shut = redisStore(server.client({ username: "reader", password: "any" }));
  await t.throwsAsync(acquire(shut, newKey(), newId()), {
    instanceOf: LockMisconfiguredError,
    message: /the Redis user may not run a command that locks need \(NOPERM/,
  });
  await shut.close();
});

test("a user who may not publish can still release", async (t) => {
  const admin = server.client();
  await admin.call("ACL", "SETUSER", "mute", "on", "nopass", "~*", "resetchannels", "+@all");
  const mute = redisStore(server.client({ username: "mute", password: "any" }));
  const [key, requestId] = [newKey(), newId()];
  await acquire(mute, key, requestId);
  t.is(await release(mute, key, requestId), "released");
  await mute.close();
});

/** A client of a server before Redis 7, which knows no SET with both NX and GET. */
function beforeRedis7(client: RedisClient): { client: RedisClient; refusals: () => number } {
  let refusals = 0;
  const old: RedisClient = Object.create(client, {
    call: {
      value: async (command: string, ...args: (string | number)[]) => {
        if (command !== "set" || !args.includes("NX") || !args.includes("GET"))
          return await client.call(command, ...args);
        refusals += 1;
        throw new Error("ERR syntax error");
      },
    },
  }) as RedisClient;
  return { client: old, refusals: () => refusals };
}

test("a server before Redis 7 is asked by script, after one refusal", async (t) => {
  const { client, refusals } = beforeRedis7(server.client());
  const old = gathering(redisStore(client));
  const [key, requestId] = [newKey(), newId()];
  t.deepEqual(await acquire(old, key, requestId), { granted: true, fresh: true });
  t.deepEqual(await acquire(old, key, requestId), { granted: true, fresh: false });
  t.false((await acquire(old, key, newId())).granted);
  t.false((await acquire(store, key, newId())).granted, "both ways exclude each other");
  const many = await Promise.all([key, newKey()].map((name) => acquire(old, name, newId())));
  t.deepEqual(
    many.map(({ granted }) => granted),
    [false, true],
  );
  t.is(await release(old, key, requestId), "released");
  t.is(refusals(), 1);
});

test("of many that a server before Redis 7 is asked for, only the one with other data is refused for it", async (t) => {
  const foreigner = server.client();
  const old = gathering(redisStore(beforeRedis7(server.client()).client));
  await acquire(old, newKey(), newId());
  const [free, wrong] = [newKey(), newKey()];
  await foreigner.rpush(wrong, "an element");
  const [granted, refused] = await Promise.allSettled([free, wrong].map((key) => acquire(old, key, newId())));
  t.deepEqual(granted, { status: "fulfilled", value: { granted: true, fresh: true } });
  t.true(refused?.status === "rejected" && refused.reason instanceof LockMisconfiguredError);
});

test("a server before Redis 7 that is first asked for many is asked by script, too", async (t) => {
  const client = server.client();
  let scripts = 0;
  const old = Object.create(client, {
    call: {
      value: async (command: string, ...args: (string | number)[]) => {
        if (args[1] !== 3) return await client.call(command, ...args);
        scripts += 1;
        return Array.from({ length: 3 }, () => new Error("ERR syntax error"));
      },
    },
  }) as RedisClient;
  const own = gathering(redisStore(old));
  const keys = Array.from({ length: 3 }, newKey);
  const requestId = newId();
  for (const fresh of [true, false]) {
    const replies = await Promise.all(keys.map((key) => acquire(own, key, requestId)));
    t.deepEqual(replies, [
      { granted: true, fresh },
      { granted: true, fresh },
      { granted: true, fresh },
    ]);
  }
  t.is(scripts, 1);
});

test("the words in which Redis 6 tells a wrong type from inside a script are understood", async (t) => {
  const client = server.client();
  const words =
    "ERR Error running script (call to f_0a1b): @user_script:2: WRONGTYPE Operation against a key holding the wrong kind of value";
  const old = redisStore(
    Object.create(client, { call: { value: () => Promise.reject(new Error(words)) } }) as RedisClient,
  );
  await t.throwsAsync(acquire(old, newKey(), newId(), { fencing: true }), {
    instanceOf: LockMisconfiguredError,
  });
});

test("close() leaves the caller's client open and closes its own connection", async (t) => {
  const watcher = server.client();
  const client = server.client({ connectionName: "close-test" });
  const connections = async (): Promise<number> =>
    String(await watcher.client("LIST")).split("name=close-test ").length - 1;
  const own = redisStore(client);
  const [key, requestId] = [newKey(), newId()];
  await acquire(own, key, requestId);
  t.is(await connections(), 1, "no second connection before somebody waits");
  await wait(own, key, newId());
  await until(async () => (await connections()) === 2);
  await own.close();
  await until(async () => (await connections()) === 1);
  t.is(await client.ping(), "PONG");
  t.is(client.listenerCount("close"), 0);
});

test("close() of a store by URL closes all its connections", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const watcher = lonely.client();
  const connections = async (): Promise<number> =>
    String(await watcher.client("LIST"))
      .trim()
      .split("\n").length;
  await watcher.ping();
  const own = redisStoreAt(lonely.url);
  await acquire(own, newKey(), newId());
  await hearing(own);
  t.is(await connections(), 3);
  await own.close();
  await until(async () => (await connections()) === 1);
});

test("close() ends the subscription in Redis, and the inbox is one for all that a process waits for", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const watcher = lonely.client();
  const inboxes = async (): Promise<unknown[]> => await watcher.pubsub("CHANNELS", "lockweave:inbox:*");
  const own = redisStore(lonely.client());
  await hearing(own);
  for (let n = 0; n < 10; n += 1) await wait(own, newKey(), newId());
  t.is((await inboxes()).length, 1);
  await own.close();
  await until(async () => (await inboxes()).length === 0);
});

test("after the subscriber's connection broke, everybody looks again and hears again", async (t) => {
  const lonely = await startRedis(); // All its subscribers are cut off below.
  t.teardown(lonely.stop);
  const watcher = lonely.client();
  const own = redisStore(lonely.client());
  const [key, holder, waiter] = [newKey(), newId(), newId()];
  await hearing(own);
  const again = deferred();
  const ear = listen(own, waiter);
  own.listen((requestId) => {
    if (requestId === undefined) again.resolve();
  });
  await watcher.call("CLIENT", "KILL", "TYPE", "pubsub");
  await again.promise;
  await acquire(own, key, holder);
  await wait(own, key, waiter);
  await own.release(key, holder);
  await ear.heard;
  await own.close();
  t.pass();
});

test("a release that the client sent again, because its reply was lost, is not taken for a lost lock", async (t) => {
  const watcher = server.client();
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const own = redisStore(server.client({ port: proxy.port }));
  const [key, requestId] = [newKey(), newId()];
  await acquire(own, key, requestId);
  await renew(own, key, requestId, 60_000);
  proxy.withholdReplies();
  const released = own.release(key, requestId);
  await until(async () => (await watcher.exists(key)) === 0);
  proxy.cut();
  await t.throwsAsync(released, { message: /the connection broke/ }, "nobody can know, and so it says");
  await own.close();
});

test("a handing on that the client sent again, because its reply was lost, is found by who has it", async (t) => {
  const watcher = server.client();
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const own = redisStore(server.client({ port: proxy.port }));
  const [key, requestId, next] = [newKey(), newId(), newId()];
  await acquire(own, key, requestId);
  await own.release(newKey(), requestId, request(newKey(), newId())); // The script is known from here on.
  proxy.withholdReplies();
  const released = own.release(key, requestId, request(key, next));
  await until(async () => (await watcher.get(key)) === next);
  proxy.cut();
  await t.throwsAsync(released, { message: /the connection broke/ }, "nobody can know, and so it says");
  t.true((await wait(own, key, next)).granted);
  await own.close();
});

test("an acquire that the client sent again, because its reply was lost, is the same acquire", async (t) => {
  const watcher = server.client();
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const own = redisStore(server.client({ port: proxy.port }));
  const [key, requestId] = [newKey(), newId()];
  await acquire(own, newKey(), newId());
  proxy.withholdReplies();
  const acquired = acquire(own, key, requestId);
  await until(async () => (await watcher.exists(key)) === 1);
  proxy.cut();
  t.deepEqual(await acquired, { granted: true, fresh: false });
  await own.close();
});

// ---- many at once ---------------------------------------------------------------------------------------

/** A store of its own whose scripts the server knows already, and what is sent over it. */
async function countedStore(): Promise<{ own: Store; commands: () => string[] }> {
  const { client, commands } = counting(server.client());
  const own = gathering(redisStore(client));
  const keys = [newKey(), newKey()];
  const requestId = newId();
  await Promise.all(keys.map((key) => acquire(own, key, requestId)));
  await own.renew(keys.map((key) => ({ key, requestId, lockTimeMs: 60_000 })));
  await Promise.all(keys.map((key) => release(own, key, requestId)));
  commands();
  return { own, commands };
}

test("one lock is a plain SET, and one script to give it back", async (t) => {
  const { own, commands } = await countedStore();
  const [key, requestId] = [newKey(), newId()];
  t.true((await acquire(own, key, requestId)).granted);
  t.deepEqual(commands(), ["SET"]);
  t.is(await renew(own, key, requestId, 60_000), "renewed");
  t.deepEqual(commands(), ["EVALSHA"]);
  t.is(await release(own, key, requestId), "released");
  t.deepEqual(commands(), ["EVALSHA"]);
  await own.close();
});

test("what is asked for in one turn of the event loop goes in one command", async (t) => {
  const { own, commands } = await countedStore();
  const keys = Array.from({ length: 100 }, newKey);
  const requestId = newId();
  const replies = await Promise.all(keys.map((key) => acquire(own, key, requestId)));
  t.true(replies.every(({ granted }) => granted));
  t.deepEqual(commands(), ["EVALSHA"]);
  await own.renew(keys.map((key) => ({ key, requestId, lockTimeMs: 60_000 })));
  t.deepEqual(commands(), ["EVALSHA"]);
  const released = await Promise.all(keys.map((key) => release(own, key, requestId)));
  t.true(released.every((outcome) => outcome === "released"));
  t.deepEqual(commands(), ["EVALSHA"]);
  await own.close();
});

test("those whom one reply woke, however many promises lie between, ask together; the first is not kept waiting for them", async (t) => {
  const { own, commands } = await countedStore();
  const through = async (depth: number): Promise<void> => {
    if (depth > 0) await through(depth - 1);
  };
  const askWoken = async (): Promise<void> => {
    const keys = Array.from({ length: 20 }, newKey);
    const woken = deferred();
    const asked = keys.map(async (key, depth) => {
      await woken.promise;
      await through(depth);
      return await acquire(own, key, newId());
    });
    await Promise.resolve();
    woken.resolve();
    await Promise.all(asked);
  };
  await askWoken();
  t.deepEqual(commands(), ["SET", "EVALSHA"]);
  const underWay = acquire(own, newKey(), newId());
  await Promise.resolve();
  await askWoken();
  await underWay;
  t.deepEqual(commands(), ["SET", "EVALSHA"], "the one under way, and all of those");
  await own.close();
});

test("a script holds up the server for a few hundred keys at most", async (t) => {
  const { own, commands } = await countedStore();
  const keys = Array.from({ length: 600 }, newKey);
  const requestId = newId();
  const thrice = ["EVALSHA", "EVALSHA", "EVALSHA"];
  await Promise.all(keys.map((key) => acquire(own, key, requestId)));
  t.deepEqual(commands(), thrice);
  await own.renew(keys.map((key) => ({ key, requestId, lockTimeMs: 60_000 })));
  t.deepEqual(commands(), thrice);
  await Promise.all(keys.map((key) => release(own, key, requestId)));
  t.deepEqual(commands(), thrice);
  await own.close();
});

test("of those who ask together, only the one whose key holds other data is refused for it", async (t) => {
  const foreigner = server.client();
  const { own, commands } = await countedStore();
  const [free, wrong, held] = [newKey(), newKey(), newKey()];
  const requestId = newId();
  await foreigner.rpush(wrong, "an element");
  await acquire(store, held, newId());
  const replies = await Promise.allSettled([free, wrong, held].map((key) => acquire(own, key, requestId)));
  t.deepEqual(commands(), ["EVALSHA"]);
  t.deepEqual(replies[0], { status: "fulfilled", value: { granted: true, fresh: true } });
  t.deepEqual(replies[2], { status: "fulfilled", value: { granted: false, freeInMs: undefined } });
  t.true(replies[1]?.status === "rejected" && replies[1].reason instanceof LockMisconfiguredError);
  const renewed = await own.renew([free, wrong, held].map((key) => ({ key, requestId, lockTimeMs: 60_000 })));
  t.deepEqual(renewed, ["renewed", "stolen", "stolen"]);
  const released = await Promise.all([free, wrong, held].map((key) => release(own, key, requestId)));
  t.deepEqual(released, ["released", "stolen", "stolen"]);
  t.deepEqual(await foreigner.lrange(wrong, 0, -1), ["an element"]);
  await own.close();
});

test("when many are asked for and the server does not answer, each of them learns it", async (t) => {
  const mortal = await startRedis();
  const own = gathering(redisStore(mortal.client()));
  t.teardown(() => own.close());
  const keys = Array.from({ length: 300 }, newKey);
  const asked = Promise.allSettled(keys.map((key) => acquire(own, key, newId())));
  await mortal.stop(); // Its clients are disconnected by it.
  const replies = await asked;
  t.is(replies.length, 300);
  await t.throwsAsync(acquire(own, newKey(), newId()));
});

test("with fencing each draws its token in a script of its own", async (t) => {
  const { own, commands } = await countedStore();
  await acquire(own, newKey(), newId(), { fencing: true });
  commands();
  const replies = await Promise.all(
    [newKey(), newKey()].map((key) => acquire(own, key, newId(), { fencing: true })),
  );
  t.true(replies.every((reply) => Number.isSafeInteger(token(reply))));
  t.deepEqual(commands(), ["EVALSHA", "EVALSHA"]);
  await own.close();
});

test("a URL that is no Redis address is refused, without its password in the words", (t) => {
  const error = t.throws(() => redisStoreAt("http://user:hunter2@localhost"), {
    message: /Expected `redis` to be an ioredis client or a redis:\/\/ URL, got/,
  });
  t.false(error?.message.includes("hunter2"));
});

test("close() while the second connection subscribes anew leaves no rejection that nobody handles", async (t) => {
  const other = await startRedis();
  const proxy = await startTcpProxy(other.port);
  t.teardown(async () => {
    await proxy.stop();
    await other.stop();
  });
  const watcher = other.client();
  const closing = redisStore(other.client({ port: proxy.port, enableReadyCheck: false }));
  const subscribed = async (): Promise<boolean> => String(await watcher.call("PUBSUB", "CHANNELS")) !== "";
  await closing.wait({ key: "LOCK_a", requestId: "0".repeat(32), lockTimeMs: 60_000, fencing: false });
  await until(subscribed);
  proxy.cut();
  proxy.delayReplies(300);
  await until(async () => !(await subscribed()));
  await until(subscribed); // Anew, and its reply is on its way.
  await closing.close();
  await pause(0);
  t.pass();
});
