import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { configure, LockClosedError, shutdown, withLock } from "../../runtime";
import { deferred } from "../support/deferred";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// What shutdown() leaves in Redis, and which calls it lets finish.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

const LONG = { lockTime: "10m" } as const;

test.serial("shutdown() releases the locks of calls that were aborted immediately", async (t) => {
  const watcher = server.client();
  const left: string[] = [];
  for (let round = 1; round <= 60; round += 1) {
    configure({ redis: server.url, woven: false });
    await withLock("LOCK_first", {}, () => {}); // Now it is connected.
    const aborter = new AbortController();
    const calls = Array.from({ length: 20 }, (_, nth) =>
      withLock(`LOCK_aborted_${nth}`, { ...LONG, signal: aborter.signal }, () => t.fail()),
    );
    if (round % 2 === 0) await Promise.resolve(); // In every other round their commands are in flight by now.
    aborter.abort(new Error("gone"));
    await Promise.allSettled(calls);
    await shutdown();
    left.push(...(await watcher.keys("*")));
    await watcher.flushall();
  }
  t.deepEqual(left, []);
});

test.serial(
  "a body that acquires a second lock during shutdown() finishes within its patience",
  async (t) => {
    const watcher = server.client();
    configure({ redis: server.url, woven: false });
    const [entered, goOn] = [deferred(), deferred()];
    const call = withLock("LOCK_outer", LONG, async () => {
      entered.resolve();
      await goOn.promise;
      return await withLock("LOCK_inner", LONG, () => "both");
    });
    await entered.promise;
    // Another program holds the inner key for a while, so the body must wait for it.
    await watcher.set("LOCK_inner", "somebody else's");
    const closing = shutdown({ patience: "30s" });
    goOn.resolve();
    await pause(50);
    await watcher.del("LOCK_inner");
    t.is(await call, "both");
    await closing;
    t.is(await watcher.dbsize(), 0);
    await t.throwsAsync(
      withLock("LOCK_late", {}, () => t.fail()),
      { instanceOf: LockClosedError },
    );
  },
);

test.serial("shutdown() releases a lock although its connections break again and again", async (t) => {
  const proxy = await startTcpProxy(server.port);
  t.teardown(() => proxy.stop());
  const url = `redis://127.0.0.1:${proxy.port}`;
  configure({ redis: url, woven: false, logger: { warn: () => {} } });
  const [entered, goOn] = [deferred(), deferred()];
  const call = withLock("LOCK_broken", LONG, async () => {
    entered.resolve();
    await goOn.promise;
  });
  await entered.promise;
  proxy.blackHole();
  let { bytesSent } = proxy;
  const closing = shutdown();
  goOn.resolve();
  for (let broken = 0; broken < 4; broken += 1) {
    await until(() => proxy.bytesSent > bytesSent);
    ({ bytesSent } = proxy);
    proxy.reset();
  }
  proxy.heal();
  await call;
  await closing;
  t.is(await server.client().exists("LOCK_broken"), 0);
});

test.serial("the application's client sends nothing more after shutdown()", async (t) => {
  const proxy = await startTcpProxy(server.port);
  const client = server.client({ port: proxy.port });
  t.teardown(async () => {
    client.disconnect();
    await proxy.stop();
  });
  configure({ redis: client, woven: false, commandTimeout: "200ms", logger: { warn: () => {} } });
  await withLock("LOCK_first", {}, () => {}); // Now it is connected.
  const isCutOff = deferred();
  const bodies = Array.from({ length: 8 }, async (_, nth) => {
    await withLock(`LOCK_cut_off_${nth}`, LONG, async () => {
      await isCutOff.promise;
      await pause(nth * 40); // So that they never pause all at once.
    });
  });
  await withLock("LOCK_last", {}, () => {});
  proxy.blackHole();
  isCutOff.resolve();
  await Promise.all(bodies);
  await shutdown();
  await pause(200); // The last bytes reach the proxy.
  const sent = proxy.bytesSent;
  await pause(2_500); // More than any pause between two tries.
  t.is(proxy.bytesSent, sent);
});
