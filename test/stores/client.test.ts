import { Redis } from "ioredis";
import test from "ava";
import { LockOptionError } from "../../runtime/errors";
import { assertClient, type RedisClient } from "../../runtime/stores/redis/client";
import { Database } from "../../runtime/stores/redis/database";

test("a client is what has all that the store calls", (t) => {
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

test("of what is no client, its kind and its names are said, and no values", (t) => {
  for (const [value, got] of [
    [{ host: "a", password: "secret" }, "[ 'host', 'password' ]"],
    [["a"], "[ '0' ]"],
    [new Map([["a", 1]]), "Map []"],
    [new URL("redis://:secret@a"), "URL []"],
  ] as const) {
    t.throws(() => assertClient(value as unknown as RedisClient), {
      message: `Expected \`redis\` to be an ioredis client or a redis:// URL, got ${got}`,
    });
  }
});

test("nothing listens to a client any more whose database is not looked at", (t) => {
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
