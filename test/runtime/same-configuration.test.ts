import { runInNewContext } from "node:vm";
import test from "ava";
import { isSameConfiguration } from "../../runtime/config/same-configuration";
import { memoryStore } from "../../runtime/stores/memory";

class Client {
  readonly options = { host: "localhost" };
}

const client = new Client();
const warn = (): void => {};
const logger = { warn };
const store = memoryStore();

for (const [what, one, other] of [
  ["the same URL", { redis: "redis://localhost" }, { redis: "redis://localhost" }],
  [
    "equal addresses with TLS options",
    { redis: { url: "rediss://h", tls: { ca: "x", alpn: ["redis"] } } },
    { redis: { tls: { alpn: ["redis"], ca: "x" }, url: "rediss://h" } },
  ],
  ["equal lists of masters", { redis: ["redis://a", client] }, { redis: ["redis://a", client] }],
  [
    "equal defaults",
    { defaults: { lockTime: "3s", retryTimes: 0 } },
    { defaults: { retryTimes: 0, lockTime: "3s" } },
  ],
  ["the same client, store, and logger", { redis: client, logger, store }, { redis: client, logger, store }],
  [
    "options of another realm",
    { stores: { payments: "redis://p" } },
    { stores: runInNewContext('({ payments: "redis://p" })') as unknown },
  ],
  ["options without a prototype", { defaults: Object.create(null) as object }, { defaults: {} }],
] as const) {
  test(`configurations are equal: ${what}`, (t) => {
    t.true(isSameConfiguration(one, other));
    t.true(isSameConfiguration(other, one));
  });
}

const [endless, likewise]: [unknown[], unknown[]] = [[], []];
endless.push(endless);
likewise.push(likewise);

for (const [what, one, other] of [
  ["another URL", { redis: "redis://localhost" }, { redis: "redis://localhost/1" }],
  ["another client that looks the same", { redis: new Client() }, { redis: new Client() }],
  ["another store", { store: memoryStore() }, { store: memoryStore() }],
  ["another logger with the same function", { logger: { warn } }, { logger: { warn } }],
  ["one more option", { redis: "redis://a" }, { redis: "redis://a", announce: true }],
  ["an option of another name", { redis: "redis://a", announce: true }, { redis: "redis://a", woven: true }],
  ["an option that is undefined, and another", { woven: undefined }, { announce: true }],
  ["one more master", { redis: ["redis://a"] }, { redis: ["redis://a", "redis://b"] }],
  ["one master fewer", { redis: ["redis://a", "redis://b"] }, { redis: ["redis://a"] }],
  ["masters in another order", { redis: ["redis://a", "redis://b"] }, { redis: ["redis://b", "redis://a"] }],
  ["a list instead of an object", { redis: ["redis://a"] }, { redis: { 0: "redis://a" } }],
  ["null instead of an object", { defaults: null }, { defaults: {} }],
  ["a string instead of an object", { defaults: "" }, { defaults: {} }],
  ["another default", { defaults: { lockTime: "3s" } }, { defaults: { lockTime: "4s" } }],
  [
    "an instance instead of an object",
    { redis: new Client() },
    { redis: { options: { host: "localhost" } } },
  ],
  ["lists that contain themselves", { redis: endless }, { redis: likewise }],
] as const) {
  test(`configurations differ: ${what}`, (t) => {
    t.false(isSameConfiguration(one, other));
    t.false(isSameConfiguration(other, one));
  });
}

test("a configuration that cannot be read equals no other one", (t) => {
  const unreadable = Proxy.revocable({}, {});
  unreadable.revoke();
  t.false(isSameConfiguration({ defaults: unreadable.proxy }, { defaults: {} }));
});
