import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import test from "ava";
import { obtain, withLock } from "../../runtime/with-lock";
import { configure, shutdown } from "../../runtime/config/configure";
import type { Configuration } from "../../runtime/config/configuration";
import {
  LockClosedError,
  LockLostError,
  LockMisconfiguredError,
  LockOptionError,
} from "../../runtime/base/errors";
import { memoryStore } from "../../runtime/stores/memory";
import { open } from "../../runtime/woven/woven";
import { batching } from "../support/batching-store";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { NODE } from "../support/node";
import { startRedis, type RedisServer } from "../support/redis-server";
import { connectionRefused, lostOnTheWay, replyLate } from "../support/tampered-store";
import { until } from "../support/until";

// A process has one configuration, so these tests run serially.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

test.afterEach.always(() => shutdown({ patience: "0ms" }));

/** A fleet whose only process is this one, configured with `configure()`. */
function configuredFleet(): Fleet {
  const fleet = new Fleet();
  const logger = { warn: (line: string) => void fleet.warnings.push(line) };
  configure({ store: fleet.store, clock: fleet.clock, logger }, "woven");
  return fleet;
}

test.serial("locks before configure() throw an error that names the line to add", async (t) => {
  const expected = {
    instanceOf: LockMisconfiguredError,
    code: "LOCK_MISCONFIGURED",
    message:
      'No lock store is configured. Fix: call configure({ redis: "redis://localhost:6379" }) or configure({ postgres: "postgres://user@localhost/database" }) from "lockweave" once at startup. In a unit test, call testLocks() from "lockweave/testing"',
  };
  t.throws(() => open({ site: "f", businessFlag: "f" }), expected);
  await t.throwsAsync(
    withLock("k", {}, () => {}),
    expected,
  );
  await t.throwsAsync(obtain("k"), expected);
  await t.notThrowsAsync(shutdown(), "shutdown() without a configuration does nothing");
});

test.serial("a second configure() throws until shutdown() has run", async (t) => {
  configure({ store: memoryStore() }, "woven");
  t.throws(() => configure({ store: memoryStore() }, "woven"), {
    instanceOf: LockMisconfiguredError,
    message: "configure() was already called. Fix: call `await shutdown()` before you configure again",
  });
  await shutdown();
  t.notThrows(() => configure({ store: memoryStore() }, "woven"));
  t.is(await withLock("k", {}, () => "result"), "result");
});

for (const [what, configuration, message] of [
  ["undefined", undefined, /^Expected configure\(\{ redis \}\) or configure\(\{ store \}\), got undefined$/],
  ["null", null, /got null$/],
  ["a URL alone", "redis://localhost", /got 'redis:\/\/localhost'$/],
  [
    "neither redis nor store",
    {},
    /^Expected configure\(\) to be given one of `redis`, `postgres`, and `store`, got none$/,
  ],
  [
    "both redis and store",
    { redis: "redis://localhost", store: memoryStore() },
    /one of `redis`, `postgres`, and `store`, got `redis` and `store`$/,
  ],
  [
    "an unknown option",
    { url: "x" },
    /^configure\(\) has no option `url`. The options are redis, postgres, store, /,
  ],
  [
    "a URL with another scheme",
    { redis: "localhost:6379" },
    /^Expected `redis` to be .*, got "localhost:6379"$/,
  ],
  ["two masters", { redis: ["redis://a", "redis://b"] }, /^Expected at least 3 masters/],
  [
    "an invalid client in a list of masters",
    { redis: ["redis://a", "redis://b", {}] },
    /^Expected `redis` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun/,
  ],
  ["a null redis", { redis: null }, /^Expected `redis` to be .*, got null$/],
  [
    "connection options",
    { redis: { host: "h", password: "hunter2" } },
    /got \[ 'host', 'password' \]\. Fix: create an ioredis client/,
  ],
  [
    "an empty object as the store",
    { store: {} },
    /^Expected `store` to be a store such as memoryStore\(\), got \{\}$/,
  ],
  ["a null store", { store: null }, /^Expected `store` to be .*, got null$/],
  [
    "a logger without warn",
    { store: memoryStore(), logger: {} },
    /^Expected `logger` to have a function `warn`/,
  ],
  ["a null logger", { store: memoryStore(), logger: null }, /^Expected `logger` to have a function `warn`/],
  [
    "a commandTimeout without unit",
    { store: memoryStore(), commandTimeout: 100 },
    /^Expected `commandTimeout`/,
  ],
  [
    "a commandTimeout that is too short",
    { store: memoryStore(), commandTimeout: "9ms" },
    /of at least 10 ms, got '9ms'$/,
  ],
  ["an invalid default", { store: memoryStore(), defaults: { lockTime: 30 } }, /^Expected `lockTime` to be/],
  ["an unknown default", { store: memoryStore(), defaults: { ttl: 30 } }, /^There is no option `ttl`/],
  ["null defaults", { store: memoryStore(), defaults: null }, /^Expected `defaults` to be an object/],
] as const) {
  test.serial(`configure() rejects ${what}, and can be called again`, (t) => {
    const error = t.throws(() => configure(configuration as unknown as Configuration, "woven"), {
      instanceOf: LockOptionError,
      message,
    });
    t.false(error?.message.includes("hunter2"), "the message contains no password");
    t.notThrows(() => configure({ store: memoryStore() }, "woven"));
  });
}

