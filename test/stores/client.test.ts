import { Redis } from "ioredis";
import test from "ava";
import { LockOptionError } from "../../runtime/base/errors";
import type { RedisClient, ValkeyGlideClient } from "../../runtime/stores/redis/client";
import { Database } from "../../runtime/stores/redis/ioredis/database";
import { assertClient } from "../../runtime/stores/redis/recognize-client";

test("assertClient() accepts only objects with all methods that the store calls", (t) => {
  const client = new Redis({ lazyConnect: true });
  t.notThrows(() => assertClient(client));
  for (const method of ["call", "duplicate", "on", "off"] as const) {
    const { [method]: _, ...others } = { call() {}, duplicate() {}, on() {}, off() {} };
    t.throws(() => assertClient(others as unknown as RedisClient), {
      instanceOf: LockOptionError,
      message:
        /^Expected `redis` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, or a redis:\/\/ URL, got \[ '/,
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
      message: `Expected \`redis\` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, or a redis:// URL, got ${got}`,
    });
  }
});

/** These methods imitate the clients of other packages. `test/matrix/clients.ts` checks the real ones. */
test("the error names the package of a client that is not supported, and what to do", (t) => {
  for (const [methods, name, fix] of [
    [
      ["sendCommand", "multi", "duplicate", "on", "off"],
      "node-redis 4 or earlier (the package `redis`), or of its legacy()",
      /Fix: npm install redis@latest, and pass what createClient\(\) returns$/,
    ],
    [
      ["createScript", "multi", "pipeline"],
      "@upstash/redis, which speaks HTTP",
      /pass the URL from Upstash.*: rediss:\/\/default:<password>@<endpoint>:6379$/,
    ],
  ] as const) {
    const client = Object.fromEntries(methods.map((method) => [method, () => {}]));
    const error = t.throws(() => assertClient(client as unknown as RedisClient, "stores.payments"), {
      instanceOf: LockOptionError,
      message: fix,
    });
    const expected = `Expected \`stores.payments\` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, or a redis:// URL, got a client of ${name}. `;
    t.true(error?.message.startsWith(expected), error?.message);
  }
});

/** These methods imitate clients of GLIDE. `test/matrix/clients.ts` checks the real ones. */
test("the error about a client of Valkey GLIDE says what to pass instead", (t) => {
  const methods = { async customCommand() {}, async getPubSubMessage() {} };
  const made = Object.assign(Object.create({ constructor: { async createClient() {} } }) as object, methods);
  t.notThrows(() => assertClient(methods));
  t.notThrows(() => assertClient({ glide: made, config: {} }));
  const ofCluster = Object.assign(Object.create(made) as object, { fcallWithRoute() {}, exec() {} }, methods);
  t.notThrows(() => assertClient({ glide: ofCluster, config: {} }));
  for (const [given, message] of [
    [
      ofCluster,
      /a GlideClusterClient of Valkey GLIDE without its config\. Fix: pass \{ glide: client, config \}/,
    ],
    [
      { glide: { ...methods, fcallWithRoute() {}, exec() {} }, config: {} },
      /was not made by GlideClusterClient\.createClient\(\)\. Fix: /,
    ],
    [{ glide: {} }, /whose `glide` is not a client of Valkey GLIDE\. Fix: pass \{ glide: client, config \}/],
    [{ glide: made, config: "a:6379" }, /whose `config` is not an object\. Fix: /],
    [{ glide: methods, config: {} }, /was not made by GlideClient\.createClient\(\)\. Fix: /],
  ] as const) {
    t.throws(() => assertClient(given as unknown as ValkeyGlideClient), {
      instanceOf: LockOptionError,
      message,
    });
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
