import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import test, { type ExecutionContext } from "ava";
import { Redis } from "ioredis";
import type { Duration } from "../../runtime/base/duration";
import { LockLostError, LockUnreachableError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { queueOf } from "../support/auxiliary-keys";
import { URL_LIBRARIES } from "../support/client-libraries";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { monotonicMs } from "../support/monotonic";
import { startRedis, startRedisAt, type RedisServer } from "../support/redis-server";
import { renewalOf } from "../support/renewal";
import { retire } from "../support/retire";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// Failures and recoveries of Redis while one process holds a lock and another waits for it.

const KEY = "LOCK_recovery";
const PATIENT = { retryTimes: 1, waitTime: "10m" } as const;

function process(t: ExecutionContext, client: Redis, commandTimeout?: Duration): FleetProcess {
  client.on("error", () => {}); // Each command reports its own failure.
  const made = processOver(t, redisStore(client), commandTimeout);
  t.teardown(() => client.disconnect());
  return made;
}

function processOver(
  t: ExecutionContext,
  store: WholeStore,
  commandTimeout: Duration = "200ms",
): FleetProcess {
  const made = new FleetProcess({ store, commandTimeout, logger: { warn: () => {} } });
  t.teardown(() => retire(made));
  return made;
}

/** Starts a process that holds the lock until `end` or until it is lost, and another one that waits in the queue. */
async function holderAndWaiter(t: ExecutionContext, server: RedisServer, lockTime: "15s" | "10m") {
  const options = { host: "127.0.0.1", port: server.port };
  const [entered, end] = [deferred(), deferred()];
  const client = new Redis(options);
  const holder = process(t, client).call(KEY, { lockTime }, async (lock) => {
    lock.signal.addEventListener("abort", () => end.resolve());
    entered.resolve();
    await end.promise;
    return lock.remaining() > 0 ? "kept" : "lost";
  });
  holder.catch(() => {}); // Awaited later.
  await entered.promise;
  const waiter = process(t, new Redis(options)).call(KEY, PATIENT, () => "in");
  waiter.catch(() => {});
  const watcher = server.client();
  await until(async () => (await watcher.exists(queueOf(KEY))) === 1);
  return { holder, client, waiter, watcher, end: () => end.resolve() };
}

test("renewals, the release, and the waiter work after SCRIPT FLUSH", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const { holder, waiter, watcher, end } = await holderAndWaiter(t, server, "15s");
  await watcher.script("FLUSH");
  // Redis no longer knew the script that renews.
  await renewalOf(KEY, watcher);
  await watcher.script("FLUSH");
  end();
  t.is(await holder, "kept");
  t.is(await waiter, "in");
});

test("the holder loses its lock and the waiter enters if Redis restarts without its data", async (t) => {
  const server = await startRedis();
  const { holder, waiter } = await holderAndWaiter(t, server, "15s");
  await server.stop();
  const restarted = await startRedisAt(server.port);
  t.teardown(restarted.stop);
  await t.throwsAsync(holder, { instanceOf: LockLostError, code: "LOCK_LOST" });
  t.is(await waiter, "in");
});

for (const watchdog of [true, false]) {
  for (const whose of ["the application's client", "our own client"]) {
    const kind = watchdog ? "a holder with a watchdog" : "a holder without a watchdog";
    test(`${kind} over ${whose} learns of its loss as soon as Redis is back without its data`, async (t) => {
      const server = await startRedis();
      const isOurs = whose === "our own client";
      // No second command may be in flight when the server ends. The client would send it again, and it would acquire the key.
      const timeout = "10s";
      const one = isOurs
        ? processOver(t, redisStoreAt(server.url), timeout)
        : process(t, new Redis(server.port), timeout);
      const lockTimeMs = 600_000;
      const restarted = deferred<number>();
      const call = one.call(KEY, { lockTime: `${lockTimeMs}ms`, watchdog }, async (lock) => {
        const aborted = once(lock.signal, "abort");
        await server.stop();
        const again = await startRedisAt(server.port);
        t.teardown(again.stop);
        const backAt = monotonicMs();
        await aborted;
        restarted.resolve(monotonicMs() - backAt);
      });
      await t.throwsAsync(call, { instanceOf: LockLostError, message: /its key disappeared early/ });
      const tookMs = await restarted.promise;
      t.log(`aborted ${tookMs.toFixed(0)} ms after Redis was back`);
      t.true(tookMs < lockTimeMs / 3 / 2, "long before a renewal is due");
    });
  }
}

test("a holder whose key was deleted reports the loss even if it hands off the lock", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const watcher = server.client();
  const outcomes = new Set<string>();
  const note = (message: unknown): void => {
    if (message !== null && typeof message === "object" && "outcome" in message) {
      outcomes.add(String(message.outcome));
    }
  };
  subscribe("lockweave:release", note);
  t.teardown(() => unsubscribe("lockweave:release", note));
  // A holder without a reply does not learn of the loss, so the timeout is long.
  const here = process(t, new Redis(server.port), "10s");
  const elsewhere = process(t, new Redis(server.port), "10s");
  await elsewhere.call(`${KEY}:first`, {}, () => {}); // Now it is connected.
  const ends: string[] = [];
  for (let round = 1; round <= 100 && !outcomes.has("handed off"); round += 1) {
    const end = deferred();
    let behind: Promise<unknown> = Promise.resolve();
    const first = here.call(KEY, {}, async () => {
      behind = here.call(KEY, PATIENT, () => {}).catch(() => {}); // The next holder of the lost lock gets an error, too.
      await watcher.del(KEY);
      // The other process enters before the first body ends.
      await new Promise<void>((inside) => {
        void elsewhere.call(KEY, PATIENT, async () => {
          inside();
          await end.promise;
        });
      });
    });
    ends.push(await first.then(() => "resolved", codeOf));
    end.resolve();
    await behind;
    await until(async () => (await watcher.exists(KEY)) === 0);
  }
  t.deepEqual(
    ends,
    ends.map(() => "LOCK_LOST"),
  );
  t.true(outcomes.has("handed off"), "the machine is too slow for a hand-off, so nothing was tested");
});

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

