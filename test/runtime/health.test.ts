import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { configure, shutdown } from "../../runtime/config/configure";
import type { Configuration } from "../../runtime/config/configuration";
import { health } from "../../runtime/diagnostics/health";
import { ready } from "../../runtime/diagnostics/ready";
import { LockClosedError, LockMisconfiguredError, type LockError } from "../../runtime/base/errors";
import { memoryStore } from "../../runtime/stores/memory";
import type { Store } from "../../runtime/stores/port";
import { quorumStore } from "../../runtime/stores/quorum/quorum-store";
import { obtain, withLock } from "../../runtime/with-lock";
import { SMALLEST_ACCESS } from "../stores/access";
import { MinimalStore } from "../stores/minimal-store";
import { deferred } from "../support/deferred";
import { Masters } from "../support/masters";
import { freePort, startRedis, startRedisAt, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";
import { VirtualClock } from "../support/virtual-clock";

// `health()` and `ready()`. A process has one configuration, so these tests run serially.

let server: RedisServer;
let admin: Redis;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
});
test.afterEach.always(() => shutdown({ patience: "0ms" }));
test.after.always(() => server.stop());

function configureHere(configuration: Configuration): void {
  configure({ logger: { warn() {} }, ...configuration, woven: false });
}

/** Configures a Redis user with this access, over a client that the test made. */
async function configureUser(t: ExecutionContext, access: string, port = server.port): Promise<void> {
  const of = server.client({ port });
  await of.call("ACL", "SETUSER", "app", "reset", "on", "nopass", ...access.split(" "));
  const client = server.client({ port, username: "app", password: "any" });
  t.teardown(() => {
    of.disconnect();
    client.disconnect();
  });
  configureHere({ redis: client });
}

async function refusal(t: ExecutionContext, code: string, options = {}): Promise<string> {
  const error = await t.throwsAsync<LockError>(ready(options), { code });
  return error?.message ?? "";
}

test.serial(
  "ready() resolves for a user with only the documented permissions, and leaves no key behind",
  async (t) => {
    await configureUser(t, SMALLEST_ACCESS);
    await ready();
    t.is(await admin.dbsize(), 0);
    t.like(health(), { status: "up", stores: { default: { status: "up", held: 0, waiting: 0, lost: 0 } } });
  },
);

for (const rule of SMALLEST_ACCESS.split(" ").filter((word) => word !== "+info")) {
  test.serial(`ready() rejects for a user without ${rule}`, async (t) => {
    await configureUser(t, SMALLEST_ACCESS.replace(rule, "").trim());
    const message = await refusal(t, "LOCK_MISCONFIGURED");
    t.regex(message, /^ready\(\): the store `default` cannot lock: .*permission.* Fix: /);
    t.is(await admin.dbsize(), 0);
  });
}

test.serial("ready() resolves once a missing permission is granted", async (t) => {
  await configureUser(t, SMALLEST_ACCESS.replace("+publish", ""));
  await refusal(t, "LOCK_MISCONFIGURED");
  await admin.call("ACL", "SETUSER", "app", "+publish");
  await ready();
  t.is(await admin.dbsize(), 0);
});

test.serial("two ready() calls at once both reject without a permission", async (t) => {
  await configureUser(t, SMALLEST_ACCESS.replace("+publish", ""));
  await Promise.all([refusal(t, "LOCK_MISCONFIGURED"), refusal(t, "LOCK_MISCONFIGURED")]);
  t.is(await admin.dbsize(), 0);
});

test.serial("ready() tries a key that the Redis user may access", async (t) => {
  await configureUser(t, SMALLEST_ACCESS.replace("~LOCK_*", "~orders:*"));
  await refusal(t, "LOCK_MISCONFIGURED");
  await ready({ key: "orders:ready" });
  t.is(await admin.dbsize(), 0);
});

