import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { Redis, type RedisOptions } from "ioredis";
import { redisStore } from "../../runtime/stores/redis/redis";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startRedis, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// A release that nobody confirmed is sent until it is. All lock times here are longer than a test may take: a key that
// is free was given back.

const KEY = "LOCK_unconfirmed";
const LOCK_TIME = { lockTime: "10m" } as const;
/** Another lock time, since otherwise the lock would be handed on inside the process, with no command. */
const NEXT = { lockTime: "9m", retryTimes: 1, waitTime: "25s" } as const;

type ClientOptions = Pick<
  RedisOptions,
  "enableOfflineQueue" | "maxRetriesPerRequest" | "retryStrategy" | "autoResendUnfulfilledCommands"
>;

/** Fails at once what it cannot send. */
const FAIL_FAST: ClientOptions = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  retryStrategy: () => 50,
};

interface Trouble {
  readonly client: ClientOptions;
  /** Begins while the body is in. */
  begin(network: Network): void | Promise<void>;
  /** Ends after the release has failed. */
  end(network: Network): void | Promise<void>;
}

interface Network {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  /** A connection that keeps its rights, and is not cut. */
  readonly admin: Redis;
}

const TROUBLES: Record<string, Trouble> = {
  "a client that fails fast lost its connection": {
    client: FAIL_FAST,
    begin: ({ proxy }) => proxy.cut(),
    end: () => {},
  },
  "half a second of BUSY": {
    client: {},
    begin: ({ admin }) => beBusy(admin),
    async end({ admin }) {
      await pause(500);
      await admin.script("KILL");
    },
  },
  "half a second of READONLY": {
    client: {},
    begin: async ({ admin }) => void (await admin.replicaof("127.0.0.1", 1)),
    async end({ admin }) {
      await pause(500);
      await admin.replicaof("NO", "ONE");
    },
  },
  "two seconds without network": {
    client: { autoResendUnfulfilledCommands: false },
    begin: ({ proxy }) => proxy.blackHole(),
    async end({ proxy }) {
      await pause(2_000);
      proxy.reset(); // What was sent meanwhile never arrives.
    },
  },
};

/** A script runs until it is killed. */
async function beBusy(admin: Redis): Promise<void> {
  await admin.call("CONFIG", "SET", "busy-reply-threshold", "20");
  const runaway = admin.duplicate();
  runaway.on("error", () => {});
  void runaway
    .eval("while true do end", 0)
    .catch(() => {}) // It is killed.
    .finally(() => runaway.disconnect());
  await until(() =>
    admin.ping().then(
      () => false,
      (error: unknown) => String(error).includes("BUSY"),
    ),
  );
}

async function scene(t: ExecutionContext, options: ClientOptions) {
  const server = await startRedis();
  const proxy = await startTcpProxy(server.port);
  const client = new Redis({ host: "127.0.0.1", port: proxy.port, ...options });
  client.on("error", () => {}); // Each command tells its own failure.
  const store = redisStore(client);
  const process = new FleetProcess({ store, commandTimeout: "200ms", logger: { warn: () => {} } });
  t.teardown(async () => {
    await retire(process);
    client.disconnect();
    await proxy.stop();
    await server.stop();
  });
  await until(() => client.status === "ready");
  await process.call(`${KEY}:first`, {}, () => {}); // Redis knows the scripts.
  return { server, proxy, admin: server.client(), process };
}

for (const [name, trouble] of Object.entries(TROUBLES)) {
  test(`${name}: a release that was not confirmed is given back soon after`, async (t) => {
    const { process, ...network } = await scene(t, trouble.client);
    const call = process.call(KEY, LOCK_TIME, async () => {
      await trouble.begin(network);
      return "result";
    });
    t.is(await call, "result");
    await trouble.end(network);
    // Redis may still be busy, and then tells nothing.
    await until(async () => (await network.admin.exists(KEY).catch(() => 1)) === 0);
  });

  test(`${name}: who is next in the process has the lock soon after`, async (t) => {
    const { process, ...network } = await scene(t, trouble.client);
    const [entered, end] = [deferred(), deferred()];
    const call = process.call(KEY, LOCK_TIME, async () => {
      entered.resolve();
      await end.promise;
      await trouble.begin(network);
      return "result";
    });
    await entered.promise;
    const next = process.call(KEY, NEXT, () => "next");
    end.resolve();
    t.is(await call, "result");
    await trouble.end(network);
    t.is(await next, "next");
    await until(async () => (await network.admin.dbsize()) === 0);
  });
}
