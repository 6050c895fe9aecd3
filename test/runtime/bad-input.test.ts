import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { inspect } from "node:util";
import test from "ava";
import type { Redis } from "ioredis";
import * as lockweave from "../support/whole-runtime";
import { systemClock } from "../../runtime/base/clock";
import { formatValue } from "../../runtime/base/format-value";
import { startRedis, type RedisServer } from "../support/redis-server";

// Wrong calls that plain JavaScript can make, because no compiler rejects them. Lockweave must reject each one before
// it sends anything. The client connects at its first command, and a proxy counts its bytes.

type Anything = (...args: unknown[]) => unknown;
type Names =
  | "memoryStore"
  | "redisStore"
  | "acquire"
  | "retryCheck"
  | "release"
  | "fail"
  | "assertHeld"
  | "runReentrant"
  | "configure"
  | "shutdown"
  | "withLock"
  | "obtain"
  | "lockKey"
  | "open"
  | "jsonField";

const {
  configure,
  shutdown,
  withLock,
  obtain,
  lockKey,
  open,
  jsonField,
  assertWoven,
  currentLock,
  refuse,
  memoryStore,
  redisStore,
  acquire,
  retryCheck,
  release,
  fail,
  assertHeld,
  runReentrant,
} = lockweave as unknown as Record<Names | "assertWoven" | "currentLock" | "refuse", Anything>;
const { LockKeyError, LockOptionError, LockMisconfiguredError, LockNotWovenError, LockClosedError } =
  lockweave;

let server: RedisServer;
let wire: Wire;
let client: Redis;

test.before(async () => {
  server = await startRedis();
  wire = await startWire(server.port);
  client = server.client({ port: wire.port, lazyConnect: true });
});

test.after.always(async () => {
  await shutdown({ patience: "0ms" });
  await server.stop();
  await wire.stop();
});

const body = (): string => "ran";
class Order {
  readonly orderNo = "Test001";
}
const unwoven = async (): Promise<void> => {};
const revocable = Proxy.revocable({}, {});
revocable.revoke();
const forbid = (): never => {
  throw new Error("nobody may look");
};
const hostile = new Proxy({}, { get: forbid, has: forbid, ownKeys: forbid, getPrototypeOf: forbid });

/** An object with this own property. An assignment would not create one for `__proto__`. */
function own(name: string, value: unknown): object {
  return Object.defineProperty({}, name, { value, enumerable: true });
}

/** The value as a title shows it. */
function titled(value: unknown): string {
  const text = inspect(value, { depth: 0 });
  if (value === hostile) return `${text} behind a proxy that throws`;
  return text.length > 40 ? `${text.slice(0, 40)}...` : text;
}

/** Tests that the call fails with this error class, and that its message contains these words in this order. */
function refuses(
  what: string,
  call: Anything,
  ErrorClass: new (message: string) => lockweave.LockError,
  ...words: string[]
): void {
  test.serial(`rejects ${what} before it sends a byte`, async (t) => {
    const connectedBefore = client.status;
    const bytesBefore = wire.bytes;
    const error = await t.throwsAsync(async () => await call(), {
      instanceOf: ErrorClass,
      code: new ErrorClass("").code,
      message: (message) => {
        let from = 0;
        return words.every((word) => {
          const at = message.indexOf(word, from);
          from = at + word.length;
          return at >= 0;
        });
      },
    });
    t.is(error?.name, ErrorClass.name);
    t.is(client.status, connectedBefore);
    t.is(wire.bytes, bytesBefore);
  });
}

// ---- configure ------------------------------------------------------------------------------------------

const NOT_CONFIGURED = ["No lock store is configured", 'configure({ redis: "redis://localhost:6379" })'];
refuses(
  "withLock() before configure()",
  () => withLock("k", {}, body),
  LockMisconfiguredError,
  ...NOT_CONFIGURED,
);
refuses("obtain() before configure()", () => obtain("k"), LockMisconfiguredError, ...NOT_CONFIGURED);
refuses(
  "a woven call before configure()",
  () => open({ site: "f", businessFlag: "f" }),
  LockMisconfiguredError,
  ...NOT_CONFIGURED,
);

const NEEDS = "Expected configure({ redis }) or configure({ store })";
const EITHER = "Expected configure() to be given one of `redis`, `postgres`, and `store`";
const OPTIONS = "The options are redis, postgres, store, stores, defaults, logger, logFields, commandTimeout";
const CLIENT_OR_URL =
  "Expected `redis` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, or a redis:// URL, got";
const MASTERS =
  "Expected at least 3 masters: clients of ioredis, iovalkey, node-redis, or Bun, or redis:// URLs, got";
const DURATION = 'to be a duration such as "30s" or "500ms"';

