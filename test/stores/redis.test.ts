import test from "ava";
import { systemClock } from "../../runtime/base/clock";
import { LockMisconfiguredError, LockOptionError } from "../../runtime/base/errors";
import { untilListening } from "../store-contract";
import {
  release,
  isForgotten,
  listen,
  peek,
  newId,
  newKey,
  enqueue,
  placing,
  queued,
  renew,
  renewal,
  acquire,
  TAKEN,
  acquiredInTurn,
  token,
  TIMEOUT_MS,
} from "../store-contract/subject";
import { FENCING_STRIDE, TICKET_TIME_MS, type WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { counting } from "../support/counting-client";
import { startRedis, type RedisServer } from "../support/redis-server";

// The data that the store writes to Redis, and the commands that it sends.

let server: RedisServer;
let store: WholeStore;

test.before(async () => {
  server = await startRedis();
  store = redisStore(server.client());
  await untilListening(store);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

const queueOf = (key: string): string => `lockweave:1:queue:{${key}}`;
const fenceOf = (key: string): string => `lockweave:1:fence:{${key}}`;

test("the Redis key is the lock key, and its value is the requestId", async (t) => {
  const client = server.client();
  const requestId = newId();
  await acquire(store, "LOCK_payOrder_Test001", requestId, { lockTimeMs: 30_000 });
  t.is(await client.get("LOCK_payOrder_Test001"), requestId);
  const pttl = await client.pttl("LOCK_payOrder_Test001");
  t.true(pttl > 0 && pttl <= 30_000, String(pttl));
  await release(store, "LOCK_payOrder_Test001", requestId);
  t.is(await client.exists("LOCK_payOrder_Test001"), 0);
});

test("a lock without fencing writes no other key", async (t) => {
  const client = server.client();
  const key = newKey();
  await acquire(store, key, newId());
  t.deepEqual(await client.keys(`*${key}*`), [key]);
});

test("a lock is acquired with a plain SET, and renewed and released with one script each", async (t) => {
  const { client, commands } = counting(server.client());
  const own = redisStore(client);
  const [key, requestId] = [newKey(), newId()];
  await acquire(own, newKey(), requestId);
  await renew(own, newKey(), requestId, 1_000);
  await release(own, newKey(), requestId);
  commands();
  t.deepEqual(await acquire(own, key, requestId), TAKEN);
  t.deepEqual(commands(), ["SET"]);
  t.deepEqual(await renew(own, key, requestId, 60_000), { renewed: true });
  t.deepEqual(commands(), ["EVALSHA"]);
  t.deepEqual(await release(own, key, requestId), { released: true });
  t.deepEqual(commands(), ["EVALSHA"]);
  await own.close();
});

test("the queue disappears from Redis with its last waiter", async (t) => {
  const client = server.client();
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  await acquire(store, key, holder);
  await queued(store, key, first);
  await queued(store, key, second);
  t.deepEqual((await client.keys(`*${key}*`)).toSorted(), [key, queueOf(key)].toSorted());
  await store.queue.dequeue(key, second, TIMEOUT_MS);
  await release(store, key, holder);
  const requestId = await acquiredInTurn(store, key, first);
  t.deepEqual(await client.keys(`*${key}*`), [key]);
  await release(store, key, requestId);
  t.deepEqual(await client.keys(`*${key}*`), []);
});

test("a queue of dead waiters expires in Redis", async (t) => {
  const client = server.client();
  const key = newKey();
  await acquire(store, key, newId());
  await queued(store, key, newId());
  const pttl = await client.pttl(queueOf(key));
  t.true(pttl > TICKET_TIME_MS && pttl <= 2 * TICKET_TIME_MS, `${pttl}`);
});

test("release() frees the key even if the queue's name holds other data", async (t) => {
  const foreigner = server.client();
  const [alone, key, innocent, requestId] = [newKey(), newKey(), newKey(), newId()];
  for (const name of [alone, key, innocent]) await acquire(store, name, requestId);
  await foreigner.set(queueOf(alone), "text");
  await foreigner.set(queueOf(key), "text");
  t.deepEqual(await release(store, alone, requestId), { released: true });
  const drops = [key, innocent].map((name) => ({ key: name, requestId }));
  t.deepEqual(await store.batch?.releaseMany(drops, TIMEOUT_MS), [{ released: true }, { released: true }]);
  t.is(await foreigner.exists(alone, key, innocent), 0);
  t.is(await foreigner.get(queueOf(key)), "text");
});

test("releaseAndEnqueue() frees the key and enqueues nobody if the queue's name holds other data", async (t) => {
  const foreigner = server.client();
  const [key, requestId] = [newKey(), newId()];
  await acquire(store, key, requestId);
  await foreigner.set(queueOf(key), "text");
  t.deepEqual(await store.queue.releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS), {
    released: true,
    next: undefined,
  });
  t.is(await foreigner.exists(key), 0);
});

test("a hold is released or passed on even if Redis is out of memory", async (t) => {
  const full = await startRedis();
  t.teardown(full.stop);
  const admin = full.client();
  const own = redisStore(full.client());
  const [alone, handedOff, waitedFor, requestId, waiting] = [newKey(), newKey(), newKey(), newId(), newId()];
  for (const key of [alone, handedOff, waitedFor]) await acquire(own, key, requestId);
  await queued(own, waitedFor, waiting);
  await admin.config("SET", "maxmemory", "1");
  t.deepEqual(await release(own, alone, requestId), { released: true });
  t.like(
    await own.queue.releaseAndEnqueue({ key: handedOff, requestId }, placing(handedOff, newId()), TIMEOUT_MS),
    {
      released: true,
    },
  );
  t.deepEqual(await release(own, waitedFor, requestId), { released: true });
  t.is(await admin.exists(alone, handedOff), 0);
  const value = await admin.get(waitedFor);
  const hasExpired = /^expired_keys:[1-9]/m.test(await admin.info("stats"));
  t.true(value === `reserved:${waiting}` || hasExpired, `${value}`); // On a slow machine, the reservation may have expired.
  await own.close();
});

test("the fencing counter of a lock outlives the lock, but expires", async (t) => {
  const client = server.client();
  const [key, requestId] = [newKey(), newId()];
  const taken = await acquire(store, key, requestId, { fencing: true, lockTimeMs: 30_000 });
  await release(store, key, requestId);
  t.is(await client.get(fenceOf(key)), String(token(taken) + FENCING_STRIDE - 1));
  const pttl = await client.pttl(fenceOf(key));
  t.true(pttl > 30_000 && pttl <= 30_000 + 3_600_000, String(pttl));
});

test("fencing tokens rise however the key is acquired, even if the server's clock steps back", async (t) => {
  const client = server.client();
  const future = 4_000_000_000_000_000;
  const ways: Record<string, (key: string) => Promise<number>> = {
    acquire: async (key) => token(await acquire(store, key, newId(), { fencing: true })),
    enqueue: async (key) => token(await enqueue(store, key, newId(), { fencing: true })),
    async renew(key) {
      const requestId = newId();
      await acquire(store, key, requestId);
      return token((await store.renew([{ ...renewal(key, requestId), fencing: true }], TIMEOUT_MS))[0]);
    },
    async releaseAndEnqueue(key) {
      const requestId = newId();
      await acquire(store, key, requestId);
      const request = placing(key, newId(), { fencing: true });
      const reply = await store.queue.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS);
      return token(reply.released && typeof reply.next === "object" ? reply.next : undefined);
    },
  };
  for (const [name, way] of Object.entries(ways)) {
    const key = newKey();
    await client.set(fenceOf(key), String(future), "PX", 60_000);
    t.is(await way(key), future + 1, name);
  }
});

test("acquire() throws LockMisconfiguredError without acquiring the key if the fencing counter holds other data", async (t) => {
  const foreigner = server.client();
  const key = newKey();
  await foreigner.rpush(fenceOf(key), "an element");
  await t.throwsAsync(acquire(store, key, newId(), { fencing: true }), {
    instanceOf: LockMisconfiguredError,
  });
  t.is(await foreigner.exists(key), 0);
});

test("every script works after SCRIPT FLUSH", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const client = lonely.client();
  const own = redisStore(client);
  await untilListening(own);
  const flushed = async (): Promise<void> => void (await client.script("FLUSH"));
  for (let n = 0; n < 2; n += 1) {
    const [key, requestId, waiting] = [newKey(), newId(), newId()];
    await flushed();
    t.true((await acquire(own, key, requestId, { fencing: true })).acquired);
    await flushed();
    t.deepEqual(await renew(own, key, requestId, 60_000), { renewed: true });
    await flushed();
    await queued(own, key, waiting);
    await flushed();
    await own.queue.dequeue(key, waiting, TIMEOUT_MS);
    await flushed();
    t.is(await peek(own, key), requestId);
    await flushed();
    const request = placing(key, waiting);
    t.deepEqual(await own.queue.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: true,
      next: TAKEN,
    });
    await flushed();
    t.deepEqual(await release(own, key, request.requestId), { released: true });
    t.true(await isForgotten(own, key));
  }
  await own.close();
});

