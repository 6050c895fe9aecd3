import test from "ava";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import { untilListening } from "../store-contract";
import {
  newId,
  newKey,
  placing,
  queued,
  renewal,
  request,
  acquire,
  TAKEN,
  TIMEOUT_MS,
} from "../store-contract/subject";
import { MOST_AT_ONCE, type StoreBatch, type WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { closedAfter, reservedFor, revokedFrom } from "../../runtime/stores/value";
import { counting } from "../support/counting-client";
import { startRedis, type RedisServer } from "../support/redis-server";
import { flat } from "../support/flat-store";

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

/** A store whose scripts the server has already, and the commands that it sends. */
async function countedStore(): Promise<{
  own: WholeStore;
  acquireMany: StoreBatch["acquireMany"];
  enqueueMany: NonNullable<StoreBatch["enqueueMany"]>;
  releaseMany: StoreBatch["releaseMany"];
  commands: () => string[];
}> {
  const { client, commands } = counting(server.client());
  const own = redisStore(client);
  const { acquireMany, enqueueMany, releaseMany } = flat(own);
  if (acquireMany === undefined || enqueueMany === undefined || releaseMany === undefined) {
    throw new Error("Expected a store with acquireMany(), enqueueMany() and releaseMany()");
  }
  const keys = [newKey(), newKey()];
  const requests = keys.map((key) => request(key, newId()));
  await acquireMany(requests, TIMEOUT_MS);
  await own.renew(requests, TIMEOUT_MS);
  await own.peek(keys, TIMEOUT_MS);
  await releaseMany(requests, TIMEOUT_MS);
  await enqueueMany(
    keys.map((key) => placing(key, newId())),
    TIMEOUT_MS,
  );
  commands();
  return { own, acquireMany, enqueueMany, releaseMany, commands };
}

test("one command handles the largest allowed number of keys", async (t) => {
  const { own, acquireMany, enqueueMany, releaseMany, commands } = await countedStore();
  const holds = Array.from({ length: MOST_AT_ONCE }, () => ({ key: newKey(), requestId: newId() }));
  const requests = holds.map(({ key, requestId }) => request(key, requestId));
  t.true((await acquireMany(requests, TIMEOUT_MS)).every((reply) => "acquired" in reply && reply.acquired));
  t.deepEqual(commands(), ["EVALSHA"]);
  await own.renew(requests, TIMEOUT_MS);
  t.deepEqual(commands(), ["EVALSHA"]);
  const keys = holds.map(({ key }) => key);
  t.deepEqual(
    await own.peek(keys, TIMEOUT_MS),
    holds.map(({ requestId }) => requestId),
  );
  t.deepEqual(commands(), ["EVALSHA"]);
  const waiting = keys.map((key) => placing(key, newId()));
  const held = (replies: readonly object[]): boolean =>
    replies.every((reply, index) => "holder" in reply && reply.holder === holds[index]?.requestId);
  t.true(held(await enqueueMany(waiting, TIMEOUT_MS)));
  t.deepEqual(commands(), ["EVALSHA"]);
  t.true((await releaseMany(holds, TIMEOUT_MS)).every((reply) => "released" in reply && reply.released));
  t.deepEqual(commands(), ["EVALSHA"]);
  const inTurn = waiting.map(({ key, ticket }) => placing(key, ticket));
  t.true((await enqueueMany(inTurn, TIMEOUT_MS)).every((reply) => "acquired" in reply && reply.acquired));
  t.deepEqual(commands(), ["EVALSHA"]);
  await own.close();
});

test("a script handles at most a few hundred keys, so that it does not block the server", async (t) => {
  const { own, commands } = await countedStore();
  const requests = Array.from({ length: 600 }, () => renewal(newKey(), newId()));
  t.is((await own.renew(requests, TIMEOUT_MS)).length, 600);
  t.is(commands().length, 3);
  const keys = requests.map(({ key }) => key);
  t.is((await own.peek(keys, TIMEOUT_MS)).length, 600);
  t.is(commands().length, 3);
  await own.close();
});

test("only the key that holds other data is rejected in a command for several keys", async (t) => {
  const foreigner = server.client();
  const { own, acquireMany, enqueueMany, releaseMany, commands } = await countedStore();
  const [free, wrong, held] = [newKey(), newKey(), newKey()];
  const [requestId, holder] = [newId(), newId()];
  await foreigner.rpush(wrong, "an element");
  await acquire(own, held, holder);
  commands();
  const keys = [free, wrong, held];
  const replies = await acquireMany(
    keys.map((key) => request(key, requestId)),
    TIMEOUT_MS,
  );
  t.deepEqual(commands(), ["EVALSHA"]);
  t.deepEqual(replies[0], TAKEN);
  t.true(replies[1] instanceof LockMisconfiguredError);
  t.deepEqual(replies[2], { acquired: false, holder, freeInMs: undefined });
  const renewed = await own.renew(
    keys.map((key) => renewal(key, requestId)),
    TIMEOUT_MS,
  );
  const other = "(other data than text)";
  t.deepEqual(renewed, [{ renewed: true }, { renewed: false, holder: other }, { renewed: false, holder }]);
  t.deepEqual(await own.peek(keys, TIMEOUT_MS), [requestId, other, holder]);
  const places = await enqueueMany(
    keys.map((key) => placing(key, newId())),
    TIMEOUT_MS,
  );
  t.like(places[0], { acquired: false, holder: requestId });
  t.true(places[1] instanceof LockMisconfiguredError);
  t.like(places[2], { acquired: false, holder });
  const drops = keys.map((key) => ({ key, requestId }));
  t.deepEqual(await releaseMany(drops, TIMEOUT_MS), [
    { released: true },
    { released: false, holder: other },
    { released: false, holder },
  ]);
  t.deepEqual(await foreigner.lrange(wrong, 0, -1), ["an element"]);
  await own.close();
});

test("READONLY for a command for many keys reaches the client's reconnectOnError", async (t) => {
  const former = await startRedis();
  const client = former.client();
  const own = redisStore(client);
  t.teardown(() => Promise.all([own.close(), former.stop()]));
  const refused: string[] = [];
  client.options.reconnectOnError = ({ message }) => {
    refused.push(message);
    return false;
  };
  await former.client().replicaof("127.0.0.1", String(server.port));
  const keys = [newKey(), newKey()];
  const asked = [
    own.batch?.acquireMany(
      keys.map((key) => request(key, newId())),
      TIMEOUT_MS,
    ),
    own.batch?.enqueueMany?.(
      keys.map((key) => placing(key, newId())),
      TIMEOUT_MS,
    ),
  ];
  for (const one of asked) await t.throwsAsync(async () => await one, { message: /READONLY/ });
  t.is(refused.filter((message) => message.includes("READONLY")).length, asked.length);
});

test("only the renewal with an invalid fencing counter is rejected in a command for several keys", async (t) => {
  const foreigner = server.client();
  const { own } = await countedStore();
  const [plain, wrong, fenced, requestId] = [newKey(), newKey(), newKey(), newId()];
  for (const key of [plain, wrong, fenced]) await acquire(own, key, requestId);
  await foreigner.rpush(`lockweave:1:fence:{${wrong}}`, "an element");
  const renewals = [plain, wrong, fenced].map((key) => request(key, requestId, { fencing: key !== plain }));
  const replies = await own.renew(renewals, TIMEOUT_MS);
  t.deepEqual(replies[0], { renewed: true });
  t.true(replies[1] instanceof LockMisconfiguredError);
  t.like(replies[2], { renewed: true });
  await own.close();
});

test("every request gets an error if the server does not reply", async (t) => {
  const mortal = await startRedis();
  const own = redisStore(mortal.client());
  t.teardown(() => own.close());
  const requests = Array.from({ length: 300 }, () => renewal(newKey(), newId()));
  const keys = requests.map(({ key }) => key);
  const asked = Promise.allSettled([
    own.batch?.acquireMany(requests.slice(0, MOST_AT_ONCE), TIMEOUT_MS),
    own.queue.enqueue(placing(newKey(), newId()), TIMEOUT_MS),
  ]);
  const [renewed, looked] = [own.renew(requests, TIMEOUT_MS), own.peek(keys, TIMEOUT_MS)];
  await mortal.stop(); // This also disconnects its clients.
  t.true((await asked).every(({ status }) => status === "rejected"));
  for (const replies of [await renewed, await looked]) {
    t.is(replies.length, 300);
    t.true(replies.every((reply) => reply instanceof Error));
  }
});

test("each acquisition with fencing draws its token in its own script", async (t) => {
  const { own, commands } = await countedStore();
  const [key, other, requestId] = [newKey(), newKey(), newId()];
  await acquire(own, newKey(), newId(), { fencing: true });
  commands();
  await Promise.all([key, other].map((name) => acquire(own, name, requestId, { fencing: true })));
  t.deepEqual(commands(), ["EVALSHA", "EVALSHA"]);
  await own.close();
});

test("one command renews each of many shared holds of a key once", async (t) => {
  const own = redisStore(server.client());
  const admin = server.client();
  const key = newKey();
  const readers = Array.from({ length: 100 }, () => newId());
  for (const id of readers) t.deepEqual(await acquire(own, key, id, { permits: Infinity }), TAKEN);
  await admin.config("RESETSTAT");
  const replies = await own.renew(
    readers.map((id) => ({ ...renewal(key, id), permits: Infinity })),
    TIMEOUT_MS,
  );
  t.true(replies.every((reply) => "renewed" in reply && reply.renewed));
  const stats = await admin.info("commandstats");
  t.regex(stats, /cmdstat_zadd:calls=100,/);
  t.regex(stats, /cmdstat_evalsha:calls=1,/);
  for (const requestId of readers) await own.release({ key, requestId }, TIMEOUT_MS);
  t.is(await admin.exists(key), 0);
});

test("a hold that is released twice in one command is passed on once", async (t) => {
  const own = redisStore(server.client());
  t.teardown(() => own.close());
  await untilListening(own);
  const [key, requestId, first, second] = [newKey(), newId(), newId(), newId()];
  await acquire(own, key, requestId);
  for (const waiting of [first, second]) await queued(own, key, waiting);
  const held = { key, requestId };
  t.deepEqual(await own.batch?.releaseMany([held, held], TIMEOUT_MS), [
    { released: true },
    { released: false, holder: reservedFor(first) },
  ]);
});

test("a hold can be released with a cooldown and revoked if Redis is out of memory", async (t) => {
  const full = await startRedis("--maxmemory-policy", "noeviction");
  const own = redisStore(full.client());
  const holds = [newKey(), newKey()].map((key) => ({ key, requestId: newId() }));
  for (const { key, requestId } of holds) await acquire(own, key, requestId);
  await full.client().config("SET", "maxmemory", "1");
  const [first, second] = holds;
  if (first === undefined || second === undefined) throw new Error("too few holds");
  t.deepEqual(await own.release({ ...first, cooldownMs: 60_000 }, TIMEOUT_MS), { released: true });
  t.is(await full.client().get(first.key), closedAfter(first.requestId));
  t.true(await own.admin.revoke(second, TIMEOUT_MS));
  t.is(await full.client().get(second.key), revokedFrom(second.requestId));
  await own.close();
  await full.stop();
});

test("shared holds can be renewed and released, but not acquired, if Redis is out of memory", async (t) => {
  const full = await startRedis("--maxmemory-policy", "noeviction");
  const own = redisStore(full.client());
  const [key, one, other, third] = [newKey(), newId(), newId(), newId()];
  for (const id of [one, other]) await acquire(own, key, id, { permits: 5 });
  await full.client().config("SET", "maxmemory", "1");
  await t.throwsAsync(acquire(own, key, third, { permits: 5 }), { message: /OOM|memory/ });
  t.deepEqual(await own.renew([renewal(key, one), renewal(key, other)], TIMEOUT_MS), [
    { renewed: true },
    { renewed: true },
  ]);
  t.deepEqual(await own.release({ key, requestId: one }, TIMEOUT_MS), { released: true });
  t.deepEqual(await own.batch?.releaseMany([{ key, requestId: other }], TIMEOUT_MS), [{ released: true }]);
  t.is(await full.client().exists(key), 0);
  await own.close();
  await full.stop();
});