for (const [what, configuration, ...words] of [
  ["null", null, NEEDS, "got null"],
  ["undefined", undefined, NEEDS, "got undefined"],
  ["a number", 6379, NEEDS, "got 6379"],
  ["a URL alone", "redis://localhost", NEEDS, "got 'redis://localhost'"],
  ["a function", () => ({ redis: client }), NEEDS, "got [Function"],
  ["a symbol", Symbol("redis"), NEEDS, "got Symbol(redis)"],
  ["neither redis nor store", {}, EITHER],
  ["an array", [], "Expected configure("],
  ["an undefined redis", { redis: undefined }, EITHER, "got none (`redis` is undefined)"],
  ["a capitalized Redis", { Redis: () => client }, "no option `Redis`", OPTIONS],
  ["a misspelled option", { reddis: () => client }, "no option `reddis`", OPTIONS],
  ["the unknown option url", { url: "redis://localhost" }, "no option `url`", OPTIONS],
  ["the own property __proto__", own("__proto__", 1), "no option `__proto__`", OPTIONS],
  ["the option constructor", { constructor: 1 }, "no option `constructor`", OPTIONS],
  ["an option with no name", { "": 1 }, "no option ``", OPTIONS],
  ["a null redis", { redis: null }, CLIENT_OR_URL, "null"],
  ["a port as redis", { redis: 6379 }, CLIENT_OR_URL, "6379"],
  ["a function as redis", { redis: body }, CLIENT_OR_URL, "[Function: body]"],
  ["a list of nodes as redis", { redis: [{ host: "h", port: 1 }] }, MASTERS, "[ { host, port } ]"],
  [
    "a list of ports as redis",
    { redis: [6379, 6380, 6381] },
    "a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun",
    "6379",
  ],
  [
    "connection options as redis",
    { redis: { host: "h", password: "p" } },
    `${CLIENT_OR_URL} [ 'host', 'password' ]. Fix: create an ioredis client with these options, new Redis({ host, port }),`,
  ],
  ["an empty string as redis", { redis: "" }, `${CLIENT_OR_URL} ""`],
  ["a host and a port as redis", { redis: "localhost:6379" }, CLIENT_OR_URL, '"localhost:6379"'],
  ["a URL with another scheme as redis", { redis: "http://localhost" }, CLIENT_OR_URL, '"http://***"'],
  [
    "a URL after a space as redis",
    { redis: " redis://localhost" },
    CLIENT_OR_URL,
    "text that begins with a space",
  ],
  [
    "a URL in quotation marks as redis",
    { redis: '"redis://localhost"' },
    `${CLIENT_OR_URL} text that begins with a quotation mark`,
  ],
  [
    "a URL whose database is a name",
    { redis: "redis://localhost/locks" },
    "Put the database number after the host and `/`",
  ],
  [
    "the host alone",
    { host: "localhost" },
    "no option `host`",
    "The address of the server goes in `redis`: ",
  ],
  ["a null store", { store: null }, "`store`", "such as memoryStore(), got null"],
  ["a string as store", { store: "memory" }, "`store`", "such as memoryStore(), got 'memory'"],
  [
    "an instance of another class as store",
    { store: new Map() },
    "`store`",
    "such as memoryStore(), got Map",
  ],
  [
    "a function that returns a store",
    { store: lockweave.memoryStore },
    "`store`",
    "got [Function: memoryStore]",
  ],
  ["a promise of a store", { store: Promise.resolve(lockweave.memoryStore()) }, "`store`", "got Promise"],
] as const) {
  refuses(`configure() with ${what}`, () => configure(configuration, "woven"), LockOptionError, ...words);
}

const SIGNALS = "Expected `shutdownOn` to be a list of signals";
const WARN = "Expected `logger` to have a function `warn`, got";

for (const [what, option, ...words] of [
  ["both a client and a store", { store: lockweave.memoryStore() }, EITHER],
  ["null defaults", { defaults: null }, "Expected `defaults` to be an object", "got null"],
  ["a string as defaults", { defaults: "30s" }, "Expected `defaults` to be an object", "got '30s'"],
  ["onFailure as a default", { defaults: { onFailure: "skip" } }, "`onFailure` cannot be a default"],
  ["reentrant as a default", { defaults: { reentrant: true } }, "`reentrant` cannot be a default"],
  ["a null logger", { logger: null }, WARN, "null"],
  ["a logger that is a function", { logger: body }, WARN, "[Function: body]"],
  ["a logger without warn", { logger: { info: body } }, WARN, "{ info"],
  ["a logger whose warn is a string", { logger: { warn: "loud" } }, WARN, "{ warn }"],
  ["a null shutdownOn", { shutdownOn: null }, SIGNALS, "got null"],
  ["a string as shutdownOn", { shutdownOn: "SIGTERM" }, SIGNALS, "got 'SIGTERM'"],
  ["a number in shutdownOn", { shutdownOn: [15] }, SIGNALS, "got [ 15 ]"],
  ["a misspelled signal in shutdownOn", { shutdownOn: ["SIGTERN"] }, SIGNALS, "'SIGTERN'"],
  ["a signal that no process can catch in shutdownOn", { shutdownOn: ["SIGKILL"] }, SIGNALS, "'SIGKILL'"],
  [
    "a property name of Object.prototype in shutdownOn",
    { shutdownOn: ["constructor"] },
    SIGNALS,
    "'constructor'",
  ],
  ["a commandTimeout without a unit", { commandTimeout: 1_000 }, "`commandTimeout`", DURATION, "got 1000"],
  ["a null commandTimeout", { commandTimeout: null }, "`commandTimeout`", DURATION, "got null"],
  ["a commandTimeout of 0s", { commandTimeout: "0s" }, "`commandTimeout`", "at least 10 ms", "got '0s'"],
  ["a negative commandTimeout", { commandTimeout: "-1s" }, "`commandTimeout`", DURATION, "got '-1s'"],
  [
    "a commandTimeout of a week",
    { commandTimeout: "168h" },
    "`commandTimeout`",
    "at most 24 hours",
    "got '168h'",
  ],
] as const) {
  const call = (): unknown => configure({ redis: client, ...option }, "woven");
  refuses(`configure() with ${what}`, call, LockOptionError, ...words);
}

