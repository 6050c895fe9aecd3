import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { configure, LockClosedError, shutdown, withLock } from "../../runtime";
import { deferred } from "../support/deferred";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";

// What shutdown() leaves in Redis, and whom it lets go on.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

const LONG = { lockTime: "10m" } as const;

test.serial("what was asked for and aborted at once is given back by shutdown()", async (t) => {
  const watcher = server.client();
  const left: string[] = [];
  for (let round = 1; round <= 60; round += 1) {
    configure({ redis: server.url, woven: false });
    await withLock("LOCK_first", {}, () => {}); // It is connected.
    const aborter = new AbortController();
    const calls = Array.from({ length: 20 }, (_, nth) =>
      withLock(`LOCK_aborted_${nth}`, { ...LONG, signal: aborter.signal }, () => t.fail()),
    );
    if (round % 2 === 0) await Promise.resolve(); // Half of the time they are on their way by then.
    aborter.abort(new Error("gone"));
    await Promise.allSettled(calls);
    await shutdown();
    left.push(...(await watcher.keys("*")));
    await watcher.flushall();
  }
  t.deepEqual(left, []);
});

test.serial(
  "a body that takes a second lock half-way comes to its end within the patience of shutdown()",
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
    // Somebody else has it for a while: the body has to wait for it, too.
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

test.serial("after shutdown() nothing is sent again over the application's client", async (t) => {
  const proxy = await startTcpProxy(server.port);
  const client = server.client({ port: proxy.port });
  t.teardown(async () => {
    client.disconnect();
    await proxy.stop();
  });
  configure({ redis: client, woven: false, commandTimeout: "200ms", logger: { warn: () => {} } });
  await withLock("LOCK_first", {}, () => {}); // It is connected.
  const isCutOff = deferred();
  const bodies = Array.from({ length: 8 }, async (_, nth) => {
    await withLock(`LOCK_cut_off_${nth}`, LONG, async () => {
      await isCutOff.promise;
      await pause(nth * 40); // So that never all of them pause at once.
    });
  });
  await withLock("LOCK_last", {}, () => {});
  proxy.blackHole();
  isCutOff.resolve();
  await Promise.all(bodies);
  await shutdown();
  await pause(200); // What was sent last comes to the proxy.
  const sent = proxy.bytesSent;
  await pause(2_500); // More than any pause between two tries.
  t.is(proxy.bytesSent, sent);
});
