import test from "ava";
import { LockMisconfiguredError } from "../../runtime/errors";
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
  takenInTurn,
  TIMEOUT_MS,
} from "../../runtime/stores/contract/subject";
import type { Store } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { startRedis, type RedisServer } from "../support/redis-server";

// Others who use the same keys in their own way.

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

test("a foreigner's plain SET NX PX and a lock exclude each other, both ways", async (t) => {
  const foreigner = server.client();
  const [key, requestId] = [newKey(), newId()];
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), "OK");
  t.deepEqual(await take(store, key, requestId), {
    acquired: false,
    holder: "foreigner",
    freeInMs: undefined,
  });
  const refused = await place(store, key, newId());
  t.true(!refused.acquired && refused.freeInMs !== undefined && refused.freeInMs > 0);
  t.deepEqual(await drop(store, key, requestId), { released: false, holder: "foreigner" });
  t.is(await foreigner.get(key), "foreigner");
  await foreigner.del(key);
  t.true((await take(store, key, newId())).acquired);
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), null);
});

test("those who wait go on in their order when a foreigner frees the key, and wait when it takes it", async (t) => {
  const foreigner = server.client();
  const [key, first, second] = [newKey(), newId(), newId()];
  const ear = listen(store, first);
  await foreigner.set(key, "foreigner");
  t.deepEqual(await place(store, key, first), { acquired: false, holder: "foreigner", freeInMs: undefined });
  await queued(store, key, second);
  await foreigner.del(key);
  t.is(await foreigner.set(key, "another", "PX", 600_000, "NX"), "OK");
  await queued(store, key, first);
  await foreigner.del(key);
  await queued(store, key, second); // The second notices, and it is the first's turn.
  await ear.heard;
  t.is(await foreigner.set(key, "foreigner", "PX", 600_000, "NX"), null);
  const lost = await takenInTurn(store, key, first);
  await foreigner.del(key); // From under the holder.
  const requestId = await takenInTurn(store, key, second);
  t.deepEqual(await drop(store, key, lost), { released: false, holder: requestId });
  t.deepEqual(await drop(store, key, requestId), { released: true });
  ear.deafen();
});

test("a foreign key without time to live is held, and nobody knows when it becomes free", async (t) => {
  const foreigner = server.client();
  const key = newKey();
  await foreigner.set(key, "for ever");
  const held = { acquired: false, holder: "for ever", freeInMs: undefined } as const;
  t.deepEqual(await take(store, key, newId()), held);
  t.deepEqual(await take(store, key, newId(), { fencing: true }), held);
  t.deepEqual(await place(store, key, newId()), held);
});

test("a hold that somebody made to last for ever is not shortened by a renewal", async (t) => {
  const foreigner = server.client();
  const [key, requestId] = [newKey(), newId()];
  await take(store, key, requestId);
  await foreigner.persist(key);
  t.deepEqual(await renew(store, key, requestId, 1_000), { renewed: true });
  t.is(await foreigner.pttl(key), -1);
});

for (const fencing of [false, true]) {
  test(`a key that holds other data than text is a misconfiguration to take, ${fencing ? "with" : "without"} fencing, and held by another`, async (t) => {
    const foreigner = server.client();
    const [key, requestId] = [newKey(), newId()];
    await foreigner.rpush(key, "an element");
    const error = await t.throwsAsync(take(store, key, requestId, { fencing }), {
      instanceOf: LockMisconfiguredError,
      message: /the key holds other data than a lock \(WRONGTYPE.*\)\. Fix: choose another businessFlag/,
    });
    t.true(error?.cause instanceof Error);
    await t.throwsAsync(place(store, key, newId(), { fencing }), { instanceOf: LockMisconfiguredError });
    const holder = "(other data than text)";
    t.deepEqual(await renew(store, key, requestId, 1_000), { renewed: false, holder });
    const fenced = { key, requestId, lockTimeMs: 1_000, fencing };
    t.deepEqual(await store.renew([fenced], TIMEOUT_MS), [{ renewed: false, holder }]);
    t.deepEqual(await drop(store, key, requestId), { released: false, holder });
    const request = placing(key, newId(), { fencing });
    t.deepEqual(await store.releaseAndEnqueue({ key, requestId }, request, TIMEOUT_MS), {
      released: false,
      holder,
    });
    t.is(await look(store, key), holder);
    await store.dequeue(key, newId(), TIMEOUT_MS);
    t.deepEqual(await foreigner.lrange(key, 0, -1), ["an element"]);
  });
}