for (const [what, ...args] of [
  ["without the weave", {}],
  ["with a boolean instead of the weave's handshake", {}, true],
  ["with woven: 0", { woven: 0 }],
  ['with woven: "false"', { woven: "false" }],
] as const) {
  const [option, handshake] = args;
  const call = (): unknown => configure({ redis: client, ...option }, handshake);
  refuses(`configure() ${what}`, call, LockNotWovenError, "not woven", "tspc", "woven: false");
}

test("the error of an unwoven build has one short line for each fix", (t) => {
  const { message } = t.throws(() => configure({ redis: client }));
  const [first, ...lines] = message.split("\n");
  t.is(first, "This build was not woven: functions with @redisLock would run unlocked.");
  t.true(lines.length > 6);
  for (const line of lines) {
    t.regex(line, /^ {2}(?:- )?\S/);
    t.true(line.length < 200, line);
  }
});

/** An object that throws when a message formats it. */
const unshowable = Object.defineProperty({}, Symbol.toStringTag, { get: forbid });
const UNSHOWABLE = "got an object that throws when it is formatted";
const store = lockweave.memoryStore();
const plainStore = { acquire: body, renew: body, release: body, peek: body };

for (const [what, configuration, ...words] of [
  ["a URL whose port is too large", { redis: "redis://u:hunter2@h:99999" }, "`redis`", 'got "redis://***"'],
  ["a URL whose port is not a number", { redis: "redis://h:port" }, "`redis`", 'got "redis://***"'],
  ["a URL object", { redis: new URL("redis://localhost") }, CLIENT_OR_URL, "URL []"],
  ["a redis with only the method `call`", { redis: { call: body } }, CLIENT_OR_URL, "[ 'call' ]"],
  ["a redis that cannot be formatted", { redis: { [inspect.custom]: forbid } }, CLIENT_OR_URL, "[]"],
  [
    "a store with only the method `acquire`",
    { store: { acquire: body } },
    "`store`",
    "with a function `renew`",
  ],
  [
    "a store with half a queue",
    {
      store: {
        ...plainStore,
        listen: body,
        queue: { enqueue: body },
      },
    },
    "`store`",
    "with a function `queue.dequeue`",
  ],
  [
    "a store with a queue, but without listen()",
    {
      store: {
        ...plainStore,
        queue: { enqueue: body, dequeue: body, releaseAndEnqueue: body },
      },
    },
    "`store`",
    "with a function `listen`",
  ],
  [
    "a store with a queue among its other methods",
    { store: { ...plainStore, listen: body, enqueue: body, dequeue: body, releaseAndEnqueue: body } },
    "Expected the function `enqueue` of `store` in its group `queue`",
    "{ queue: { enqueue, ... } }",
  ],
  [
    "a named store with commands for people among its other methods",
    { store, stores: { payments: { ...plainStore, inspect: body } } },
    "Expected the function `inspect` of `stores.payments` in its group `admin`",
  ],
  [
    "a store with commands for many keys among its other methods",
    { store: { ...plainStore, acquireMany: body } },
    "Expected the function `acquireMany` of `store` in its group `batch`",
  ],
  [
    "a store with a command for many keys outside its batch",
    { store: { ...plainStore, batch: { acquireMany: body, releaseMany: body }, enqueueMany: body } },
    "Expected the function `enqueueMany` of `store` in its group `batch`",
  ],
  [
    "a store whose group for transactions lacks its method",
    { store: { ...plainStore, transactions: {} } },
    "with a function `transactions.guard`",
  ],
  [
    "a store with a guard outside its group",
    { store: { ...plainStore, guard: body } },
    "Expected the function `guard` of `store` in its group `transactions`",
  ],
  [
    "a store with a method in another group",
    {
      store: {
        ...plainStore,
        listen: body,
        queue: { enqueue: body, dequeue: body, releaseAndEnqueue: body, enqueueMany: body },
      },
    },
    "Expected the function `enqueueMany` of `store` in its group `batch`",
  ],
  [
    "a store whose enqueueMany is null",
    { store: { ...plainStore, batch: { acquireMany: body, releaseMany: body, enqueueMany: null } } },
    "Expected `store.batch.enqueueMany` to be a function, got null. Fix: leave it out",
  ],
  [
    "a store whose splitsMany is a string",
    { store: { ...plainStore, batch: { acquireMany: body, releaseMany: body, splitsMany: "no" } } },
    "Expected `store.batch.splitsMany` to be true or false, got 'no'",
  ],
  [
    "a store whose confirmsReplicas is a string",
    { store: { ...plainStore, confirmsReplicas: "no" } },
    "Expected `store.confirmsReplicas` to be true or false, got 'no'",
  ],
  [
    "a store whose close is not a function",
    { store: { ...plainStore, close: true } },
    "Expected `store.close` to be a function, got true",
  ],
  ["a store of another version", { store: { take: body } }, "`store`", "memoryStore(), got { take }"],
  ["a store that cannot be formatted", { store: unshowable }, "`store`", UNSHOWABLE],
  ["a null clock", { store, clock: null }, "`clock`", "function `now`", "got null"],
  ["a clock without now()", { store, clock: {} }, "`clock`", "function `now`", "got {}"],
  [
    "a clock whose time since boot is not a function",
    { store, clock: { ...systemClock, sinceBoot: 7 } },
    "Expected `clock.sinceBoot` to be a function, got 7",
  ],
  [
    "a clock whose afterIo is not a function",
    { store, clock: { ...systemClock, afterIo: "soon" } },
    "Expected `clock.afterIo` to be a function, got 'soon'",
  ],
  [
    "a logger whose debug is a string",
    { store, logger: { warn: body, debug: "x" } },
    "`logger.debug`",
    "'x'",
  ],
  ["a logger that cannot be formatted", { store, logger: unshowable }, WARN, "an object that throws"],
  ["a string as woven", { store, woven: "false" }, "`woven`", "true or false", "got 'false'"],
  ["null as woven", { store, woven: null }, "`woven`", "true or false", "got null"],
  ["a list of defaults", { store, defaults: [] }, "Expected `defaults` to be an object", "got []"],
  ["a map of defaults", { store, defaults: new Map() }, "Expected `defaults` to be an object", "got Map(0)"],
] as const) {
  refuses(`configure() with ${what}`, () => configure(configuration, "woven"), LockOptionError, ...words);
}
refuses("configure() with a list", () => configure([], "woven"), LockOptionError, NEEDS, "got []");

