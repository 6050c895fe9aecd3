import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { untilListening } from "../store-contract";
import {
  release,
  listen,
  peek,
  newId,
  newKey,
  enqueue,
  placing,
  queued,
  renew,
  acquire,
  TAKEN,
  acquiredInTurn,
  TIMEOUT_MS,
} from "../store-contract/subject";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { reservedFor } from "../../runtime/stores/value";
import { withoutTime } from "../simulation/timed-redis";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import { untilSubscribedEverywhere, shardInboxes } from "./subscribed-everywhere";
import { recordEvents } from "./noting-listener";

// The second connection, on which waiters get wake-ups, and dead waiters in the queue.

let server: RedisServer;
let store: WholeStore;

test.before(async () => {
  server = await startRedis();
  store = redisStore(withoutTime(server.client(), "*")); // Nothing expires by itself, even on a slow machine.
  await untilListening(store);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

/** A store whose process dies. Its tickets remain, and nobody listens to its inbox. */
async function dying(from: RedisServer = server): Promise<{ store: WholeStore; die(): Promise<void> }> {
  const watcher = from.client();
  const subscriptions = async (): Promise<number> => (await inboxes(watcher)).length;
  const mortal = redisStore(from.client());
  await untilListening(mortal);
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
  return await watcher.pubsub("CHANNELS", "lockweave:1:inbox:*");
}

test.serial("dead waiters at the head of the queue do not delay a live waiter", async (t) => {
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  await acquire(store, key, holder);
  const dead = await dying();
  for (let n = 0; n < 6; n += 1) await queued(dead.store, key, newId());
  await queued(store, key, waiting);
  await dead.die();
  t.deepEqual(await release(store, key, holder), { released: true });
  t.is(await peek(store, key), reservedFor(waiting));
});

test.serial("a live waiter overtakes dead waiters in every way to get the key", async (t) => {
  const dead = await dying();
  const keys = {
    next: newKey(),
    place: newKey(),
    leave: newKey(),
    many: newKey(),
  };
  const [holder, waiting, gone] = [newId(), newId(), newId()];
  for (const key of Object.values(keys)) await acquire(store, key, holder);
  await queued(store, keys.leave, gone);
  for (const key of Object.values(keys)) await queued(dead.store, key, newId());
  for (const key of [keys.leave, keys.many]) await queued(store, key, waiting);
  await dead.die();
  const request = placing(keys.next, waiting);
  t.deepEqual(
    await store.queue.releaseAndEnqueue({ key: keys.next, requestId: holder }, request, TIMEOUT_MS),
    {
      released: true,
      next: TAKEN,
    },
  );
  await release(store, keys.leave, holder);
  t.is(await peek(store, keys.leave), reservedFor(gone));
  await store.queue.dequeue(keys.leave, gone, TIMEOUT_MS);
  t.is(await peek(store, keys.leave), reservedFor(waiting));
  await store.batch?.releaseMany([{ key: keys.many, requestId: holder }], TIMEOUT_MS);
  t.is(await peek(store, keys.many), reservedFor(waiting));
  await server.client().del(keys.place); // As if the lock had expired.
  await acquiredInTurn(store, keys.place, waiting);
});

test.serial("a waiter that is briefly unreachable keeps its position, and gets the key later", async (t) => {
  const mortal = await dying();
  const [key, holder, reconnecting, other] = [newKey(), newId(), newId(), newId()];
  await acquire(store, key, holder);
  await queued(mortal.store, key, reconnecting);
  await queued(store, key, other);
  await mortal.die(); // The inbox is closed, but the store can still send commands.
  await release(store, key, holder);
  const requestId = await acquiredInTurn(store, key, other);
  await queued(mortal.store, key, reconnecting);
  await release(store, key, requestId);
  t.is(await peek(store, key), reservedFor(reconnecting), "no other waiter is reachable");
});

test.serial("the key is reserved for the first waiter if no waiter is reachable", async (t) => {
  const dead = await dying();
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  await acquire(store, key, holder);
  await queued(dead.store, key, first);
  await queued(dead.store, key, second);
  await dead.die();
  await release(store, key, holder);
  t.is(await peek(store, key), reservedFor(first));
});

test.serial(
  "dead waiters do not delay a live waiter in a cluster, because each master knows the subscribers",
  async (t) => {
    const cluster = await startRedisCluster();
    t.teardown(() => cluster.stop());
    const [node] = cluster.nodes;
    if (node === undefined) throw new Error("the cluster has no nodes");
    const [own, dead] = [redisStore(cluster.cluster()), redisStore(cluster.cluster())];
    for (const one of [own, dead]) await untilSubscribedEverywhere(one, cluster);
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await acquire(own, key, holder);
    await queued(dead, key, first);
    await queued(own, key, second);
    await dead.close();
    await until(async () => (await shardInboxes(node)).length === 1);
    await release(own, key, holder);
    t.is(await peek(own, key), reservedFor(second));
    await own.close();
  },
);

test.serial(
  "a cluster user without sharded pub/sub gets wake-ups over plain pub/sub, and no waiter is skipped",
  async (t) => {
    const cluster = await startRedisCluster();
    t.teardown(() => cluster.stop());
    await cluster.client().call("ACL", "SETUSER", "default", "-ssubscribe");
    const [own, dead] = [redisStore(cluster.cluster()), redisStore(cluster.cluster())];
    await Promise.all([untilListening(own), untilListening(dead)]);
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await acquire(own, key, holder);
    await queued(dead, key, first);
    await queued(own, key, second);
    await dead.close();
    await until(async () => (await inboxes(cluster.client())).length === 1);
    await release(own, key, holder);
    t.is(await peek(own, key), reservedFor(first));
    await own.close();
  },
);

/** Checks that a waiter of the store is woken when the lock is released. */
async function receivesWakeUp(t: ExecutionContext, own: WholeStore): Promise<void> {
  await untilListening(own);
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  const events = recordEvents(own);
  const ear = listen(own, waiting);
  await acquire(own, key, holder);
  await queued(own, key, waiting);
  await release(own, key, holder);
  await ear.woken;
  t.true(events.wakeUps.includes(waiting));
}

test("a client with lazyConnect receives wake-ups", async (t) => {
  const lazy = redisStore(server.client({ lazyConnect: true }));
  await receivesWakeUp(t, lazy);
  await lazy.close();
});

test("a client without an offline queue receives wake-ups", async (t) => {
  const client = server.client({ enableOfflineQueue: false });
  await until(() => client.status === "ready");
  const strict = redisStore(client);
  await receivesWakeUp(t, strict);
  await strict.close();
});

test("a process uses one inbox for all keys, and close() unsubscribes it", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const watcher = lonely.client();
  const own = redisStore(lonely.client());
  await untilListening(own);
  for (let n = 0; n < 10; n += 1) await enqueue(own, newKey(), newId());
  t.is((await inboxes(watcher)).length, 1);
  await own.close();
  await until(async () => (await inboxes(watcher)).length === 0);
});

test("a broken subscriber connection wakes all waiters, and wake-ups work again", async (t) => {
  const lonely = await startRedis(); // This test disconnects all its subscribers.
  t.teardown(lonely.stop);
  const watcher = lonely.client();
  const own = redisStore(lonely.client());
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  await untilListening(own);
  const ear = listen(own, waiting);
  const events = recordEvents(own);
  await watcher.call("CLIENT", "KILL", "TYPE", "pubsub");
  await events.allWoken;
  await acquire(own, key, holder);
  await queued(own, key, waiting);
  await release(own, key, holder);
  await ear.woken;
  t.is(events.reconnects, 0, "the command connection did not reconnect");
  await own.close();
});

test("every listener gets the wake-ups, even one that is added later", async (t) => {
  const own = redisStore(server.client());
  const [one, two] = [recordEvents(own), recordEvents(own)];
  await untilListening(own);
  await Promise.all([one.allWoken, two.allWoken]);
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  const ear = listen(own, waiting);
  await acquire(own, key, holder);
  await queued(own, key, waiting);
  await release(own, key, holder);
  await ear.woken;
  t.true(one.wakeUps.includes(waiting) && two.wakeUps.includes(waiting));
  await own.close();
});

test("close() while the second connection resubscribes causes no unhandled rejection", async (t) => {
  const other = await startRedis();
  const proxy = await startTcpProxy(other.port);
  t.teardown(async () => {
    await proxy.stop();
    await other.stop();
  });
  const watcher = other.client();
  const closing = redisStore(other.client({ port: proxy.port, enableReadyCheck: false }));
  const subscribed = async (): Promise<boolean> => String(await watcher.call("PUBSUB", "CHANNELS")) !== "";
  await enqueue(closing, newKey(), newId());
  await until(subscribed);
  proxy.cut();
  proxy.delayReplies(300);
  await until(async () => !(await subscribed()));
  await until(subscribed); // It has resubscribed, and the reply is delayed.
  await closing.close();
  await pause(0);
  t.pass();
});

// ---- the order of the queue -----------------------------------------------------------------------------

/** Changes a queue as a step of the server's clock would: all earlier entries are off by the step. */
async function stepClock(of: ReturnType<RedisServer["client"]>, queue: string, ms: number): Promise<void> {
  for (const entry of await of.zrange(queue, "0", "-1")) {
    // Deadlines are stored as negative times. If the clock steps back, they appear later by the step.
    if (entry.startsWith("-")) await of.zincrby(queue, ms * 1_000, entry);
  }
}

for (const [name, ms] of [
  ["back", -60_000],
  ["forward by less than the ticket time", 500],
] as const) {
  test(`the queue keeps its order if the server clock steps ${name}`, async (t) => {
    const client = server.client();
    const [key, holder] = [newKey(), newId()];
    const waiting = Array.from({ length: 6 }, newId);
    await acquire(store, key, holder);
    for (const one of waiting.slice(0, 3)) await queued(store, key, one);
    await stepClock(client, `lockweave:1:queue:{${key}}`, ms);
    for (const one of waiting.slice(3)) await queued(store, key, one);
    for (const one of waiting.toReversed()) await queued(store, key, one);
    let last = holder;
    for (const one of waiting) {
      t.deepEqual(await release(store, key, last), { released: true });
      last = await acquiredInTurn(store, key, one);
      await renew(store, key, last, 60_000);
    }
    t.is(await client.exists(`lockweave:1:queue:{${key}}`), 0);
  });
}
