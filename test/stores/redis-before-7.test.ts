import test from "ava";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import { release, newId, newKey, request, acquire, TAKEN, TIMEOUT_MS } from "../store-contract/subject";
import type { RedisClient } from "../../runtime/stores/redis/client";
import { redisStore } from "../../runtime/stores/redis/redis";
import { startRedis, type RedisServer } from "../support/redis-server";
import { beforeRedis7 } from "./before-redis-7";

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

test("a store uses a script after an old server has rejected one command, and excludes stores that do not", async (t) => {
  const newer = redisStore(server.client());
  const { client, refusals } = beforeRedis7(server.client());
  const old = redisStore(client);
  const [key, requestId] = [newKey(), newId()];
  t.deepEqual(await acquire(old, key, requestId), TAKEN);
  const held = { acquired: false, holder: requestId, freeInMs: undefined } as const;
  t.deepEqual(await acquire(old, key, requestId), held);
  t.deepEqual(await acquire(old, key, newId()), held);
  t.deepEqual(await acquire(newer, key, newId()), held);
  const requests = [key, newKey()].map((name) => request(name, newId()));
  t.deepEqual(await old.batch?.acquireMany(requests, TIMEOUT_MS), [held, TAKEN]);
  t.deepEqual(await release(old, key, requestId), { released: true });
  t.is(refusals(), 1);
});

test("a server before Redis 7 rejects only the key that holds other data", async (t) => {
  const foreigner = server.client();
  const old = redisStore(beforeRedis7(server.client()).client);
  await acquire(old, newKey(), newId());
  const [free, wrong] = [newKey(), newKey()];
  await foreigner.rpush(wrong, "an element");
  const requests = [free, wrong].map((key) => request(key, newId()));
  const replies = (await old.batch?.acquireMany(requests, TIMEOUT_MS)) ?? [];
  t.deepEqual(replies[0], TAKEN);
  t.true(replies[1] instanceof LockMisconfiguredError);
});

test("a store also uses a script if its first command to an old server names many keys", async (t) => {
  const client = server.client();
  const count = 4; // No other script here has so many keys.
  let scripts = 0;
  const old = Object.create(client, {
    call: {
      value: async (command: string, ...args: (string | number)[]) => {
        if (args[1] !== count) return await client.call(command, ...args);
        scripts += 1;
        return Array.from({ length: count }, () => new Error("ERR syntax error"));
      },
    },
  }) as RedisClient;
  const own = redisStore(old);
  const requests = Array.from({ length: count }, () => request(newKey(), newId()));
  t.deepEqual(
    await own.batch?.acquireMany(requests, TIMEOUT_MS),
    requests.map(() => TAKEN),
  );
  t.deepEqual(
    await own.batch?.acquireMany(requests, TIMEOUT_MS),
    requests.map(({ requestId }) => ({ acquired: false, holder: requestId, freeInMs: undefined })),
  );
  t.is(scripts, 1);
});

for (const words of [
  "ERR Error running script (call to f_0a1b): @user_script:2: WRONGTYPE Operation against a key holding the wrong kind of value",
  "@user_script: 12: WRONGTYPE Operation against a key holding the wrong kind of value",
  "WRONGTYPE Operation against a key holding the wrong kind of value script: f_0a1b, on @user_script:2.",
]) {
  test(`recognizes a WRONGTYPE error from inside a script: ${words}`, async (t) => {
    const client = server.client();
    const old = redisStore(
      Object.create(client, { call: { value: () => Promise.reject(new Error(words)) } }) as RedisClient,
    );
    await t.throwsAsync(acquire(old, newKey(), newId(), { fencing: true }), {
      instanceOf: LockMisconfiguredError,
      message: /data that is not a lock/,
    });
  });
}
