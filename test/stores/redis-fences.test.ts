import test from "ava";
import * as fc from "fast-check";
import { withLock } from "../../runtime/with-lock";
import { configure, shutdown } from "../../runtime/config/configure";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import { untilListening } from "../store-contract";
import {
  release,
  newId,
  newKey,
  enqueue,
  placing,
  renewal,
  acquire,
  token,
  TIMEOUT_MS,
} from "../store-contract/subject";
import { FENCING_STRIDE, type WholeStore } from "../../runtime/stores/port";
import { quorumStore } from "../../runtime/stores/quorum/quorum-store";
import { redisStore } from "../../runtime/stores/redis/redis";
import { fenceOf } from "../support/auxiliary-keys";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis } from "../support/redis-server";
import { until } from "../support/until";

const HOUR_MS = 3_600_000;

/** Far longer than a reply from the server takes. */
const LOCK_TIME_MS = 600_000;
const WITH_TOKEN = { fencing: true, lockTimeMs: LOCK_TIME_MS };

/** The ways in which a holder gets a fencing token for a new key. */
const WAYS: Record<string, (store: WholeStore, key: string) => Promise<unknown>> = {
  "acquire()": (store, key) => acquire(store, key, newId(), WITH_TOKEN),
  "enqueue() of a free key": (store, key) => enqueue(store, key, newId(), WITH_TOKEN),
  "enqueue() with a reservation": async (store, key) => {
    const [holder, waiting] = [newId(), newId()];
    await acquire(store, key, holder);
    await enqueue(store, key, waiting);
    await release(store, key, holder);
    return await enqueue(store, key, waiting, WITH_TOKEN);
  },
  "releaseAndEnqueue()": async (store, key) => {
    const requestId = newId();
    await acquire(store, key, requestId);
    return await store.queue.releaseAndEnqueue(
      { key, requestId },
      placing(key, newId(), WITH_TOKEN),
      TIMEOUT_MS,
    );
  },
  "renew()": async (store, key) => {
    const requestId = newId();
    await acquire(store, key, requestId);
    return await store.renew([{ ...renewal(key, requestId, LOCK_TIME_MS), fencing: true }], TIMEOUT_MS);
  },
};

test("the fencing counter outlives the lock by an hour, however the token was drawn", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const store = redisStore(server.client());
  t.teardown(() => store.close());
  await untilListening(store);
  for (const [way, draw] of Object.entries(WAYS)) {
    const key = newKey();
    await draw(store, key);
    const pttl = await server.client().pttl(`lockweave:1:fence:{${key}}`);
    t.true(pttl > HOUR_MS + LOCK_TIME_MS / 2 && pttl <= HOUR_MS + LOCK_TIME_MS, `${way}: ${pttl}`);
  }
});

test("the fencing counter outlives the lock by an hour in a cluster", async (t) => {
  const server = await startRedisCluster();
  t.teardown(server.stop);
  const store = redisStore(server.cluster());
  t.teardown(() => store.close());
  for (const [way, draw] of Object.entries(WAYS)) {
    const key = newKey();
    await draw(store, key);
    const pttl = await server.client().pttl(`lockweave:1:fence:{${key}}`);
    t.true(pttl > HOUR_MS + LOCK_TIME_MS / 2 && pttl <= HOUR_MS + LOCK_TIME_MS, `${way}: ${pttl}`);
  }
});

// ---- a counter that another program has written ---------------------------------------------------------

const POISON = [
  "9007199254740993",
  "9007199254740991",
  "abc",
  "-5",
  "1e300",
  "1.5",
  "0x10",
  "",
  " 7",
  "nan",
  "inf",
];
/** The counter after one draw must be a safe integer as well. */
const LARGEST_COUNTER = Number.MAX_SAFE_INTEGER - FENCING_STRIDE;