for (const [what, options, ...words] of [
  ["null", null, "memoryStore({ clock })", "got null"],
  ["a string", "x", "memoryStore({ clock })", "got 'x'"],
  ["a list", [], "memoryStore({ clock })", "got []"],
  ["an unknown option", { ttl: 1 }, "memoryStore({ clock })", "got { ttl }"],
  ["a null clock", { clock: null }, "`clock`", "got null"],
  ["a clock without now()", { clock: {} }, "`clock`", "function `now`", "got {}"],
] as const) {
  refuses(`memoryStore() with ${what}`, () => memoryStore(options), LockOptionError, ...words);
}
for (const given of [undefined, null, "redis://localhost", {}, { call: body }, body]) {
  refuses(`redisStore() of ${titled(given)}`, () => redisStore(given), LockOptionError, CLIENT_OR_URL);
}

// ---- options --------------------------------------------------------------------------------------------

/** The calls that take the lock options, and the options that each does not take. */
const ENTRY_POINTS: readonly { name: string; call: Anything; not?: readonly string[] }[] = [
  {
    name: "configure()'s defaults",
    call: (defaults) => configure({ redis: client, defaults }, "woven"),
    not: ["onFailure", "reentrant"],
  },
  { name: "withLock()", call: (options) => withLock("k", options, body) },
  { name: "obtain()", call: (options) => obtain("k", options) },
  {
    name: "a woven call",
    call: (options) => open({ site: "f", businessFlag: "f", ...(options as object) }, "k"),
  },
];

const COUNT = "to be a whole number from 0 to 1000000";
const YES_OR_NO = "to be true or false";
const [AT_LEAST, AT_MOST] = [`${DURATION} of at least 100 ms`, `${DURATION} of at most 24 hours`];

