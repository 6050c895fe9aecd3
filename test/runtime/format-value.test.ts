import { inspect } from "node:util";
import test from "ava";
import { Redis } from "ioredis";
import { withLock } from "../../runtime/with-lock";
import { configure } from "../../runtime/config/configure";
import type { Configuration } from "../../runtime/config/configuration";
import { LockError } from "../../runtime/base/errors";
import { lockKey, type KeyValue } from "../../runtime/base/key";
import { redacted, formatValue } from "../../runtime/base/format-value";
import { memoryStore } from "../../runtime/stores/memory";
import { open, type Site } from "../../runtime/woven/woven";

class User {
  readonly id = 7;
  readonly passwordHash = "hunter2";
}

const forbid = (): never => {
  throw new Error("nobody may look");
};
const hostile = new Proxy({}, { get: forbid, ownKeys: forbid, getPrototypeOf: forbid });

for (const [value, text] of [
  [undefined, "undefined"],
  [null, "null"],
  [7, "7"],
  [-0, "-0"],
  [7n, "7n"],
  [true, "true"],
  [Symbol("s"), "Symbol(s)"],
  ["30 s", "'30 s'"],
  ["a\r\n\x1b[0m", String.raw`'a\r\n\x1B[0m'`],
  ["x".repeat(210), `'${"x".repeat(200)}'... 10 more characters`],
  [forbid, "[Function: forbid]"],
  [Object.assign(() => {}, { password: "hunter2" }), "[Function (anonymous)]"],
  [User, "[class User]"],
  [{}, "{}"],
  [{ host: "h", password: "hunter2" }, "{ host, password }"],
  [{ "a-b": 1 }, "{ 'a-b' }"],
  [new User(), "User { id, passwordHash }"],
  [Object.create(null), "{}"],
  [Object("hunter2"), "String"],
  [Buffer.from("hunter2"), "Uint8Array"],
  [[], "[]"],
  [["30s", 15], "[ '30s', 15 ]"],
  [[{ password: "hunter2" }, ["a"]], "[ { password }, Array(1) ]"],
  [Array.from({ length: 12 }, () => 0), "[ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, and 2 more ]"],
  [new Map([["password", "hunter2"]]), "Map(1)"],
  [new Date(0), "Date"],
  [Promise.resolve("hunter2"), "Promise"],
  [new URL("redis://app:hunter2@h"), "URL"],
  [hostile, "an object that throws when it is formatted"],
] as const) {
  test(`formatValue() formats ${inspect(value, { depth: 0 }).slice(0, 40)} as ${text.slice(0, 40)}`, (t) => {
    t.is(formatValue(value), text);
  });
}

for (const [url, text] of [
  ["redis://localhost:6379/0", "redis://localhost:6379/0"],
  ["redis://app:hunter2@h:6379/0", "redis://***@h:6379/0"],
  ["redis://:hunter2@h", "redis://***@h"],
  ["redis://hunter2@h", "redis://***@h"],
  ["rediss://app:hunter2@hunter2@h", "rediss://***@h"],
  ["redis://app:hunter2/hunter2?#@h", "redis://***@h"],
  ["redis://app:hunter2 hunter2@h", "redis://***@h"],
  ["app:hunter2@h:6379", "***@h:6379"],
  ["redis://h?password=hunter2", "redis://h?password=***"],
  ["redis://h?db=1&sentinelPassword=hunter2&tls=true", "redis://h?db=1&sentinelPassword=***&tls=true"],
  ["redis://h?auth=hunter2#hunter2", "redis://h?auth=***"],
  ["redis://app:hunter2@h?access_token=hunter2", "redis://***@h?access_token=***"],
  ["an order of bob@example.com", "an order of bob@example.com"],
] as const) {
  test(`formatValue() formats the text ${url} as ${text}`, (t) => {
    t.is(formatValue(url), `'${text}'`);
  });
}

for (const [sentence, text] of [
  ["cannot reach redis://app:hunter2@h:6379: refused", "cannot reach redis://***@h:6379: refused"],
  ['"redis://a:hunter2@hunter2@h" is no URL', '"redis://***@h" is no URL'],
  ["see 'redis://h?password=hunter2', please", "see 'redis://h?password=***', please"],
  ["redis://a:hunter2@x and redis://b:hunter2@y", "redis://***@x and redis://***@y"],
  ["WRONGTYPE of user:bob@example.com", "WRONGTYPE of user:bob@example.com"],
  ["a=b&c=d", "a=b&c=d"],
] as const) {
  test(`redacted() hides only credentials in a sentence: ${text}`, (t) => {
    t.is(redacted(sentence), text);
  });
}

test("redacting a text takes time linear in its length", (t) => {
  for (const unit of ["a", ":", "?", "@", "&", "=", "pass", "://", "?a=", "a:b@", ")"]) {
    const startedAt = performance.now();
    for (const beginning of ["@=", "?auth="]) {
      redacted(`${beginning}${unit.repeat(200_000)}a`);
      formatValue(`${beginning}${unit.repeat(200_000)}a`);
    }
    t.true(performance.now() - startedAt < 2_000, unit);
  }
});

const client = new Redis("redis://app:hunter2@127.0.0.1:1", { lazyConnect: true });
const store = memoryStore();

for (const [what, call] of [
  ["configure() of a URL", () => configure("redis://app:hunter2@h" as Configuration, "woven")],
  ["configure() of a URL object", () => configure(new URL("redis://a:hunter2@h") as Configuration, "woven")],
  ["configure() of an address", () => configure("app:hunter2@h:6379" as Configuration, "woven")],
  ["configure() of a list", () => configure([{ password: "hunter2" }] as Configuration, "woven")],
  ["a client as the store", () => configure({ store: client } as unknown as Configuration, "woven")],
  ["a URL as the store", () => configure({ store: "redis://a:hunter2@h" as never }, "woven")],
  ["connection options as the client", () => configure({ redis: { password: "hunter2" } as never }, "woven")],
  [
    "connection options as defaults",
    () => configure({ store, defaults: [{ password: "hunter2" }] as never }, "woven"),
  ],
  [
    "connection options as the logger",
    () => configure({ store, logger: { password: "hunter2" } as never }, "woven"),
  ],
  [
    "connection options as the clock",
    () => configure({ store, clock: { password: "hunter2" } as never }, "woven"),
  ],
  ["a URL as a timeout", () => configure({ store, commandTimeout: "redis://a:hunter2@h" as "1s" }, "woven")],
  ["a URL as a signal", () => configure({ store, shutdownOn: ["redis://a:hunter2@h"] as never }, "woven")],
  ["a user as a part of the key", () => lockKey("login", new User() as unknown as KeyValue)],
  ["a list of users as a part of the key", () => lockKey("login", [new User()] as unknown as KeyValue)],
  ["a user as the flag", () => lockKey(new User() as unknown as string)],
  ["a user as the site", () => open(new User() as unknown as Site)],
  ["a user as the key", () => withLock(new User() as unknown as string, {}, () => {})],
  ["a user as the body", () => withLock("k", {}, new User() as unknown as () => void)],
] as const) {
  test.serial(`the error for ${what} contains no secret`, async (t) => {
    const error = await t.throwsAsync(async () => void (await call()), { instanceOf: LockError });
    t.false(inspect(error, { depth: 9 }).includes("hunter"), error?.message);
  });
}
