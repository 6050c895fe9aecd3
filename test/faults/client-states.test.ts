import test, { type ExecutionContext } from "ava";
import { Redis, type RedisOptions } from "ioredis";
import { LockError, LockOptionError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { URL_LIBRARIES } from "../support/client-libraries";
import { FleetProcess } from "../support/fleet";
import { freePort, startRedis, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// Each state in which a client or its Redis cannot serve locks has its own error with a fix. A permanent state is reported
// immediately, although the wait budget is ten minutes.

const KEY = "LOCK_state";
const ENDLESS = { retryTimes: 1, waitTime: "10m" } as const;
const SHORT = { retryTimes: 2, waitTime: "300ms" } as const;

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(async () => {
  await server.stop();
});

function processOver(t: ExecutionContext, store: WholeStore): FleetProcess {
  const process = new FleetProcess({ store, logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  return process;
}

function refusal(t: ExecutionContext, store: WholeStore): Promise<LockError> {
  return t.throwsAsync<LockError>(
    processOver(t, store).call(KEY, ENDLESS, () => t.fail()),
    { instanceOf: LockError },
  );
}

/** Calls until the error matches, and returns it. On a busy machine, a call may give up before it knows the reason. */
async function errorMatching(
  t: ExecutionContext,
  process: FleetProcess,
  key: string,
  words: RegExp,
): Promise<LockError> {
  for (;;) {
    const error = await t.throwsAsync<LockError>(process.call(key, SHORT, () => t.fail()));
    if (words.test(error.message)) return error;
  }
}

function isMisconfigured(t: ExecutionContext, error: LockError, words: RegExp): void {
  t.is(error.code, "LOCK_MISCONFIGURED", error.message);
  t.regex(error.message, words);
  t.regex(error.message, /\. Fix: /);
}

function clientOf(
  t: ExecutionContext,
  options: Pick<RedisOptions, "port" | "db" | "retryStrategy" | "protocol"> = {},
): Redis {
  const client = new Redis({ host: "127.0.0.1", port: server.port, ...options });
  client.on("error", () => {});
  t.teardown(() => client.disconnect());
  return client;
}

// ---- the connection -------------------------------------------------------------------------------------

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a database that Redis does not have is reported as a misconfiguration`, async (t) => {
    const words = /no database with this number \(.*DB index is out of range\)/;
    isMisconfigured(t, await refusal(t, redisStoreAt(at(`${server.url}/99`))), words);
    isMisconfigured(t, await refusal(t, redisStore(clientOf(t, { db: 99 }))), words);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a wrong password fails the first connection immediately, and later connections retry`, async (t) => {
    const guarded = await startRedis("--requirepass", "one");
    t.teardown(guarded.stop);
    const wrong = redisStoreAt(at(`redis://:two@127.0.0.1:${guarded.port}`));
    isMisconfigured(t, await refusal(t, wrong), /rejected the password.*WRONGPASS/);
    const process = processOver(t, redisStoreAt(at(`redis://:one@127.0.0.1:${guarded.port}`)));
    await process.call(KEY, {}, () => {});
    const admin = guarded.client({ password: "one" });
    await admin.call("CONFIG", "SET", "requirepass", "two");
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const error = await errorMatching(t, process, KEY, /WRONGPASS.*Fix: use the password/);
    t.is(error.code, "LOCK_UNREACHABLE");
    const waiting = process.call(KEY, { retryTimes: 1, waitTime: "20s" }, () => "in");
    await admin.call("CONFIG", "SET", "requirepass", "one");
    t.is(await waiting, "in");
  });
}

// ---- the caller's own client ----------------------------------------------------------------------------

test("a client that was closed by quit() is reported as a misconfiguration", async (t) => {
  const client = clientOf(t);
  const process = processOver(t, redisStore(client));
  await process.call(KEY, {}, () => {});
  await client.quit();
  await until(() => client.status === "end");
  const error = await t.throwsAsync<LockError>(process.call(KEY, ENDLESS, () => t.fail()));
  isMisconfigured(t, error, /client was closed by quit\(\) or disconnect\(\)/);
});

test("a client that stopped reconnecting is reported as a misconfiguration", async (t) => {
  const client = clientOf(t, { port: await freePort(), retryStrategy: () => null });
  await until(() => client.status === "end");
  isMisconfigured(t, await refusal(t, redisStore(client)), /client stopped reconnecting/);
});

test("a client in subscriber mode is reported as a misconfiguration", async (t) => {
  const client = clientOf(t, { protocol: 2 });
  await client.subscribe("news");
  isMisconfigured(
    t,
    await refusal(t, redisStore(client)),
    /in subscriber mode.*Fix: .*client\.duplicate\(\)/,
  );
});

test("a client in monitor mode is reported as a misconfiguration", async (t) => {
  const quiet = await startRedis(); // ioredis cannot handle monitor output that arrives before it expects any.
  t.teardown(quiet.stop);
  const monitor = await quiet.client().monitor();
  t.teardown(() => monitor.disconnect());
  isMisconfigured(t, await refusal(t, redisStore(monitor)), /in monitor mode/);
});

test("ioredis-mock is rejected by name", (t) => {
  // A class like that of the package, reduced to what identifies it.
  class RedisMock {
    readonly options = {};
    call(): void {}
    duplicate(): void {}
    on(): void {}
    off(): void {}
  }
  t.throws(() => redisStore(new RedisMock() as never), {
    instanceOf: LockOptionError,
    message: /ioredis-mock.*memoryStore\(\)/,
  });
});

// ---- a part of the keys ---------------------------------------------------------------------------------

const PART =
  /one node of a Cluster, and has only some of the keys.*Fix: (?:use `new Cluster|pass a client that createCluster\(\) made)/;

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}the first MOVED reports the URL or the client of one Cluster node as a misconfiguration`, async (t) => {
    const proxy = await startTcpProxy(server.port);
    t.teardown(proxy.stop);
    const stores = [
      redisStoreAt(at(`redis://127.0.0.1:${proxy.port}`)),
      redisStore(clientOf(t, { port: proxy.port })),
    ];
    for (const store of stores) {
      const process = processOver(t, store);
      await process.call(`${KEY}_before`, ENDLESS, () => {});
      const key = `${KEY}_${store === stores[0] ? "url" : "client"}`;
      void proxy.strike(1, { answer: "-MOVED 8000 127.0.0.1:7001\r\n" }, key);
      const error = await t.throwsAsync<LockError>(process.call(key, ENDLESS, () => t.fail()));
      isMisconfigured(t, error, PART);
    }
  });
}

// ---- the key --------------------------------------------------------------------------------------------

test("the timeout error says that another program holds the key", async (t) => {
  await server.client().set(`${KEY}_foreign`, "1");
  const process = processOver(t, redisStoreAt(server.url));
  const error = await errorMatching(
    t,
    process,
    `${KEY}_foreign`,
    /a value that Lockweave did not write.*Fix: /,
  );
  t.is(error.code, "LOCK_WAIT_TIME_OUT");
});
