import test, { type ExecutionContext } from "ava";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { IOREDIS, NODE_REDIS_3, NODE_REDIS_POOL, URL_LIBRARIES } from "../support/client-libraries";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startRedis, type RedisServer } from "../support/redis-server";
import { renewalOf } from "../support/renewal";
import { retire } from "../support/retire";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// After a failover in place, the address leads to the new master, and old connections lead to a replica.

const PATIENT = { retryTimes: 1, waitTime: "20s" } as const;

async function serverAndProxy(t: ExecutionContext): Promise<[RedisServer, TcpProxy]> {
  const server = await startRedis();
  const proxy = await startTcpProxy(server.port);
  t.teardown(async () => {
    await proxy.stop();
    await server.stop();
  });
  return [server, proxy];
}

function processOver(
  t: ExecutionContext,
  store: ReturnType<typeof redisStore>,
): [FleetProcess, readonly string[]] {
  const warnings: string[] = [];
  const process = new FleetProcess({ store, logger: { warn: (line) => void warnings.push(line) } });
  t.teardown(() => retire(process));
  return [process, warnings];
}

/** Ways to open a store with a connection of its own to this port. */
const OWN_CONNECTIONS: Record<string, (server: RedisServer, port: number) => Promise<WholeStore>> = {
  ...Object.fromEntries(
    URL_LIBRARIES.map(({ title, at }) => [
      `${title}a store by URL`,
      async (_server: RedisServer, port: number) => redisStoreAt(at(`redis://127.0.0.1:${port}`)),
    ]),
  ),
  "a store over a pool of node-redis": async (server, port) =>
    redisStore(await NODE_REDIS_POOL.client(server, { port })),
};

for (const [store, open] of Object.entries(OWN_CONNECTIONS)) {
  test(`${store} reconnects after READONLY, keeps its locks, and acquires new ones`, async (t) => {
    const [server, proxy] = await serverAndProxy(t);
    const [process] = processOver(t, await open(server, proxy.port));
    const [entered, end] = [deferred(), deferred()];
    const held = process.call("LOCK_held", { lockTime: "15s" }, async ({ signal }) => {
      entered.resolve();
      await end.promise;
      return signal.aborted ? "lost" : "kept";
    });
    await entered.promise;
    proxy.demote();
    t.is(await process.call("LOCK_other", PATIENT, () => "in"), "in");
    end.resolve();
    t.is(await held, "kept");
  });

  test(`${store} reconnects if only a renewal gets READONLY`, async (t) => {
    const [server, proxy] = await serverAndProxy(t);
    const [process] = processOver(t, await open(server, proxy.port));
    const watcher = server.client();
    const state = await process.call("LOCK_held", { lockTime: "15s" }, async ({ signal }) => {
      const connections = proxy.connectionsMade;
      proxy.demote();
      await until(() => proxy.connectionsMade > connections);
      await renewalOf("LOCK_held", watcher);
      return signal.aborted ? "lost" : "kept";
    });
    t.is(state, "kept");
  });

  test(`${store} reports a misconfiguration if Redis is still read-only after three new connections`, async (t) => {
    const [server, proxy] = await serverAndProxy(t);
    const [process] = processOver(t, await open(server, proxy.port));
    await process.call("LOCK_first", PATIENT, () => {});
    const connections = proxy.connectionsMade;
    await server.client().replicaof("127.0.0.1", 1);
    await t.throwsAsync(
      process.call("LOCK_next", PATIENT, () => t.fail()),
      {
        instanceOf: LockMisconfiguredError,
        message: /read-only replica, and new connections .*READONLY.*Fix: use the address of its master/,
      },
    );
    t.true(proxy.connectionsMade >= connections + 3);
    await server.client().replicaof("NO", "ONE");
    t.is(await process.call("LOCK_next", PATIENT, () => "in"), "in");
  });
}

for (const [library, words] of [
  [IOREDIS, /Fix: .*reconnectOnError/],
  [NODE_REDIS_3, /Fix: give Lockweave a client that createSentinel\(\)/],
] as const) {
  test(`${library.title}READONLY on the caller's own client logs one warning with a fix`, async (t) => {
    const [server, proxy] = await serverAndProxy(t);
    const [process, warnings] = processOver(
      t,
      redisStore(await library.client(server, { port: proxy.port })),
    );
    await process.call("LOCK_first", PATIENT, () => {});
    proxy.demote();
    // On a busy machine, Redis may not answer in such a short time.
    await until(async () => {
      const refused = process.call("LOCK_next", { retryTimes: 1, waitTime: "300ms" }, () => t.fail());
      const error = await t.throwsAsync(refused, { code: "LOCK_UNREACHABLE" });
      return /read-only replica \(.*READONLY.*\)\. Fix: use the address/.test(error?.message ?? "");
    });
    t.is(warnings.filter((line) => words.test(line)).length, 1, warnings.join("\n"));
  });
}