test.serial("a lock uses the defaults for the options that it does not set", async (t) => {
  const fleet = new Fleet();
  configure({ store: fleet.store, clock: fleet.clock, defaults: { lockTime: "7s", fencing: true } }, "woven");
  await withLock("k", {}, () => {});
  await withLock("k", { lockTime: "9s", fencing: false }, () => {});
  const woven = open({ site: "f", businessFlag: "f" });
  t.true(await woven.acquire());
  await woven.release();
  t.like(fleet.store.acquireRequests[0], { lockTimeMs: 7_000, fencing: true });
  t.like(fleet.store.acquireRequests[1], { lockTimeMs: 9_000, fencing: false });
  t.like(fleet.store.acquireRequests[2], { lockTimeMs: 7_000, fencing: true });
});

test.serial("shutdown() does not close a client of the caller", async (t) => {
  const client = server.client();
  configure({ redis: client }, "woven");
  await withLock("own-client", {}, async (lock) => {
    t.is(await client.get("own-client"), lock.requestId);
  });
  await shutdown();
  t.is(await client.ping(), "PONG");
});

test.serial("shutdown() closes the connections that it opened for a URL", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const watcher = lonely.client();
  const connections = async (): Promise<number> =>
    String(await watcher.client("LIST"))
      .trim()
      .split("\n").length;
  await until(async () => (await connections()) === 1);
  configure({ redis: lonely.url }, "woven");
  await withLock("own-url", {}, async () => t.is(await connections(), 2));
  await shutdown();
  await until(async () => (await connections()) === 1);
});

test.serial("shutdown() rejects waiters and later calls if no lock is held", async (t) => {
  const fleet = configuredFleet();
  await fleet.acquireElsewhere("k", 60_000);
  const waiting = Promise.all(
    [1, 2, 3].map(() =>
      t.throwsAsync(
        withLock("k", {}, () => t.fail()),
        {
          instanceOf: LockClosedError,
          code: "LOCK_CLOSED",
          message:
            "k: shutdown() was called, so this process grants no more locks. Fix: stop incoming work before you call shutdown(), or set a longer patience",
        },
      ),
    ),
  );
  await fleet.clock.settle();
  await shutdown(); // No time passes here.
  await waiting;
  await t.throwsAsync(
    withLock("another", {}, () => t.fail()),
    { instanceOf: LockClosedError },
  );
  t.true(fleet.store.closed);
  t.is(fleet.clock.pendingTimers, 0);
  t.is(fleet.store.listeners, 0);
  await fleet.releaseElsewhere("k");
  t.true(await fleet.isForgotten("k"));
});