const BAD_VALUES: readonly [option: string, value: unknown, expected: string][] = [
  ["lockTime", "0s", AT_LEAST],
  ["lockTime", "0ms", AT_LEAST],
  ["lockTime", "99ms", AT_LEAST],
  ["lockTime", "25h", AT_MOST],
  ["lockTime", `${2 ** 53}ms`, AT_MOST],
  ["lockTime", `${"9".repeat(400)}s`, AT_MOST],
  ["lockTime", "-1s", DURATION],
  ["lockTime", "30", DURATION],
  ["lockTime", "", DURATION],
  ["lockTime", "30 s", DURATION],
  ["lockTime", "30sec", DURATION],
  ["lockTime", "1e3s", DURATION],
  ["lockTime", "2^53", DURATION],
  ["lockTime", "Infinitys", DURATION],
  ["lockTime", "٣٠s", DURATION],
  ["lockTime", 30, DURATION],
  ["lockTime", 0, DURATION],
  ["lockTime", -1, DURATION],
  ["lockTime", NaN, DURATION],
  ["lockTime", Infinity, DURATION],
  ["lockTime", 2 ** 53, DURATION],
  ["lockTime", 30n, DURATION],
  ["lockTime", null, DURATION],
  ["lockTime", true, DURATION],
  ["lockTime", {}, DURATION],
  ["lockTime", ["30s"], DURATION],
  ["lockTime", new Date(0), DURATION],
  ["lockTime", Symbol("30s"), DURATION],
  ["lockTime", body, DURATION],
  ["lockTime", Object("30s"), DURATION],
  ["lockTime", { toString: () => "30s" }, DURATION],
  ["lockTime", { toString: forbid, valueOf: forbid }, DURATION],
  ["lockTime", hostile, DURATION],
  ["lockTime", revocable.proxy, DURATION],
  ["waitTime", 5_000, DURATION],
  ["waitTime", "-1ms", DURATION],
  ["waitTime", "25h", AT_MOST],
  ["waitTime", NaN, DURATION],
  ["waitTime", null, DURATION],
  ["retryTimes", -1, COUNT],
  ["retryTimes", 1.5, COUNT],
  ["retryTimes", NaN, COUNT],
  ["retryTimes", Infinity, COUNT],
  ["retryTimes", 2 ** 53, COUNT],
  ["retryTimes", 1_000_001, COUNT],
  ["retryTimes", "3", COUNT],
  ["retryTimes", 3n, COUNT],
  ["retryTimes", null, COUNT],
  ["retryTimes", true, COUNT],
  ["retryTimes", [3], COUNT],
  ["retryTimes", Object(3), COUNT],
  ["retryTimes", { valueOf: () => 3 }, COUNT],
  ["onFailure", "ignore", 'to be "throw" or "skip"'],
  ["onFailure", "Skip", 'to be "throw" or "skip"'],
  ["onFailure", Error, 'to be "throw" or "skip"'],
  ["onFailure", null, 'to be "throw" or "skip"'],
  ["onLost", "skip", 'to be "throw" or "warn"'],
  ["onLost", "", 'to be "throw" or "warn"'],
  ["onLost", false, 'to be "throw" or "warn"'],
  ["watchdog", 1, YES_OR_NO],
  ["watchdog", "true", YES_OR_NO],
  ["autoUnlock", "false", 'to be true, false, or "onError"'],
  ["autoUnlock", "onerror", 'to be true, false, or "onError"'],
  ["autoUnlock", 0, 'to be true, false, or "onError"'],
  ["reentrant", "yes", YES_OR_NO],
  ["reentrant", null, YES_OR_NO],
  ["fencing", {}, YES_OR_NO],
  ["fencing", NaN, YES_OR_NO],
];

const NO_OPTIONS = [
  "locktime",
  "lock_time",
  "lockTime ",
  "ttl",
  "retries",
  "timeout",
  "watchDog",
  "onfailure",
  "",
  "0",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
];

for (const { name, call, not = [] } of ENTRY_POINTS) {
  if (name === "withLock()") opened();
  for (const [option, value, expected] of BAD_VALUES) {
    if (not.includes(option)) continue;
    const words = [`Expected \`${option}\` ${expected}, got ${formatValue(value)}`];
    const what = `${name}: ${option} ${titled(value)}`;
    refuses(what, () => call({ [option]: value }), LockOptionError, ...words);
  }
  for (const option of NO_OPTIONS) {
    const words = [`There is no option \`${option}\`. The options are `, "lockTime, retryTimes, waitTime"];
    refuses(`${name}: the option \`${option}\``, () => call(own(option, "1s")), LockOptionError, ...words);
  }
}

/** Configures the library with the client whose bytes are counted, for all tests after this one. */
function opened(): void {
  test.serial("configure() sends nothing over a client that is not connected yet", (t) => {
    configure({ redis: client, logger: { warn: (line: string) => t.log(line) } }, "woven");
    t.is(client.status, "wait");
  });
  const call = (): unknown => configure({ redis: client }, "woven");
  refuses(
    "a second configure()",
    call,
    LockMisconfiguredError,
    "configure() was already called",
    "shutdown()",
  );
}

