import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { hearing } from "../../runtime/stores/contract";
import {
  drop,
  listen,
  look,
  newId,
  newKey,
  place,
  placing,
  queued,
  renew,
  take,
  TAKEN,
  takenInTurn,
  TIMEOUT_MS,
} from "../../runtime/stores/contract/subject";
import type { Store } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { reservedFor } from "../../runtime/stores/value";
import { withoutTime } from "../simulation/timed-redis";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import { hearingEverywhere, shardInboxes } from "./hearing-everywhere";
import { noting } from "./noting-listener";

// The second connection, on which those who wait are told; and those who died in the queue.

let server: RedisServer;
let store: Store;

test.before(async () => {
  server = await startRedis();
  store = redisStore(withoutTime(server.client(), "*")); // Nothing ends by itself, however slow the machine is.
  await hearing(store);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

/** A store whose process dies: its places stay, and nobody hears in its inbox. */
async function dying(from: RedisServer = server): Promise<{ store: Store; die(): Promise<void> }> {
  const watcher = from.client();
  const subscriptions = async (): Promise<number> => (await inboxes(watcher)).length;
  const mortal = redisStore(from.client());
  await hearing(mortal);
  return {
    store: mortal,
    async die() {
      const before = await subscriptions();
      await mortal.close();
      await until(async () => (await subscriptions()) < before);
    },
  };
}

async function inboxes(watcher: ReturnType<RedisServer["client"]>): Promise<unknown[]> {
  return await watcher.pubsub("CHANNELS", "lockweave:2:inbox:*");
}

test.serial("those who died at the head of the queue cost the living nothing", async (t) => {
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  await take(store, key, holder);
  const dead = await dying();
  for (let n = 0; n < 6; n += 1) await queued(dead.store, key, newId());
  await queued(store, key, waiting);
  await dead.die();
  t.deepEqual(await drop(store, key, holder), { released: true });
  t.is(await look(store, key), reservedFor(waiting));
});

test.serial("the living pass the dead whichever way the key comes to them", async (t) => {
  const dead = await dying();
  const keys = {
    next: newKey(),
    place: newKey(),
    leave: newKey(),
    many: newKey(),
  };
  const [holder, waiting, gone] = [newId(), newId(), newId()];
  for (const key of Object.values(keys)) await take(store, key, holder);
  await queued(store, keys.leave, gone);
  for (const key of Object.values(keys)) await queued(dead.store, key, newId());
  for (const key of [keys.leave, keys.many]) await queued(store, key, waiting);
  await dead.die();
  const request = placing(keys.next, waiting);
  t.deepEqual(await store.releaseAndEnqueue({ key: keys.next, requestId: holder }, request, TIMEOUT_MS), {
    released: true,
    next: TAKEN,
  });
  await drop(store, keys.leave, holder);
  t.is(await look(store, keys.leave), reservedFor(gone));
  await store.dequeue(keys.leave, gone, TIMEOUT_MS);
  t.is(await look(store, keys.leave), reservedFor(waiting));
  await store.releaseMany?.([{ key: keys.many, requestId: holder }], TIMEOUT_MS);
  t.is(await look(store, keys.many), reservedFor(waiting));
  await server.client().del(keys.place); // As when its lock time ends.
  await takenInTurn(store, keys.place, waiting);
});

test.serial(
  "who cannot be told at this moment keeps its place, and its turn comes when it can",
  async (t) => {
    const mortal = await dying();
    const [key, holder, reconnecting, other] = [newKey(), newId(), newId(), newId()];
    await take(store, key, holder);
    await queued(mortal.store, key, reconnecting);
    await queued(store, key, other);
    await mortal.die(); // The inbox is closed; the store can still be asked.
    await drop(store, key, holder);
    const requestId = await takenInTurn(store, key, other);
    await queued(mortal.store, key, reconnecting);
    await drop(store, key, requestId);
    t.is(await look(store, key), reservedFor(reconnecting), "as nobody else can be told");
  },
);

test.serial("where nobody can be told, the key is reserved for the first all the same", async (t) => {
  const dead = await dying();
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  await take(store, key, holder);
  await queued(dead.store, key, first);
  await queued(dead.store, key, second);
  await dead.die();
  await drop(store, key, holder);
  t.is(await look(store, key), reservedFor(first));
});

test.serial(
  "in a cluster, too, those who died cost the living nothing: each master knows who hears",
  async (t) => {
    const cluster = await startRedisCluster();
    t.teardown(() => cluster.stop());
    const [node] = cluster.nodes;
    if (node === undefined) throw new Error("a cluster of no nodes");
    const [own, dead] = [redisStore(cluster.cluster()), redisStore(cluster.cluster())];
    for (const one of [own, dead]) await hearingEverywhere(one, cluster);
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await take(own, key, holder);
    await queued(dead, key, first);
    await queued(own, key, second);
    await dead.close();
    await until(async () => (await shardInboxes(node)).length === 1);
    await drop(own, key, holder);
    t.is(await look(own, key), reservedFor(second));
    await own.close();
  },
);

test.serial(
  "in a cluster whose user may not use sharded pub/sub, hints come by the plain one, and nobody is passed",
  async (t) => {
    const cluster = await startRedisCluster();
    t.teardown(() => cluster.stop());
    await cluster.client().call("ACL", "SETUSER", "default", "-ssubscribe");
    const [own, dead] = [redisStore(cluster.cluster()), redisStore(cluster.cluster())];
    await Promise.all([hearing(own), hearing(dead)]);
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await take(own, key, holder);
    await queued(dead, key, first);
    await queued(own, key, second);
    await dead.close();
    await until(async () => (await inboxes(cluster.client())).length === 1);
    await drop(own, key, holder);
    t.is(await look(own, key), reservedFor(first));
    await own.close();
  },
);

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

test("close() ends the subscription in Redis, and the inbox is one for all that a process waits for", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const watcher = lonely.client();
  const own = redisStore(lonely.client());
  await hearing(own);
  for (let n = 0; n < 10; n += 1) await place(own, newKey(), newId());
  t.is((await inboxes(watcher)).length, 1);
  await own.close();
  await until(async () => (await inboxes(watcher)).length === 0);
});

test("after the subscriber's connection broke, everybody looks again and hears again", async (t) => {
  const lonely = await startRedis(); // All its subscribers are cut off below.
  t.teardown(lonely.stop);
  const watcher = lonely.client();
  const own = redisStore(lonely.client());
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  await hearing(own);
  const ear = listen(own, waiting);
  const told = noting(own);
  await watcher.call("CLIENT", "KILL", "TYPE", "pubsub");
  await told.everybodyHinted;
  await take(own, key, holder);
  await queued(own, key, waiting);
  await drop(own, key, holder);
  await ear.heard;
  t.is(told.reconnects, 0, "the connection for commands is the same");
  await own.close();
});

test("several who listen are told each, and one who comes later too", async (t) => {
  const own = redisStore(server.client());
  const [one, two] = [noting(own), noting(own)];
  await hearing(own);
  await Promise.all([one.everybodyHinted, two.everybodyHinted]);
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  const ear = listen(own, waiting);
  await take(own, key, holder);
  await queued(own, key, waiting);
  await drop(own, key, holder);
  await ear.heard;
  t.true(one.hints.includes(waiting) && two.hints.includes(waiting));
  await own.close();
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
  await place(closing, newKey(), newId());
  await until(subscribed);
  proxy.cut();
  proxy.delayReplies(300);
  await until(async () => !(await subscribed()));
  await until(subscribed); // Anew, and its reply is on its way.
  await closing.close();
  await pause(0);
  t.pass();
});

// ---- the order of the queue -----------------------------------------------------------------------------

/** What a step of the server's clock does to a queue: all that was written before it is off by the step. */
async function stepClock(of: ReturnType<RedisServer["client"]>, queue: string, ms: number): Promise<void> {
  for (const entry of await of.zrange(queue, "0", "-1")) {
    // Ends are written as minus the time: a clock that went back is as if all ends were so much later.
    if (entry.startsWith("-")) await of.zincrby(queue, ms * 1_000, entry);
  }
}

for (const [name, ms] of [
  ["back", -60_000],
  ["forward by less than a place lasts", 500],
] as const) {
  test(`a server clock that steps ${name} leaves the order of the queue as it was`, async (t) => {
    const client = server.client();
    const [key, holder] = [newKey(), newId()];
    const waiting = Array.from({ length: 6 }, newId);
    await take(store, key, holder);
    for (const one of waiting.slice(0, 3)) await queued(store, key, one);
    await stepClock(client, `lockweave:2:queue:{${key}}`, ms);
    for (const one of waiting.slice(3)) await queued(store, key, one);
    for (const one of waiting.toReversed()) await queued(store, key, one);
    let last = holder;
    for (const one of waiting) {
      t.deepEqual(await drop(store, key, last), { released: true });
      last = await takenInTurn(store, key, one);
      await renew(store, key, last, 60_000);
    }
    t.is(await client.exists(`lockweave:2:queue:{${key}}`), 0);
  });
}