test.serial(
  "shutdown() grants locks while a body runs, so that the body can acquire a second lock",
  async (t) => {
    const fleet = configuredFleet();
    const mayContinue = deferred();
    const body = withLock("k1", {}, async () => {
      await mayContinue.promise;
      return await withLock("k2", {}, () => "both");
    });
    await fleet.clock.settle();
    const waiting = withLock("k1", {}, () => "next");
    const down = shutdown();
    await fleet.clock.settle();
    mayContinue.resolve();
    t.is(await body, "both");
    t.is(await waiting, "next", "the lock was handed off, so a body was running all the time");
    await down;
    await t.throwsAsync(
      withLock("k3", {}, () => t.fail()),
      { instanceOf: LockClosedError },
    );
    t.deepEqual(fleet.warnings, []);
    t.is(fleet.clock.pendingTimers, 0);
  },
);

test.serial("shutdown() rejects waiters when the last body ends or the patience is over", async (t) => {
  for (const isOutOfPatience of [false, true]) {
    const fleet = configuredFleet();
    await fleet.acquireElsewhere("k", 60_000);
    const end = deferred();
    const body = withLock("other", { onLost: "warn" }, () => end.promise);
    const waiting = t.throwsAsync(
      withLock("k", {}, () => t.fail()),
      { instanceOf: LockClosedError },
    );
    let isRejected = false;
    void waiting.then(() => (isRejected = true));
    await fleet.clock.settle();
    const down = shutdown({ patience: "2s" });
    await fleet.clock.advance(1_999);
    t.false(isRejected);
    if (isOutOfPatience) await fleet.clock.advance(1);
    else end.resolve();
    await Promise.all([waiting, down]);
    end.resolve();
    await body;
  }
});

test.serial("shutdown() waits for releases in flight", async (t) => {
  const fleet = configuredFleet();
  const arrival = deferred();
  fleet.store.onRelease = async (send) => {
    await arrival.promise;
    return await send();
  };
  const body = withLock("k", {}, () => "result");
  await fleet.clock.settle();
  let isDown = false;
  const down = shutdown().then(() => (isDown = true));
  await fleet.clock.advance(900);
  t.false(isDown);
  t.false(fleet.store.closed);
  arrival.resolve();
  t.is(await body, "result");
  await down;
  t.true(await fleet.isForgotten("k"));
  t.is(fleet.clock.pendingTimers, 0);
});

test.serial("shutdown() sends unconfirmed releases once more before it closes the store", async (t) => {
  const fleet = configuredFleet();
  fleet.store.onRelease = connectionRefused;
  t.is(await withLock("k", {}, () => "result"), "result");
  await fleet.clock.advance(2_000);
  fleet.store.onRelease = (send) => send();
  await shutdown(); // No time passes here.
  t.true(fleet.store.closed);
  t.true(await fleet.isForgotten("k"));
  t.is(fleet.clock.pendingTimers, 0);
});

test.serial("shutdown() does not report a lock that was already lost", async (t) => {
  const fleet = configuredFleet();
  const [entered, end] = [deferred(), deferred()];
  let aborts = 0;
  const body = t.throwsAsync(
    withLock("k", { lockTime: "3s" }, async (lock) => {
      lock.signal.addEventListener("abort", () => (aborts += 1));
      entered.resolve();
      await end.promise;
    }),
    { instanceOf: LockLostError, message: /its key disappeared early/ },
  );
  await entered.promise;
  await fleet.endHold("k");
  await fleet.clock.advance(1_000);
  t.is(aborts, 1);
  const { releases } = fleet.store;
  const down = shutdown({ patience: "1s" });
  await fleet.clock.advance(1_000);
  await down;
  t.is(fleet.store.releases, releases, "a lost lock is not released");
  t.is(fleet.warnings.filter((line) => line.includes("lost the lock")).length, 1, fleet.warnings.join("\n"));
  end.resolve();
  await body;
  t.is(aborts, 1);
  t.is(fleet.clock.pendingTimers, 0);
});