for (const options of [null, "30s", 30, true, Symbol("s"), body]) {
  const words = [
    `Expected lock options to be an object such as { lockTime: "30s" }, got ${formatValue(options)}`,
  ];
  refuses(
    `withLock() with the options ${inspect(options)}`,
    () => withLock("k", options, body),
    LockOptionError,
    ...words,
  );
  refuses(
    `obtain() with the options ${inspect(options)}`,
    () => obtain("k", options),
    LockOptionError,
    ...words,
  );
}
refuses(
  "withLock() with the options undefined",
  () => withLock("k", undefined, body),
  LockOptionError,
  "{ lockTime:",
);
refuses(
  "withLock() with the options ['30s']",
  () => withLock("k", ["30s"], body),
  LockOptionError,
  "lockTime",
);
refuses(
  "obtain() with reentrant",
  () => obtain("k", { reentrant: true }),
  LockOptionError,
  "obtain()",
  "withLock()",
);

for (const signal of [null, "abort", true, 7, {}, { aborted: false }, new AbortController(), body]) {
  const words = ["`signal`", "AbortSignal", `got ${formatValue(signal)}`];
  const name = `the signal ${titled(signal)}`;
  refuses(`withLock() with ${name}`, () => withLock("k", { signal }, body), LockOptionError, ...words);
  refuses(`obtain() with ${name}`, () => obtain("k", { signal }), LockOptionError, ...words);
  refuses(
    `a woven call with ${name}`,
    () => open({ site: "f", businessFlag: "f", signal }),
    LockOptionError,
    ...words,
  );
}

for (const options of [[], new Map([["lockTime", "1s"]]), new Date(0), Promise.resolve({}), new Error("x")]) {
  const words = ["Expected lock options to be an object", "got "];
  const name = `the options ${Object.prototype.toString.call(options)}`;
  refuses(`withLock() with ${name}`, () => withLock("k", options, body), LockOptionError, ...words);
  refuses(`obtain() with ${name}`, () => obtain("k", options), LockOptionError, ...words);
}
for (const { name, call } of ENTRY_POINTS.slice(1)) {
  const give = (): unknown => call({ lockTime: unshowable });
  refuses(`${name}: a lockTime that cannot be formatted`, give, LockOptionError, "`lockTime`", UNSHOWABLE);
}
for (const site of [
  undefined,
  null,
  "payOrder",
  [],
  { site: 7, businessFlag: "f" },
  { site: Symbol("s"), businessFlag: "f" },
]) {
  const words = ["Expected open() to be given { site, businessFlag }", `got ${formatValue(site)}`];
  refuses(`a woven call with the site ${inspect(site)}`, () => open(site), LockOptionError, ...words);
}
for (const lock of [undefined, null, {}, "lock"]) {
  for (const [name, call] of Object.entries({
    acquire,
    retryCheck,
    assertHeld,
    release,
    fail,
    runReentrant,
  })) {
    const words = [`Expected ${name}() to be given a lock that open() made`, `got ${formatValue(lock)}`];
    refuses(`${name}() of ${titled(lock)}`, () => call(lock, body), LockOptionError, ...words);
  }
}
for (const given of [null, {}, "lock", 0]) {
  refuses(`currentLock() of ${inspect(given)}`, () => currentLock(given), LockNotWovenError, "@redisLock");
}

// ---- keys -----------------------------------------------------------------------------------------------

const NO_KEYS = [
  undefined,
  null,
  "",
  NaN,
  Infinity,
  -Infinity,
  2 ** 53,
  -(2 ** 53),
  Symbol("order"),
  {},
  { id: 1 },
  new Date(0),
  new Map([["id", 1]]),
  Buffer.from("order"),
  /order/,
  body,
  Order,
  Object("order"),
  Promise.resolve("order"),
  { toString: forbid, [Symbol.toPrimitive]: forbid },
  hostile,
  revocable.proxy,
];

const SITE = { site: "f", businessFlag: "payOrder" };
const EACH = { ...SITE, each: true } as const;
const MANY = Array.from({ length: 257 }, (_, n) => `order${n}`);