test.serial("ready() waits for a server that starts later, and health() follows it", async (t) => {
  const port = await freePort();
  configureHere({ redis: `redis://127.0.0.1:${port}`, commandTimeout: "100ms" });
  const unreachable = await refusal(t, "LOCK_UNREACHABLE", { timeout: "0ms" });
  t.regex(unreachable, /^ready\(\): the store `default` accepted no lock within 0 ms: /);
  t.like(health(), { status: "starting", stores: { default: { sinceReplyMs: undefined } } });
  const waiting = ready({ timeout: "1m" });
  const first = await startRedisAt(port);
  await waiting;
  t.is(health().status, "up");
  t.true((health().stores["default"]?.sinceReplyMs ?? NaN) >= 0);
  await first.stop();
  await until(() => health().status === "down");
  const second = await startRedisAt(port);
  t.teardown(() => second.stop());
  await ready({ timeout: "1m" });
  t.is(health().status, "up");
});

test.serial(
  "health() of an idle process learns that the server hangs, and that it answers again",
  async (t) => {
    configureHere({ redis: server.url, commandTimeout: "100ms" });
    await ready({ timeout: "1m" });
    process.kill(server.pid, "SIGSTOP");
    await until(() => health().status === "down");
    process.kill(server.pid, "SIGCONT");
    await until(() => health().status === "up");
    t.true((health().stores["default"]?.sinceReplyMs ?? NaN) >= 0);
  },
);

test.serial("ready() waits no longer than its timeout for a server that hangs", async (t) => {
  configureHere({ redis: server.url, commandTimeout: "1m" });
  await ready();
  process.kill(server.pid, "SIGSTOP");
  const refused = refusal(t, "LOCK_UNREACHABLE", { timeout: "0ms" });
  await refused.finally(() => process.kill(server.pid, "SIGCONT"));
  await ready();
  t.is(await admin.dbsize(), 0);
});

test.serial("health() counts locks that are held, waited for, and lost, by store", async (t) => {
  configureHere({ store: memoryStore(), stores: { other: memoryStore() } });
  const held = await obtain(["health-a", "health-b"]);
  const elsewhere = await obtain("health-a", { store: "other" });
  const end = deferred();
  const waiter = withLock("health-a", { waitTime: "1m" }, () => end.promise);
  await until(() => health().stores["default"]?.waiting === 1);
  t.like(health().stores, { default: { held: 2, lost: 0 }, other: { held: 1, waiting: 0 } });
  await held.release();
  await until(() => health().stores["default"]?.waiting === 0);
  t.is(health().stores["default"]?.held, 1);
  end.resolve();
  await waiter;
  await shutdown({ patience: "0s" }); // It revokes the other lock.
  t.true(elsewhere.signal.aborted);
  t.like(health(), { status: "down", stores: { default: { lost: 0 }, other: { status: "down", lost: 1 } } });
});

test.serial("health() counts a lock whose loss only the release reveals", async (t) => {
  const store = memoryStore();
  configureHere({ store });
  const call = withLock("health-lost", async ({ key, requestId }) => {
    await store.release({ key, requestId }, 1_000);
  });
  await t.throwsAsync(call, { code: "LOCK_LOST" });
  t.is(health().stores["default"]?.lost, 1);
});

test.serial("while shutdown() waits for bodies, health() is down and ready() rejects", async (t) => {
  configureHere({ store: memoryStore() });
  const end = deferred();
  const call = withLock("health-drain", () => end.promise);
  await until(() => health().stores["default"]?.held === 1);
  const down = shutdown({ patience: "1m" });
  t.like(health(), { status: "down", stores: { default: { held: 1 } } });
  await t.throwsAsync(ready(), { instanceOf: LockClosedError });
  end.resolve();
  await Promise.all([call, down]);
});

test.serial("shutdown() closes a store only after ready() has released its lock", async (t) => {
  const calls: string[] = [];
  const own = new MinimalStore();
  const store: Store = {
    acquire: (request) => own.acquire(request),
    renew(requests) {
      calls.push("renew");
      return own.renew(requests);
    },
    release(request) {
      calls.push("release");
      return own.release(request);
    },
    peek: (keys) => own.peek(keys),
    close: async () => void calls.push("close"),
  };
  configureHere({ store });
  const call = ready();
  await shutdown({ patience: "0s" });
  await call;
  t.deepEqual(calls, ["release", "renew", "release", "close"]);
});

