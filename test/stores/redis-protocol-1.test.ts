import test from "ava";
import type { Redis } from "ioredis";
import { untilListening } from "../store-contract";
import {
  release,
  peek,
  newId,
  newKey,
  enqueue,
  placing,
  queued,
  renew,
  acquire,
  TAKEN,
  takenInTurn,
  token,
  TIMEOUT_MS,
} from "../store-contract/subject";
import { FENCING_STRIDE, type WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { reservedFor } from "../../runtime/stores/value";
import { startRedis, type RedisServer } from "../support/redis-server";
import { OldStore } from "./protocol-1/old-store";

// A rolling upgrade: processes of version 0.1, which use protocol 1, and of this version use the same keys.

let server: RedisServer;
let client: Redis;
let old: OldStore;
let store: WholeStore;

test.before(async () => {
  server = await startRedis();
  client = server.client();
  old = new OldStore(client);
  store = redisStore(server.client());
  await untilListening(store);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

test("the new version neither acquires, renews, nor releases a hold of the old one, and acquires the key after it", async (t) => {
  for (const releaseOld of [
    (key: string, id: string) => old.release(key, id),
    (key: string, id: string) => old.releaseMany(key, id),
  ]) {
    const [key, holder, requestId] = [newKey(), newId(), newId()];
    t.true(await old.acquire(key, holder));
    t.deepEqual(await acquire(store, key, requestId), { acquired: false, holder, freeInMs: undefined });
    t.deepEqual(await renew(store, key, requestId, 1_000), { renewed: false, holder });
    t.deepEqual(await release(store, key, requestId), { released: false, holder });
    const request = placing(key, newId());
    t.deepEqual(await store.queue.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: false,
      holder,
    });
    t.is(await old.renew(key, holder), "renewed");
    t.is(await releaseOld(key, holder), "released");
    t.deepEqual(await acquire(store, key, requestId), TAKEN);
  }
});

test("the old version neither acquires, renews, nor releases a hold of the new one, and acquires the key after it", async (t) => {
  const [key, holder, id] = [newKey(), newId(), newId()];
  t.deepEqual(await acquire(store, key, holder), TAKEN);
  t.false(await old.acquire(key, id));
  t.false(await old.wait(key, newId()));
  t.is(await old.renew(key, id), "stolen");
  t.is(await old.release(key, id), "stolen");
  t.is(await old.releaseMany(key, id), "stolen");
  t.is(await old.handOn(key, id, newId()), "stolen");
  await old.leave(key, id);
  t.deepEqual(await renew(store, key, holder, 1_000), { renewed: true });
  t.deepEqual(await release(store, key, holder), { released: true });
  t.true(await old.acquire(key, id));
});

test("the old version treats a reservation of the new one as a hold, even with the same ID", async (t) => {
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  await acquire(store, key, holder);
  await queued(store, key, waiting);
  await release(store, key, holder);
  for (const id of [waiting, newId()]) {
    t.false(await old.acquire(key, id));
    t.false(await old.wait(key, id));
    await old.leave(key, id);
    t.is(await old.release(key, id), "stolen");
    t.is(await old.renew(key, id), "stolen");
  }
  t.is(await peek(store, key), reservedFor(waiting));
  await takenInTurn(store, key, waiting);
});

test("the new version treats a key that the old queue passed on as a hold, even for a ticket with its ID", async (t) => {
  const [key, holder, given] = [newKey(), newId(), newId()];
  await old.acquire(key, holder);
  t.false(await old.wait(key, given));
  t.is(await old.release(key, holder), "released");
  for (const id of [given, newId()]) {
    const reply = await enqueue(store, key, id);
    t.true(!reply.acquired && reply.holder === given);
    await store.queue.dequeue(key, id, TIMEOUT_MS);
  }
  t.is(await peek(store, key), given);
  t.true(await old.wait(key, given), "the waiter that got the key acquires it");
});

test("a waiter gets no wake-up from the other version, and finds the free key when it polls", async (t) => {
  const [key, mine, theirs, holder] = [newKey(), newId(), newId(), newId()];
  await acquire(store, key, holder);
  t.false(await old.wait(key, theirs));
  await release(store, key, holder);
  t.is(await peek(store, key), undefined, "the new version ignores the old queue");
  t.true(await old.wait(key, theirs));
  await queued(store, key, mine);
  t.is(await old.release(key, theirs), "released");
  t.is(await peek(store, key), undefined, "the old version ignores the new queue");
  await takenInTurn(store, key, mine);
});

test("each version serves its own queue first, and the other queue when it is empty", async (t) => {
  const [key, holder, mine, theirs] = [newKey(), newId(), newId(), newId()];
  await acquire(store, key, holder);
  t.false(await old.wait(key, theirs)); // This waiter came first.
  await queued(store, key, mine);
  await release(store, key, holder);
  t.false(await old.wait(key, theirs));
  const requestId = await takenInTurn(store, key, mine);
  await release(store, key, requestId);
  t.true(await old.wait(key, theirs));
});

test("the versions share no Redis key except the lock key", async (t) => {
  const key = newKey();
  await acquire(store, key, newId(), { fencing: true });
  await queued(store, key, newId());
  const mine = await client.keys(`*${key}*`);
  await client.del(key);
  await old.acquireFenced(key, newId());
  await old.wait(key, newId());
  const all = await client.keys(`*${key}*`);
  const theirs = all.filter((name) => !mine.includes(name));
  t.deepEqual(theirs.toSorted(), [`{${key}}:fence`, `{${key}}:queue`]);
  t.deepEqual(mine.toSorted(), [key, `lockweave:2:fence:{${key}}`, `lockweave:2:queue:{${key}}`].toSorted());
});

test("fencing tokens rise across both versions, because they use the server's clock", async (t) => {
  const key = newKey();
  let last = 0;
  for (let n = 0; n < 20; n += 1) {
    const id = newId();
    const drawn = await (n % 2 === 0
      ? old.acquireFenced(key, id)
      : acquire(store, key, id, { fencing: true }).then(token));
    t.true(drawn >= last + FENCING_STRIDE, `${drawn} after ${last}`);
    last = drawn;
    await client.del(key);
  }
});
