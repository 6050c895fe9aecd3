import test from "ava";
import { LockMisconfiguredError } from "../../runtime/base/errors";
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
  acquiredInTurn,
  TIMEOUT_MS,
} from "../store-contract/subject";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { startRedis, type RedisServer } from "../support/redis-server";

// Other programs that use the same keys without Lockweave.

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

test("a plain SET NX PX of another program and a lock exclude each other", async (t) => {
  const foreigner = server.client();
  const [key, requestId] = [newKey(), newId()];
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), "OK");
  t.deepEqual(await acquire(store, key, requestId), {
    acquired: false,
    holder: "foreigner",
    freeInMs: undefined,
  });
  const refused = await enqueue(store, key, newId());
  t.true(!refused.acquired && refused.freeInMs !== undefined && refused.freeInMs > 0);
  t.deepEqual(await release(store, key, requestId), { released: false, holder: "foreigner" });
  t.is(await foreigner.get(key), "foreigner");
  await foreigner.del(key);
  t.true((await acquire(store, key, newId())).acquired);
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), null);
});

test("waiters keep their order while another program acquires and deletes the key", async (t) => {
  const foreigner = server.client();
  const [key, first, second] = [newKey(), newId(), newId()];
  const ear = listen(store, first);
  await foreigner.set(key, "foreigner");
  t.deepEqual(await enqueue(store, key, first), {
    acquired: false,
    holder: "foreigner",
    freeInMs: undefined,
  });
  await queued(store, key, second);
  await foreigner.del(key);
  t.is(await foreigner.set(key, "another", "PX", 600_000, "NX"), "OK");
  await queued(store, key, first);
  await foreigner.del(key);
  await queued(store, key, second); // The second waiter notices, and the key is reserved for the first one.
  await ear.woken;
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), null);
  const lost = await acquiredInTurn(store, key, first);
  await foreigner.del(key); // While the first waiter holds it.
  const requestId = await acquiredInTurn(store, key, second);
  t.deepEqual(await release(store, key, lost), { released: false, holder: requestId });
  t.deepEqual(await release(store, key, requestId), { released: true });
  ear.unsubscribe();
});

test("a key of another program without an expiry is held, without a time when it becomes free", async (t) => {
  const foreigner = server.client();
  const key = newKey();
  await foreigner.set(key, "for ever");
  const held = { acquired: false, holder: "for ever", freeInMs: undefined } as const;
  t.deepEqual(await acquire(store, key, newId()), held);
  t.deepEqual(await acquire(store, key, newId(), { fencing: true }), held);
  t.deepEqual(await enqueue(store, key, newId()), held);
});

test("a renewal does not shorten a hold that another program made persistent", async (t) => {
  const foreigner = server.client();
  const [key, requestId] = [newKey(), newId()];
  await acquire(store, key, requestId);
  await foreigner.persist(key);
  t.deepEqual(await renew(store, key, requestId, 1_000), { renewed: true });
  t.is(await foreigner.pttl(key), -1);
});

for (const fencing of [false, true]) {
  test(`a key that is not text cannot be acquired ${fencing ? "with" : "without"} fencing, and counts as held`, async (t) => {
    const foreigner = server.client();
    const [key, requestId] = [newKey(), newId()];
    await foreigner.rpush(key, "an element");
    const error = await t.throwsAsync(acquire(store, key, requestId, { fencing }), {
      instanceOf: LockMisconfiguredError,
      message: /the key contains data that is not a lock \(WRONGTYPE.*\)\. Fix: choose another businessFlag/,
    });
    t.true(error?.cause instanceof Error);
    await t.throwsAsync(enqueue(store, key, newId(), { fencing }), { instanceOf: LockMisconfiguredError });
    const holder = "(other data than text)";
    t.deepEqual(await renew(store, key, requestId, 1_000), { renewed: false, holder });
    const fenced = { key, requestId, lockTimeMs: 1_000, fencing };
    t.deepEqual(await store.renew([fenced], TIMEOUT_MS), [{ renewed: false, holder }]);
    t.deepEqual(await release(store, key, requestId), { released: false, holder });
    const request = placing(key, newId(), { fencing });
    t.deepEqual(await store.queue.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: false,
      holder,
    });
    t.is(await peek(store, key), holder);
    await store.queue.dequeue(key, newId(), TIMEOUT_MS);
    t.deepEqual(await foreigner.lrange(key, 0, -1), ["an element"]);
  });
}