for (const [name, keys, ...words] of [
  ["no keys", [], "Expected 1 to 256 keys", "got 0"],
  ["257 keys", MANY, "Expected 1 to 256 keys", "got 257"],
  ["an empty string among its keys", ["a", ""], "non-empty string", "got ''"],
  ["a number among its keys", ["a", 7], "non-empty string", "got 7"],
  ["a list among its keys", ["a", ["b"]], "non-empty string", "got [ 'b' ]"],
] as const) {
  refuses(`withLock() with ${name}`, () => withLock(keys, {}, body), LockKeyError, ...words);
  refuses(`obtain() with ${name}`, () => obtain(keys), LockKeyError, ...words);
}
refuses(
  "a woven call with each=true and no keys",
  () => open(EACH, []),
  LockKeyError,
  "Expected 1 to 256",
  "payOrder",
  "got 0",
);
refuses(
  "a woven call with each=true and 257 keys",
  () => open(EACH, MANY),
  LockKeyError,
  "Expected 1 to 256",
  "got 257",
);
refuses(
  "a woven call with each=true and undefined as a key",
  () => open(EACH, ["a", undefined]),
  LockKeyError,
  "key part 1",
  "got undefined",
);
refuses(
  "a woven call with each=true and a list of lists",
  () => open(EACH, [["a"]]),
  LockKeyError,
  "key part 1",
  "got [ 'a' ]",
);
refuses(
  "a woven call without each=true and with a list",
  () => open(SITE, ["a"]),
  LockKeyError,
  "key part 1",
  "got [ 'a' ]",
);
for (const options of [{ fencing: true }, { autoUnlock: false }, { lockAtLeast: "1s" }]) {
  const [option = ""] = Object.keys(options);
  refuses(
    `withLock() with two keys and ${option}`,
    () => withLock(["a", "b"], options, body),
    LockOptionError,
    "`each=true`",
    option,
  );
  refuses(
    `a woven call with each=true and ${option}`,
    () => open({ ...EACH, ...options }, "a"),
    LockOptionError,
    "`each=true`",
    option,
  );
}
const IDENTITY =
  'Expected key part 1 of "payOrder" to be a non-empty string, a finite number in the safe range';

for (const key of NO_KEYS) {
  const got = `got ${formatValue(key)}`;
  const name = titled(key);
  const whole = `Expected the lock key to be a non-empty string, ${got}`;
  const flag = `Expected \`businessFlag\` to be a non-empty string, ${got}`;
  refuses(`withLock() with ${name}`, () => withLock(key, {}, body), LockKeyError, whole);
  refuses(`obtain() with ${name}`, () => obtain(key), LockKeyError, whole);
  refuses(`lockKey() with ${name} as a part`, () => lockKey("payOrder", key), LockKeyError, IDENTITY, got);
  refuses(`a woven call with ${name} as a part`, () => open(SITE, key), LockKeyError, IDENTITY, got);
  refuses(`lockKey() with ${name} as the flag`, () => lockKey(key, "a"), LockKeyError, flag);
  refuses(
    `a woven call with ${name} as the flag`,
    () => open({ ...SITE, businessFlag: key }),
    LockKeyError,
    flag,
  );
}

for (const [what, text] of [
  ["a high surrogate alone", "a\uD83D"],
  ["a low surrogate alone", "\uDD12a"],
  ["two surrogates in the wrong order", "\uDD12\uD83D"],
] as const) {
  const got = `to be well-formed Unicode, got ${formatValue(text)}`;
  refuses(
    `lockKey() with ${what}`,
    () => lockKey("payOrder", text),
    LockKeyError,
    'key part 1 of "payOrder"',
    got,
  );
  refuses(
    `a woven call with ${what}`,
    () => open(SITE, "a", text),
    LockKeyError,
    'key part 2 of "payOrder"',
    got,
  );
  refuses(`lockKey() with ${what} as the flag`, () => lockKey(text), LockKeyError, "businessFlag", got);
}

refuses(
  "withLock() with a key that cannot be formatted",
  () => withLock(unshowable, {}, body),
  LockKeyError,
  "lock key",
  UNSHOWABLE,
);
refuses(
  "lockKey() with a part that cannot be formatted",
  () => lockKey("f", unshowable),
  LockKeyError,
  "key part 1",
  UNSHOWABLE,
);
refuses(
  "jsonField() without a path",
  () => jsonField({}),
  LockKeyError,
  "jsonField()",
  "user.id",
  "got undefined",
);

const circular: Record<string, unknown> = {};
circular["self"] = circular;

for (const [what, value, path, ...words] of [
  ["text that is not JSON", "{", "id", "Expected JSON, got other text of 1 characters"],
  ["empty text", "", "id", "Expected JSON, got other text of 0 characters"],
  ["a circular object", circular, "id", "Expected JSON, got a value that cannot be written as JSON: {"],
  ["a bigint", { id: 1n }, "id", "Expected JSON, got a value that cannot be written as JSON: { id }"],
  [
    "a toJSON that throws",
    { toJSON: forbid },
    "id",
    "Expected JSON, got a value that cannot be written as JSON: { toJSON }",
  ],
  ["undefined", undefined, "id", "to have a field `id`, but it is a value that JSON cannot express"],
  ["null", null, "id", "to have a field `id`, but it is null"],
  ["a field that is missing", { order: {} }, "order.id", "to have a field `order.id`"],
  ["a field of Object.prototype", {}, "__proto__", "to have a field `__proto__`, but it has no"],
  ["a constructor", {}, "constructor.name", "to have a field `constructor.name`, but it has no"],
  ["the length of a string", '"text"', "length", "to have a field `length`"],
] as const) {
  refuses(`jsonField() of ${what}`, () => jsonField(value, path), LockKeyError, ...words);
}

// ---- bodies and other arguments -------------------------------------------------------------------------