test.serial("ready() stops retrying and leaves no timer when another store is misconfigured", async (t) => {
  const clock = new VirtualClock();
  let trials = 0;
  const unreachable: Store = Object.assign(new MinimalStore(), {
    release: async () => {
      trials += 1;
      throw new Error("no route");
    },
  });
  const answer = deferred();
  const denied: Store = Object.assign(new MinimalStore(), {
    release: async () => {
      await answer.promise;
      throw new LockMisconfiguredError("no permission");
    },
  });
  configureHere({ store: unreachable, stores: { denied }, clock });
  const refused = refusal(t, "LOCK_MISCONFIGURED", { timeout: "1m" });
  await until(() => trials === 1);
  answer.resolve();
  await refused;
  t.is(clock.pendingTimers, 0);
  await clock.advance(60_000);
  t.is(trials, 1);
});

test.serial("ready() and health() report every configured store by its name", async (t) => {
  const failing: Store = Object.assign(new MinimalStore(), {
    release: () => Promise.reject(new Error("no release today")),
  });
  configureHere({ store: new MinimalStore(), stores: { failing }, commandTimeout: "100ms" });
  t.is(health().status, "starting");
  t.regex(
    await refusal(t, "LOCK_UNREACHABLE", { timeout: "0ms" }),
    /the store `failing` accepted no lock .*: no release today$/,
  );
  t.like(health(), { status: "down", stores: { default: { status: "up" }, failing: { status: "down" } } });
});

test.serial("a custom store can report whether it is connected, and what else it needs", async (t) => {
  let isUp = false;
  const store: Store = Object.assign(new MinimalStore(), {
    state: () => (isUp ? "up" : "starting"),
    ready: async () => {
      if (!isUp) throw new Error("it still reads its data");
    },
  });
  configureHere({ store });
  t.regex(await refusal(t, "LOCK_UNREACHABLE", { timeout: "0ms" }), /it still reads its data$/);
  t.is(health().status, "starting");
  isUp = true;
  await ready();
  t.is(health().status, "up");
});

test.serial("ready() of a quorum needs a majority of masters that accept locks", async (t) => {
  const masters = await Masters.start(3);
  t.teardown(() => masters.stop());
  const clients = await Promise.all(
    [0, 1, 2].map(async (n) => {
      const access = n === 0 ? SMALLEST_ACCESS.replace("&lockweave:1:*", "") : SMALLEST_ACCESS;
      await masters
        .server(n)
        .client()
        .call("ACL", "SETUSER", "app", "on", "nopass", ...access.trim().split(/ +/));
      return masters.server(n).client({ username: "app", password: "any" });
    }),
  );
  // A master that has just started has no vote for this time.
  configureHere({ store: quorumStore(clients, { longestLockTime: "1s" }), defaults: { lockTime: "1s" } });
  await ready({ timeout: "1m" });
  t.is(health().status, "up");
  await masters.server(1).client().call("ACL", "SETUSER", "app", "-publish");
  await refusal(t, "LOCK_MISCONFIGURED", { timeout: "1m" });
  await masters.server(1).client().call("ACL", "SETUSER", "app", "+publish");
  await ready({ timeout: "1m" });
  // The third master may get the release of the trial lock a little later than the majority.
  for (const n of [0, 1, 2]) await until(async () => (await masters.server(n).client().dbsize()) === 0);
  await masters.kill(0);
  await ready({ timeout: "1m" });
  t.is(health().status, "up");
  await masters.kill(1);
  await until(() => health().status === "down");
});

test.serial("ready() rejects after shutdown(), and for invalid options", async (t) => {
  configureHere({ store: memoryStore() });
  await t.throwsAsync(ready({ timeout: "ten" as "10s" }), { code: "LOCK_BAD_OPTION" });
  await t.throwsAsync(ready({ patience: "1s" } as object), { code: "LOCK_BAD_OPTION" });
  await ready();
  await shutdown();
  await t.throwsAsync(ready(), { instanceOf: LockClosedError });
});