test.serial("an immediate abort followed by shutdown() leaves no key", async (t) => {
  const fleet = new Fleet();
  const keys = Array.from({ length: 20 }, (_, n) => `abort-then-shutdown-${n}`);
  for (const pauseBefore of [undefined, "abort", "shutdown"] as const) {
    configure({ store: batching(fleet.store), clock: fleet.clock }, "woven");
    const controller = new AbortController();
    const calls = keys.map((key) => withLock(key, { signal: controller.signal }, () => t.fail()));
    const outcomes = Promise.allSettled(calls);
    if (pauseBefore === "abort") await Promise.resolve();
    controller.abort();
    if (pauseBefore === "shutdown") await Promise.resolve();
    await shutdown(); // No time passes here.
    t.true((await outcomes).every(({ status }) => status === "rejected"));
    for (const key of keys) t.true(await fleet.isForgotten(key), `${key}, ${pauseBefore}`);
    t.is(fleet.clock.pendingTimers, 0);
  }
});

test.serial("shutdown() waits for the bodies that run", async (t) => {
  const fleet = configuredFleet();
  const end = deferred();
  const bodies = ["k1", "k2"].map((key) => withLock(key, {}, async () => await end.promise));
  await fleet.clock.settle();
  let isDown = false;
  const down = shutdown().then(() => (isDown = true));
  await fleet.clock.advance(9_999);
  t.false(isDown);
  t.false(fleet.store.closed);
  end.resolve();
  await Promise.all(bodies);
  await down;
  t.true(fleet.store.closed);
  t.deepEqual(fleet.warnings, []);
  t.is(fleet.clock.pendingTimers, 0);
});

test.serial("a body can enter its reentrant lock again during shutdown()", async (t) => {
  const fleet = configuredFleet();
  const mayContinue = deferred();
  const body = withLock("k", { reentrant: true }, async () => {
    await mayContinue.promise;
    return await withLock("k", { reentrant: true }, () => "inner");
  });
  await fleet.clock.settle();
  const down = shutdown();
  mayContinue.resolve();
  t.is(await body, "inner");
  await down;
});

test.serial(
  "shutdown() releases the locks of running bodies after the patience, and aborts their signals",
  async (t) => {
    const fleet = configuredFleet();
    const end = deferred();
    const aborted = deferred<unknown>();
    const body = t.throwsAsync(
      withLock("k", {}, async (lock) => {
        lock.signal.addEventListener("abort", () => aborted.resolve(lock.signal.reason));
        await end.promise;
      }),
      {
        instanceOf: LockLostError,
        message: /\(shutdown\(\) revoked it, because the body ran longer than `patience` allows\)/,
      },
    );
    await fleet.clock.settle();
    const down = shutdown({ patience: "2s" });
    await fleet.clock.advance(1_999);
    t.false(await fleet.isFree("k"));
    await fleet.clock.advance(1);
    await down;
    t.true(await fleet.isFree("k"));
    t.true((await aborted.promise) instanceof LockLostError);
    t.regex(
      fleet.warnings.join("\n"),
      /^k [0-9a-f]{8} lost the lock: shutdown\(\) revoked it, because the body ran longer/,
    );
    end.resolve();
    await body;
    t.is(fleet.clock.pendingTimers, 0);
  },
);

test.serial("shutdown() leaves a lock with autoUnlock=false to expire after the patience", async (t) => {
  const fleet = configuredFleet();
  const end = deferred();
  const body = withLock("k", { autoUnlock: false, lockTime: "20s" }, () => end.promise);
  const outcome = t.throwsAsync(body, { instanceOf: LockLostError });
  await fleet.clock.settle();
  const down = shutdown({ patience: "0ms" });
  await fleet.clock.advance(0);
  await down;
  t.false(await fleet.isFree("k"));
  end.resolve();
  await outcome;
  t.is(fleet.store.releases, 0);
});

test.serial("a second shutdown() waits for the first one", async (t) => {
  const fleet = configuredFleet();
  const end = deferred();
  const body = withLock("k", {}, () => end.promise);
  await fleet.clock.settle();
  const first = shutdown();
  let isDown = false;
  const second = shutdown().then(() => (isDown = true));
  await fleet.clock.advance(1);
  t.false(isDown);
  end.resolve();
  await Promise.all([body, first, second]);
  t.true(fleet.store.closed);
});