for (const given of [undefined, null, "body", 7, {}, [], Promise.resolve(1), Symbol("body"), hostile]) {
  const words = [
    `Expected \`body\` of withLock(key, body) or withLock(key, options, body) to be a function, got ${formatValue(given)}`,
  ];
  refuses(
    `withLock() with the body ${titled(given)}`,
    () => withLock("k", {}, given),
    LockOptionError,
    ...words,
  );
}
for (const given of [undefined, null, "pay", {}, 7, hostile]) {
  const words = [`Expected assertWoven() to be given a function, got ${formatValue(given)}`];
  refuses(`assertWoven() of ${titled(given)}`, () => assertWoven(given), LockOptionError, ...words);
}
for (const [what, fn, name] of [
  ["a function that is not woven", unwoven, "unwoven"],
  ["a bound function", unwoven.bind(null), "bound unwoven"],
  ["a class", Order, "Order"],
  ["a proxy", new Proxy(unwoven, {}), "unwoven"],
  ["a built-in function", JSON.stringify, "stringify"],
] as const) {
  refuses(`assertWoven() of ${what}`, () => assertWoven(fn), LockNotWovenError, `\`${name}\` was not woven`);
}

refuses("currentLock() outside of a woven body", () => currentLock(), LockNotWovenError, "@redisLock");
refuses("a body with an invalid tag", () => refuse("LW1001 at a.ts"), LockNotWovenError, "LW1001 at a.ts");

for (const patience of [5_000, 0, -1, NaN, Infinity, "", "soon", "5", "-1s", "25h", {}, ["5s"], true]) {
  const words = [`Expected \`patience\` ${DURATION}`, `got ${formatValue(patience)}`];
  refuses(
    `shutdown() with the patience ${inspect(patience)}`,
    () => shutdown({ patience }),
    LockOptionError,
    ...words,
  );
}

for (const options of [null, "5s", 5_000, [], { patiente: "5s" }]) {
  const words = ['Expected shutdown() or shutdown({ patience: "10s" })', `got ${formatValue(options)}`];
  refuses(`shutdown() with ${inspect(options)}`, () => shutdown(options), LockOptionError, ...words);
}
refuses(
  "shutdown() with the patience null",
  () => shutdown({ patience: null }),
  LockOptionError,
  "`patience`",
  "got null",
);

// ---- checks of the byte counter -------------------------------------------------------------------------

test.serial(
  "rejects options that throw when they are read, with that error as the cause, and sends nothing",
  async (t) => {
    const mine = new Error("nobody may look");
    const thrower = {
      get: (): never => {
        throw mine;
      },
      enumerable: true,
    };
    const options = Object.defineProperty({}, "lockTime", thrower);
    const expected = { instanceOf: LockOptionError, message: /`lockTime` cannot be read: nobody may look/ };
    for (const call of [() => withLock("k", options, body), () => obtain("k", options)]) {
      const error = await t.throwsAsync(async () => await call(), expected);
      t.is(error.cause, mine);
    }
    await t.throwsAsync(async () => await withLock("k", hostile, body), { instanceOf: LockOptionError });
    t.is(client.status, "wait");
  },
);

test.serial("none of the rejected calls connected, and the proxy counts a valid call", async (t) => {
  // A client that began to connect earlier would be counted before this one.
  await server.client({ port: wire.port }).ping();
  t.is(wire.connections, 1);
  const before = wire.bytes;
  t.is(await withLock(lockKey("payOrder", "Test001"), {}, body), "ran");
  t.true(wire.connections > 1); // If the first reply takes long, a second connection looks for the reason.
  t.true(wire.bytes - before > "SET LOCK_payOrder_Test001".length);
});

test.serial("shutdown() leaves the caller's client connected", async (t) => {
  await shutdown();
  t.is(client.status, "ready");
});

refuses("withLock() after shutdown()", () => withLock("k", {}, body), LockClosedError, "k: ", "shutdown()");
refuses("obtain() after shutdown()", () => obtain("k"), LockClosedError, "k: ", "shutdown()");

// ---- the proxy that counts ------------------------------------------------------------------------------

/** A proxy between the client and Redis that counts the bytes that the client sends. */
interface Wire {
  readonly port: number;
  /** The number of connections made so far. */
  readonly connections: number;
  readonly bytes: number;
  stop(): Promise<void>;
}

async function startWire(redisPort: number): Promise<Wire> {
  const sockets: Socket[] = [];
  let connections = 0;
  let bytes = 0;
  const proxy = createServer((socket) => {
    connections += 1;
    const redis = connect(redisPort, "127.0.0.1");
    sockets.push(socket, redis);
    for (const end of [socket, redis]) end.on("error", () => {}); // Its "close" follows.
    socket.on("data", (data) => (bytes += data.length));
    socket.pipe(redis).pipe(socket);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    port: (proxy.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    get bytes() {
      return bytes;
    },
    async stop() {
      proxy.close();
      for (const socket of sockets) socket.destroy();
      await once(proxy, "close");
    },
  };
}