test("every way to acquire rejects a fencing counter that is not a safe integer, and leaves it unchanged", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const client = server.client();
  const store = redisStore(client);
  t.teardown(() => store.close());
  await untilListening(store);
  const counter = fc.oneof(
    fc.constantFrom(...POISON),
    fc.string(),
    fc.double().map(String),
    fc.bigInt().map(String),
    fc.maxSafeNat().map(String),
  );
  const ways = fc.constantFrom(...Object.entries(WAYS));
  await fc.assert(
    fc.asyncProperty(counter, ways, async (text, [way, draw]) => {
      const key = newKey();
      const isGood = /^\d{1,16}$/.test(text) && Number(text) <= LARGEST_COUNTER;
      await client.set(fenceOf(key), text);
      const drawn = await draw(store, key).catch((error: unknown) => error);
      if (isGood) {
        t.true(Number(await client.get(fenceOf(key))) > Number(text), way);
        return;
      }
      const isNextAlone = typeof drawn === "object" && drawn !== null && "next" in drawn;
      if (isNextAlone)
        t.is(drawn.next, undefined); // The next caller asks again by itself, and gets the error then.
      else t.true(isMisconfigured(drawn), `${way}: ${String(drawn)}`);
      t.is(await client.get(fenceOf(key)), text, way);
    }),
    { numRuns: 300, examples: POISON.flatMap((text) => Object.entries(WAYS).map((way) => [text, way])) },
  );
});

/** Whether the result, or the only reply in it, is the error for an invalid counter. */
function isMisconfigured(drawn: unknown): boolean {
  const [error] = Array.isArray(drawn) ? (drawn as unknown[]) : [drawn];
  return error instanceof LockMisconfiguredError && error.message.includes("lockweave:1:fence:{");
}

test.serial(
  "no body runs with a token from an invalid counter, and the error names the counter",
  async (t) => {
    const server = await startRedis();
    t.teardown(server.stop);
    configure({ redis: server.url, woven: false });
    t.teardown(() => shutdown({ patience: "0s" }));
    const client = server.client();
    await client.set("lockweave:1:fence:{LOCK_ledger}", "9007199254740993");
    const run = (): Promise<number | undefined> =>
      withLock("LOCK_ledger", { fencing: true }, (lock) => lock.fencingToken);
    const error = await t.throwsAsync(run(), { instanceOf: LockMisconfiguredError });
    t.regex(
      error.message,
      /counter of the lock's fencing tokens.*lockweave:1:fence:\{LOCK_ledger\} holds 9007199254740993/,
    );
    t.is(await client.exists("LOCK_ledger"), 0);
    await client.del("lockweave:1:fence:{LOCK_ledger}");
    t.true(Number.isSafeInteger(await run()));
  },
);

test("in a quorum, a master with an invalid counter has no vote for the token, and tokens still rise", async (t) => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  for (const server of servers) t.teardown(server.stop);
  const store = quorumStore(
    servers.map(({ url }) => url),
    { longestLockTime: "200ms" },
  );
  t.teardown(() => store.close());
  const key = newKey();
  const wish = { fencing: true, lockTimeMs: 200 };
  const drawn = async (): Promise<number> => token(await acquire(store, key, newId(), wish));
  const attempt = (): Promise<number | undefined> => drawn().catch(() => undefined);
  let first: number | undefined;
  await until(async () => (first = await attempt()) !== undefined); // Succeeds once the masters have been up for the lock time.
  const clients = servers.map((server) => server.client());
  const [one, two] = clients;
  await one?.set(fenceOf(key), "9007199254740993");
  let second: number | undefined;
  await until(async () => (second = await attempt()) !== undefined);
  t.true(Number(second) > Number(first) && Number.isSafeInteger(second));
  await two?.set(fenceOf(key), "abc");
  // On each master, because a single one that still has the key answers that it is held.
  await until(async () =>
    (await Promise.all(clients.map((client) => client.exists(key)))).every((n) => n === 0),
  );
  await t.throwsAsync(drawn(), { message: /BADFENCE/ });
});