test.serial("shutdown() releases a lock whose grant is in flight before it closes the store", async (t) => {
  const fleet = configuredFleet();
  const arrival = deferred();
  fleet.store.onAcquire = replyLate(arrival.promise);
  let closedAtRelease: boolean | undefined;
  fleet.store.onRelease = async (send) => {
    const reply = await send();
    closedAtRelease = fleet.store.closed;
    return reply;
  };
  const call = t.throwsAsync(
    withLock("k", {}, () => t.fail()),
    { instanceOf: LockClosedError },
  );
  await fleet.clock.settle();
  const down = shutdown();
  arrival.resolve();
  await Promise.all([call, down]);
  t.is(closedAtRelease, false);
  t.true(await fleet.isFree("k"));
});

test.serial("shutdown() ends within two seconds if the store stops replying", async (t) => {
  const fleet = configuredFleet();
  fleet.store.onAcquire = lostOnTheWay;
  fleet.store.onDequeue = lostOnTheWay;
  const call = t.throwsAsync(
    withLock("k", {}, () => t.fail()),
    { instanceOf: LockClosedError },
  );
  await fleet.clock.settle();
  const down = shutdown();
  await fleet.clock.advance(2_000);
  await Promise.all([call, down]);
  t.true(fleet.store.closed);
  t.is(fleet.clock.pendingTimers, 0);
});

test.serial("shutdown() rejects an invalid patience and changes nothing", async (t) => {
  configuredFleet();
  await t.throwsAsync(shutdown({ patience: "soon" as "1s" }), { instanceOf: LockOptionError });
  t.is(await withLock("k", {}, () => "result"), "result");
});

/** Runs a program in a child process. */
async function run(program: string): Promise<{ code: unknown; out: string; err: string }> {
  const runtime = JSON.stringify(resolve("runtime/index"));
  const source = `const { configure, shutdown, withLock, obtain } = require(${runtime});
      const url = ${JSON.stringify(server.url)};
      (async () => { ${program} })();`;
  const [node, ...args] = NODE;
  const child = spawn(node, [...args, "-e", source], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [[code], out, err] = await Promise.all([once(child, "exit"), text(child.stdout), text(child.stderr)]);
  return { code, out: out.trim(), err: err.trim() };
}

test.serial("a process exits by itself after shutdown(), even if it held and waited for locks", async (t) => {
  const { code, out, err } = await run(`
    configure({ redis: url }, "woven");
    await Promise.all([1, 2, 3].map(() => withLock("child", {}, () => {})));
    const held = await obtain("child");
    const waiter = withLock("child", { onFailure: "skip", retryTimes: 1, waitTime: "50ms" }, () => {});
    held.signal;
    await waiter;
    await held.release();
    await shutdown();
    console.log("down");
  `);
  t.is(err, "");
  t.is(out, "down");
  t.is(code, 0);
});

test.serial("a process that holds a lock at shutdown leaves no key in Redis", async (t) => {
  const { err } = await run(`
    configure({ redis: url, logger: { warn() {} } }, "woven");
    const held = await obtain("child-left");
    await shutdown({ patience: "0ms" });
  `);
  t.is(err, "");
  t.is(await server.client().exists("child-left"), 0);
});

test.serial("an unreachable store neither crashes a process nor keeps it alive", async (t) => {
  const { code, out, err } = await run(`
    configure({ redis: "redis://127.0.0.1:1", logger: { warn() {} } }, "woven");
    const error = await obtain("k", { retryTimes: 1, waitTime: "50ms" }).catch((error) => error);
    console.log(error.code);
    await shutdown();
  `);
  t.is(err, "");
  t.is(out, "LOCK_UNREACHABLE");
  t.is(code, 0);
});

test.serial("warnings go to the console if no logger is configured", async (t) => {
  const { out, err } = await run(`
    configure({ redis: url }, "woven");
    const held = await obtain("child-warned");
    await shutdown({ patience: "0ms" });
    console.log("end");
  `);
  t.is(out, "end");
  t.regex(
    err,
    /^lockweave: child-warned [0-9a-f]{8} lost the lock: shutdown\(\) revoked it, because the body ran longer/,
  );
});
