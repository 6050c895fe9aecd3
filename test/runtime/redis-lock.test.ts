import test from "ava";
import { LockLostError, LockUnreachableError, LockWaitTimeoutError } from "../../runtime/base/errors";
import { memoryStore } from "../../runtime/stores/memory";
import { redisStore } from "../../runtime/stores/redis/redis";
import { queueOf } from "../support/auxiliary-keys";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startRedis, type RedisServer } from "../support/redis-server";
import { TamperedStore } from "../support/tampered-store";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// Locks on a real Redis in real time, for what virtual time cannot show.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

const PATIENT = { retryTimes: 100, waitTime: "5s" } as const;

test("callers in several processes hold the lock one at a time, and leave nothing in Redis", async (t) => {
  const watcher = server.client();
  const stores = Array.from({ length: 4 }, () => redisStore(server.client()));
  const processes = stores.map((store) => new FleetProcess({ store }));
  let inside = 0;
  let balance = 0;
  const calls = processes.flatMap((process) =>
    Array.from({ length: 25 }, () =>
      process.call("LOCK_account_1", PATIENT, async () => {
        inside += 1;
        t.is(inside, 1);
        const before = balance; // Without a lock, this read, wait, and write would lose updates.
        await watcher.ping();
        balance = before + 1;
        inside -= 1;
      }),
    ),
  );
  await Promise.all(calls);
  t.is(balance, 100);
  t.is(await watcher.exists("LOCK_account_1"), 0);
  t.true(processes.every(({ isIdle }) => isIdle));
  t.deepEqual(await watcher.keys("*LOCK_account_1*"), [], "no queue either");
  await Promise.all(stores.map((store) => store.close()));
});

test("a waiter in another process is woken through Redis, hours before its next check", async (t) => {
  const watcher = server.client();
  const [holderStore, waiterStore] = [redisStore(server.client()), redisStore(server.client())];
  const [entered, end] = [deferred(), deferred()];
  const holder = new FleetProcess({ store: holderStore }).call("LOCK_wake", {}, async () => {
    entered.resolve();
    await end.promise;
  });
  await entered.promise;
  const waiter = new FleetProcess({ store: waiterStore }).call(
    "LOCK_wake",
    { retryTimes: 2, waitTime: "10h" },
    () => "in",
  );
  await until(async () => (await watcher.exists(queueOf("LOCK_wake"))) === 1);
  end.resolve();
  await holder;
  t.is(await waiter, "in");
  await Promise.all([holderStore.close(), waiterStore.close()]);
});

test("a call returns the body's result if the connection breaks during the release", async (t) => {
  const watcher = server.client();
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const store = redisStore(server.client({ port: proxy.port }));
  const warnings: string[] = [];
  const process = new FleetProcess({
    store,
    commandTimeout: "30s",
    logger: { warn: (line) => void warnings.push(line) },
  });
  await process.call("LOCK_break", {}, () => {}); // Redis has the script from here on.
  const entered = deferred();
  const call = process.call("LOCK_break", {}, () => {
    entered.resolve();
    proxy.withholdReplies();
    return "result";
  });
  await entered.promise;
  await until(async () => (await watcher.exists("LOCK_break")) === 0);
  proxy.cut();
  t.is(await call, "result");
  t.regex(
    warnings.join("\n"),
    /the store did not confirm the release \(the connection broke during the release/,
  );
  await store.close();
});

test("the signal aborts while the body runs if an operator deletes the key", async (t) => {
  const operator = server.client();
  const store = redisStore(server.client());
  const process = new FleetProcess({ store, logger: { warn: () => {} } });
  const aborted = deferred();
  const call = process.call("LOCK_deleted", { lockTime: "300ms" }, async (lock) => {
    lock.signal.addEventListener("abort", () => aborted.resolve());
    await operator.del("LOCK_deleted");
    await aborted.promise;
  });
  await t.throwsAsync(call, { instanceOf: LockLostError });
  await store.close();
});

test("if Redis stops, the holder's signal aborts, and later calls throw LockUnreachableError", async (t) => {
  const mortal = await startRedis();
  t.teardown(mortal.stop);
  const killer = mortal.client();
  const store = redisStore(mortal.client());
  const process = new FleetProcess({ store, commandTimeout: "100ms", logger: { warn: () => {} } });
  const aborted = deferred();
  const call = process.call("LOCK_mortal", { lockTime: "500ms" }, async (lock) => {
    lock.signal.addEventListener("abort", () => aborted.resolve());
    void killer.shutdown("NOSAVE").catch(() => {}); // SHUTDOWN gets no reply.
    await aborted.promise;
  });
  await t.throwsAsync(call, { instanceOf: LockLostError });
  await t.throwsAsync(
    process.call("LOCK_mortal", { retryTimes: 1, waitTime: "200ms", onFailure: "skip" }, () => t.fail()),
    { instanceOf: LockUnreachableError },
  );
  await store.close();
});

test("a waiter makes no more checks than retryTimes in real time", async (t) => {
  const memory = memoryStore();
  await memory.acquire(
    { key: "LOCK_checks", requestId: "foreigner", lockTimeMs: 600_000, fencing: false },
    1_000,
  );
  const store = new TamperedStore(memory);
  const process = new FleetProcess({ store });
  await t.throwsAsync(
    process.call("LOCK_checks", { retryTimes: 10, waitTime: "7ms" }, () => t.fail()),
    { instanceOf: LockWaitTimeoutError },
  );
  t.true(store.acquireRequests.length <= 12, `${store.acquireRequests.length} requests`);
});
