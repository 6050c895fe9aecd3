import { Redis } from "ioredis";
import test from "ava";
import { LockOptionError } from "../../runtime/base/errors";
import { assertClient, type RedisClient } from "../../runtime/stores/redis/client";
import { Database } from "../../runtime/stores/redis/database";

test("assertClient() accepts only objects with all methods that the store calls", (t) => {
  const client = new Redis({ lazyConnect: true });
  t.notThrows(() => assertClient(client));
  for (const method of ["call", "duplicate", "on", "off"] as const) {
    const { [method]: _, ...others } = { call() {}, duplicate() {}, on() {}, off() {} };
    t.throws(() => assertClient(others as unknown as RedisClient), {
      instanceOf: LockOptionError,
      message: /^Expected `redis` to be an ioredis client or a redis:\/\/ URL, got \[ '/,
    });
  }
});

test("the error for an invalid client shows its type and property names, but no values", (t) => {
  for (const [value, got] of [
    [{ username: "a", password: "secret" }, "[ 'username', 'password' ]"],
    [["a"], "[ '0' ]"],
    [new Map([["a", 1]]), "Map []"],
    [new URL("redis://:secret@a"), "URL []"],
  ] as const) {
    t.throws(() => assertClient(value as unknown as RedisClient), {
      message: `Expected \`redis\` to be an ioredis client or a redis:// URL, got ${got}`,
    });
  }
});

/** These methods imitate the clients of other packages. `test/matrix/clients.ts` checks the real ones. */
test("the error names the package of a client that is not supported, and what to do", (t) => {
  const ioredis =
    /Lockweave connects to the same server with ioredis\. Fix: npm install ioredis, and pass the URL of that client to configure\(\)/;
  for (const [methods, name, fix] of [
    [["sendCommand", "multi", "duplicate", "on", "off"], "node-redis (the package `redis`)", ioredis],
    [["customCommand", "exec", "close"], "Valkey GLIDE", ioredis],
    [
      ["createScript", "multi", "pipeline"],
      "@upstash/redis, which speaks HTTP",
      /pass the rediss:\/\/ URL from Upstash/,
    ],
  ] as const) {
    const client = Object.fromEntries(methods.map((method) => [method, () => {}]));
    const error = t.throws(() => assertClient(client as unknown as RedisClient, "stores.payments"), {
      instanceOf: LockOptionError,
      message: fix,
    });
    const expected = `Expected \`stores.payments\` to be an ioredis client or a redis:// URL, got a client of ${name}. `;
    t.true(error?.message.startsWith(expected), error?.message);
  }
});

test("close() removes the listeners that watch the client's database", (t) => {
  const client = new Redis({ lazyConnect: true, db: 3 });
  const listeners = (): number[] => ["connect", "error"].map((event) => client.listenerCount(event));
  const before = listeners();
  const database = new Database(client);
  t.deepEqual(
    listeners(),
    before.map((count) => count + 1),
  );
  database.close();
  t.deepEqual(listeners(), before);
});