test.serial("a script that the server does not have is not sent if no time is left", async (t) => {
  const { client, commands } = counting(server.client());
  const { now } = systemClock;
  t.teardown(() => {
    systemClock.now = now;
  });
  const slow = Object.create(client, {
    call: {
      value: (command: string, ...args: (string | number)[]) =>
        client.call(command, ...args).finally(() => {
          if (command === "evalsha") systemClock.now = () => now() + TIMEOUT_MS;
        }),
    },
  }) as typeof client;
  const own = redisStore(slow);
  await server.client().script("FLUSH");
  const dropped = own.release({ key: newKey(), requestId: newId() }, TIMEOUT_MS);
  await t.throwsAsync(dropped, { message: /no time left/ });
  // The store also asks for INFO as soon as the client is ready.
  t.deepEqual(
    commands().filter((name) => name !== "INFO"),
    ["EVALSHA"],
  );
  await own.close();
});

// ---- the client's keyPrefix -----------------------------------------------------------------------------

test("the lock key, the counter, and the queue get the client's keyPrefix, and wake-ups arrive", async (t) => {
  const plain = server.client();
  const prefixed = redisStore(server.client({ keyPrefix: "shop:" }));
  await untilListening(prefixed);
  const [key, requestId, waiting] = [newKey(), newId(), newId()];
  const ear = listen(prefixed, waiting);
  await acquire(prefixed, key, requestId, { fencing: true });
  await queued(prefixed, key, waiting);
  t.is(await plain.get(`shop:${key}`), requestId);
  const keys = await plain.keys(`*${key}*`);
  t.is(keys.length, 3);
  t.true(keys.every((name) => name.startsWith("shop:")));
  t.true((await acquire(store, key, newId())).acquired, "the key without the prefix is another lock");
  await release(prefixed, key, requestId);
  await ear.woken;
  await prefixed.close();
});

test("stores with different prefixes do not get each other's wake-ups", async (t) => {
  const one = redisStore(server.client({ keyPrefix: "one:" }));
  const two = redisStore(server.client({ keyPrefix: "two:" }));
  await Promise.all([untilListening(one), untilListening(two)]);
  const [key, requestId, waiting] = [newKey(), newId(), newId()];
  const [ear, otherEar] = [listen(one, waiting), listen(two, waiting)];
  await acquire(one, key, requestId);
  await queued(one, key, waiting);
  await release(one, key, requestId);
  await ear.woken;
  t.false(otherEar.isWoken());
  await Promise.all([one.close(), two.close()]);
});

test("redisStore() rejects a keyPrefix that could collide with the reserved names", (t) => {
  for (const keyPrefix of ["lockweave:", "shop:lockweave:1:queue:", "lock"]) {
    t.throws(() => redisStore(server.client({ keyPrefix })), {
      instanceOf: LockOptionError,
      message: /keyPrefix must not contain lockweave:/,
    });
  }
});