test("the holder keeps the lock and the waiter enters after it if all client connections are killed", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const { holder, waiter, watcher, end } = await holderAndWaiter(t, server, "10m");
  for (const type of ["normal", "pubsub"])
    await watcher.call("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
  end();
  t.is(await holder, "kept");
  t.is(await waiter, "in");
});

test("a call while Redis is LOADING gets the lock afterwards, or an error that says why not", async (t) => {
  const eager = ["--loading-process-events-interval-bytes", "1024", "--enable-debug-command", "yes"];
  const server = await startRedis(...eager);
  t.teardown(server.stop);
  const admin = server.client();
  const patient = process(t, new Redis(server.port));
  const hasty = process(t, new Redis(server.port));
  for (const one of [patient, hasty]) await one.call(KEY, {}, () => {});
  await admin.mset(
    Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [index, "x".repeat(2_000)])),
  );
  await admin.call("CONFIG", "SET", "key-load-delay", "2000"); // Microseconds for each key.
  const reloaded = admin.call("DEBUG", "RELOAD");
  const observer = server.client({ enableReadyCheck: false });
  await until(async () => (await observer.info("persistence")).includes("\nloading:1"));
  const waits = [
    t.throwsAsync(
      hasty.call(KEY, { retryTimes: 1, waitTime: "300ms" }, () => t.fail()),
      { instanceOf: LockUnreachableError, message: /LOADING|no reply from the store/ },
    ),
    patient.call(KEY, PATIENT, () => "in"),
  ];
  t.is((await Promise.all(waits))[1], "in");
  await reloaded;
});

test("a command that is answered with -LOADING is sent again without an error", async (t) => {
  const server = await startRedis();
  const proxy = await startTcpProxy(server.port);
  t.teardown(async () => {
    await proxy.stop();
    await server.stop();
  });
  const loading = { answer: "-LOADING Redis is loading the dataset in memory\r\n" };
  const unlucky = process(t, new Redis(proxy.port));
  await unlucky.call(`${KEY}:first`, {}, () => {});
  const struck = proxy.strike(1, loading, KEY);
  t.is(await unlucky.call(KEY, {}, () => "in"), "in");
  await struck;
});

test("a held lock is renewed and released despite OOM", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const { holder, waiter, watcher, end } = await holderAndWaiter(t, server, "15s");
  await watcher.call("CONFIG", "SET", "maxmemory", "1");
  await renewalOf(KEY, watcher);
  end();
  t.is(await holder, "kept");
  await watcher.call("CONFIG", "SET", "maxmemory", "0");
  t.is(await waiter, "in");
});

test("a held lock is renewed and released despite WRITEPAUSE", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const { holder, client, waiter, watcher, end } = await holderAndWaiter(t, server, "15s");
  await watcher.call("CLIENT", "PAUSE", "600000", "WRITE");
  let renewals = 0;
  const sendCommand = client.sendCommand.bind(client);
  client.sendCommand = (command, ...rest) => {
    if (command.name === "evalsha") renewals += 1;
    return sendCommand(command, ...rest);
  };
  await until(() => renewals >= 2); // The first one is blocked and times out.
  const renewed = renewalOf(KEY, watcher); // It first looks before the pause ends.
  await watcher.call("CLIENT", "UNPAUSE");
  await renewed;
  end();
  t.is(await holder, "kept");
  t.is(await waiter, "in");
});

for (const [name, { begin, end }] of Object.entries({
  READONLY: {
    begin: (admin: Redis) => admin.replicaof("127.0.0.1", 1),
    end: (admin: Redis) => admin.replicaof("NO", "ONE"),
  },
  NOREPLICAS: {
    begin: (admin: Redis) => admin.call("CONFIG", "SET", "min-replicas-to-write", "1"),
    end: (admin: Redis) => admin.call("CONFIG", "SET", "min-replicas-to-write", "0"),
  },
  WRONGTYPE: {
    begin: async (admin: Redis) => await admin.multi().del(KEY).rpush(KEY, "somebody's list").exec(),
    end: (admin: Redis) => admin.del(KEY),
  },
})) {
  test(`a holder that cannot renew its lock because of ${name} learns of the loss`, async (t) => {
    const server = await startRedis();
    t.teardown(server.stop);
    const { holder, watcher } = await holderAndWaiter(t, server, "15s");
    await begin(watcher);
    await t.throwsAsync(holder, { instanceOf: LockLostError, code: "LOCK_LOST" });
    await end(watcher);
    t.is(await process(t, new Redis(server.port)).call(KEY, PATIENT, () => "in"), "in");
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a caller that arrives during a long pause before a reconnect gets the lock within its wait budget`, async (t) => {
    const server = await startRedis();
    t.teardown(server.stop);
    const proxy = await startTcpProxy(server.port);
    t.teardown(() => proxy.stop());
    const store = redisStoreAt(at(`redis://127.0.0.1:${proxy.port}`));
    const caller = processOver(t, store, "1s");
    await caller.call(KEY, {}, () => {});
    // Each connection breaks immediately, and nobody needs one. So the pause grows to more than 1.5 s.
    for (let pauses = 0; pauses < 7; pauses += 1) {
      await until(() => store.state?.() === "up");
      proxy.reset();
      await until(() => store.state?.() === "down");
    }
    t.is(await caller.call(KEY, { retryTimes: 1, waitTime: "1200ms" }, () => "in"), "in");
  });
}
