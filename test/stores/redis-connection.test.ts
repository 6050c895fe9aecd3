import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { join } from "node:path";
import { inspect, promisify } from "node:util";
import test, { type ExecutionContext } from "ava";
import { Redis } from "ioredis";
import { LockMisconfiguredError, LockOptionError } from "../../runtime/base/errors";
import { untilListening } from "../store-contract";
import {
  release,
  peek,
  newId,
  newKey,
  enqueue,
  queued,
  request,
  acquire,
  TAKEN,
} from "../store-contract/subject";
import type { RedisAddress } from "../../runtime/stores/redis/address";
import { HANDSHAKE_MS } from "../../runtime/stores/redis/own-client";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { URL_LIBRARIES } from "../support/client-libraries";
import { NODE } from "../support/node";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis, startRedisAt, type RedisServer } from "../support/redis-server";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import { UNTRUSTED } from "./untrusted";
import { recordEvents } from "./noting-listener";

// Connections of the caller's client, and connections that the store makes itself.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

/** The text of an error and its causes, with all their properties. */
const everythingOf = (error: unknown): string => inspect(error, { depth: 10, showHidden: true });

/** Opens a store by URL, and closes it after the test. */
function storeAt(t: ExecutionContext, url: RedisAddress): ReturnType<typeof redisStoreAt> {
  const store = redisStoreAt(url);
  t.teardown(() => store.close());
  return store;
}

test("close() leaves the caller's client open and closes its own connection", async (t) => {
  const watcher = server.client();
  const client = server.client({ connectionName: "close-test" });
  const connections = async (): Promise<number> =>
    String(await watcher.client("LIST")).split("name=close-test ").length - 1;
  const own = redisStore(client);
  const [key, requestId] = [newKey(), newId()];
  await acquire(own, key, requestId);
  t.is(await connections(), 1, "no second connection before a caller waits");
  await queued(own, key, newId());
  await until(async () => (await connections()) === 2);
  await own.close();
  await until(async () => (await connections()) === 1);
  t.is(await client.ping(), "PONG");
  for (const event of ["close", "-node", "+node", "ready"]) t.is(client.listenerCount(event), 0, event);
});

/** ioredis may keep the process alive for this long after each call of `disconnect()`. */
const OPTIONS = "{ disconnectTimeout: 600_000, retryStrategy: () => 600_000 }";

/** The client needs a moment to notice that. If it is too slow, the test passes all the same. */
const BROKEN = "one node, whose subscription has broken,";

async function oneNode(t: ExecutionContext): Promise<string> {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  return `new Redis(${lonely.port}, "127.0.0.1", ${OPTIONS})`;
}

for (const [kind, open] of Object.entries({
  "one node": oneNode,
  [BROKEN]: oneNode,
  "a cluster": async (t: ExecutionContext) => {
    const cluster = await startRedisCluster();
    t.teardown(() => cluster.stop());
    const nodes = JSON.stringify(cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port })));
    return `new Cluster(${nodes}, { redisOptions: ${OPTIONS} })`;
  },
})) {
  test(`a process that received wake-ups exits as soon as its store and its client of ${kind} are closed`, async (t) => {
    const [node, ...args] = NODE;
    const source = `
      const { setTimeout: pause } = require("node:timers/promises");
      const { Cluster, Redis } = require("ioredis");
      const { redisStore } = require(${JSON.stringify(join(__dirname, "../../runtime"))});
      const { untilListening } = require(${JSON.stringify(join(__dirname, "../store-contract"))});
      (async () => {
        const client = ${await open(t)};
        const store = redisStore(client);
        await untilListening(store);
        ${kind === BROKEN ? 'await client.client("KILL", "TYPE", "pubsub"); await pause(100);' : ""}
        await store.close();
        await client.quit();
        console.log("end");
      })();`;
    const { stdout } = await promisify(execFile)(node, [...args, "-e", source], { timeout: 120_000 });
    t.is(stdout, "end\n");
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}close() of a store by URL closes all its connections`, async (t) => {
    const lonely = await startRedis();
    t.teardown(lonely.stop);
    const watcher = lonely.client();
    const connections = async (): Promise<number> =>
      String(await watcher.client("LIST"))
        .trim()
        .split("\n").length;
    await watcher.ping();
    const own = redisStoreAt(at(lonely.url));
    await acquire(own, newKey(), newId());
    await untilListening(own);
    t.is(await connections(), 3);
    await own.close();
    await until(async () => (await connections()) === 1);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a command sent before the connection is ready waits for it`, async (t) => {
    const own = storeAt(t, at(server.url));
    t.deepEqual(await acquire(own, newKey(), newId()), TAKEN);
  });
}

test.serial("a process that is blocked while it connects keeps its connections", async (t) => {
  const taken = [];
  // So the block finds connections at each step of their handshake.
  for (let step = 0; step < 20; step++) {
    taken.push(...URL_LIBRARIES.map(({ at }) => acquire(storeAt(t, at(server.url)), newKey(), newId())));
    await (step < 10 ? new Promise(setImmediate) : Promise.resolve());
  }
  const endsAt = performance.now() + HANDSHAKE_MS + 1_000;
  while (performance.now() < endsAt);
  t.deepEqual(
    await Promise.all(taken),
    taken.map(() => TAKEN),
  );
});

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a URL may have a connectTimeout`, async (t) => {
    const own = storeAt(t, at(`${server.url}?connectTimeout=60000`));
    t.deepEqual(await acquire(own, newKey(), newId()), TAKEN);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}close() immediately rejects commands that wait for a connection`, async (t) => {
    const deaf = createServer().listen(0, "127.0.0.1"); // Accepts connections and never replies.
    await once(deaf, "listening");
    t.teardown(() => deaf.close());
    const own = redisStoreAt(at(`redis://127.0.0.1:${(deaf.address() as AddressInfo).port}`));
    const taken = acquire(own, newKey(), newId());
    await own.close();
    await t.throwsAsync(taken, { message: /the store was closed/ });
  });
}

// ---- reconnections --------------------------------------------------------------------------------------

for (const [whose, open] of [
  ["the caller's client", (at: RedisServer) => redisStore(at.client())],
  ...URL_LIBRARIES.map(
    ({ title, at }) =>
      [
        `${title === "" ? "" : "node-redis and "}a connection of the store's own`,
        ({ url }: RedisServer) => redisStoreAt(at(url)),
      ] as const,
  ),
] as const) {
  test(`all listeners are notified that Redis restarted, over ${whose}`, async (t) => {
    const first = await startRedis();
    const own = open(first);
    t.teardown(() => own.close());
    const [key, requestId] = [newKey(), newId()];
    const [one, other] = [recordEvents(own), recordEvents(own)];
    await acquire(own, key, requestId);
    t.is(one.reconnects, 0, "the first connection is not a reconnection");
    const { port, pid } = first;
    process.kill(pid, "SIGKILL"); // stop() would disconnect the clients as well.
    const second = await startRedisAt(port);
    t.teardown(async () => {
      await second.stop();
      await first.stop();
    });
    await Promise.all([one.reconnected, other.reconnected]);
    t.is(await peek(own, key), undefined);
  });
}

test("the first reconnection of a client that was ready before is reported", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const client = lonely.client();
  await client.ping();
  const own = redisStore(client);
  t.teardown(() => own.close());
  const events = recordEvents(own);
  await lonely.client().call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await events.reconnected;
  t.is(events.reconnects, 1);
});

// ---- the store's own clients send nothing twice and nothing late ----------------------------------------

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a command without a reply fails if the store's own connection breaks, and is never resent`, async (t) => {
    const watcher = server.client();
    const proxy = await startTcpProxy(server.port);
    t.teardown(proxy.stop);
    const own = storeAt(t, at(`redis://127.0.0.1:${proxy.port}`));
    await acquire(own, newKey(), newId());
    const [key, requestId] = [newKey(), newId()];
    proxy.withholdReplies();
    const taken = acquire(own, key, requestId);
    await until(async () => (await watcher.exists(key)) === 1);
    await watcher.del(key);
    proxy.cut();
    await t.throwsAsync(taken, { message: "the connection to Redis broke" });
    t.deepEqual(await acquire(own, newKey(), newId()), TAKEN, "the store has reconnected");
    t.is(await watcher.exists(key), 0);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a command that could not be sent before its timeout is never sent`, async (t) => {
    const first = await startRedis();
    const { port } = first;
    const own = storeAt(t, at(first.url));
    await acquire(own, newKey(), newId());
    await first.stop();
    const key = newKey();
    await t.throwsAsync(own.acquire(request(key, newId()), 100));
    const events = recordEvents(own);
    const second = await startRedisAt(port);
    t.teardown(second.stop);
    await events.reconnected;
    t.deepEqual(await acquire(own, newKey(), newId()), TAKEN);
    t.is(await peek(own, key), undefined);
  });
}

test("options in the URL do not make the store send commands twice or late", async (t) => {
  const options =
    "enableOfflineQueue=true&autoResendUnfulfilledCommands=true&maxRetriesPerRequest=20&lazyConnect=true";
  const proxy = await startTcpProxy(server.port);
  t.teardown(proxy.stop);
  const own = storeAt(t, `redis://127.0.0.1:${proxy.port}?${options}`);
  t.deepEqual(await acquire(own, newKey(), newId()), TAKEN);
  proxy.withholdReplies();
  const taken = acquire(own, newKey(), newId());
  proxy.cut();
  await t.throwsAsync(taken, { message: "the connection to Redis broke" });
});

// ---- causes of errors -----------------------------------------------------------------------------------

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a refused connection is reported immediately`, async (t) => {
    const gone = await startRedis();
    await gone.stop();
    const own = storeAt(t, at(gone.url));
    const [key, requestId] = [newKey(), newId()];
    for (const ask of [
      () => acquire(own, key, requestId),
      () => release(own, key, requestId),
      () => enqueue(own, key, newId()),
    ]) {
      await t.throwsAsync(ask(), { code: "ECONNREFUSED", message: /ECONNREFUSED/ });
    }
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}an earlier connection error is not the cause of a later one`, async (t) => {
    const first = await startRedis();
    const { port, url } = first;
    await first.stop();
    const own = storeAt(t, at(url));
    await t.throwsAsync(acquire(own, newKey(), newId()), { code: "ECONNREFUSED" });
    const second = await startRedisAt(port);
    t.teardown(second.stop);
    const key = newKey();
    await until(async () => (await acquire(own, key, newId()).catch(() => undefined)) !== undefined);
    await peek(own, key);
    const watcher = second.client();
    await watcher.call("CLIENT", "PAUSE", "60000", "WRITE");
    const taken = acquire(own, newKey(), newId());
    await until(async () => String(await watcher.client("LIST")).includes(" cmd=set "));
    await watcher.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const { cause } = (await t.throwsAsync(taken, { message: "the connection to Redis broke" })) ?? {};
    t.is(cause, undefined);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}an unknown host is named in the error`, async (t) => {
    const own = storeAt(t, at("redis://no-such-host.invalid"));
    await t.throwsAsync(acquire(own, newKey(), newId()), { message: /no-such-host\.invalid/ });
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}an untrusted certificate is named in the error`, async (t) => {
    const untrusted = createTlsServer(UNTRUSTED).listen(0, "127.0.0.1");
    await once(untrusted, "listening");
    t.teardown(() => untrusted.close());
    const own = storeAt(t, at(`rediss://localhost:${(untrusted.address() as AddressInfo).port}`));
    await t.throwsAsync(acquire(own, newKey(), newId()), { message: /self-signed certificate/ });
  });
}

test("servers that never reply are reported, even if the process is busy", async (t) => {
  const deaf = createServer().listen(0, "127.0.0.1");
  await once(deaf, "listening");
  t.teardown(() => deaf.close());
  const url = `redis://127.0.0.1:${(deaf.address() as AddressInfo).port}`;
  // The first acquire loads the library.
  for (const { at } of URL_LIBRARIES) await acquire(storeAt(t, at(server.url)), newKey(), newId());
  for (const timeoutMs of [1_000, 200, 200, 200, 200, 200, 200]) {
    const taken: Promise<unknown>[] = [];
    for (const { at } of [...URL_LIBRARIES, ...URL_LIBRARIES]) {
      taken.push(storeAt(t, at(url)).acquire(request(newKey(), newId()), timeoutMs));
      await new Promise((resolve) => setTimeout(resolve, 1)); // Node runs all timers of one duration together.
    }
    const endsAt = performance.now() + timeoutMs;
    let isOver = false;
    setTimeout(() => setImmediate(() => setImmediate(() => (isOver = true))), timeoutMs);
    // So the reports and the timeouts are due at the same time.
    setTimeout(() => {
      while (performance.now() < endsAt + 30);
    }, timeoutMs * 0.75);
    for (const result of await Promise.allSettled(taken)) {
      t.regex(String(result.status === "rejected" && result.reason), /no connection to Redis yet/);
    }
    t.false(isOver);
  }
});

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a Redis that requires a password throws LockMisconfiguredError`, async (t) => {
    const guarded = await startRedis("--requirepass", "open sesame");
    t.teardown(guarded.stop);
    const silent = redisStore(guarded.client({ enableReadyCheck: false }));
    t.teardown(() => silent.close());
    for (const shut of [silent, storeAt(t, at(guarded.url))]) {
      await t.throwsAsync(acquire(shut, newKey(), newId()), {
        instanceOf: LockMisconfiguredError,
        message: /Redis requires a password \(.*NOAUTH.*\)\. Fix: give it to the client/,
      });
    }
    const open = storeAt(t, at(`redis://:open%20sesame@127.0.0.1:${guarded.port}`));
    t.true((await acquire(open, newKey(), newId())).acquired);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a wrong password throws LockMisconfiguredError, and is not shown`, async (t) => {
    const guarded = await startRedis("--requirepass", "open sesame");
    t.teardown(guarded.stop);
    for (const url of [
      `redis://:hunter2@127.0.0.1:${guarded.port}`,
      `redis://app:hunter2@127.0.0.1:${guarded.port}`,
      `redis://127.0.0.1:${guarded.port}?password=hunter2`,
    ]) {
      const error = await t.throwsAsync(acquire(storeAt(t, at(url)), newKey(), newId()), {
        instanceOf: LockMisconfiguredError,
        message: /WRONGPASS|NOAUTH/,
      });
      t.false(everythingOf(error).includes("hunter2"), everythingOf(error));
    }
  });
}

// ---- invalid URLs ---------------------------------------------------------------------------------------

test("the error for a URL that is not for Redis contains no password", (t) => {
  for (const url of [
    "http://user:hunter2@localhost",
    "http://localhost?password=hunter2",
    "user:hunter2@localhost",
    "hunter2@/x",
    "localhost?password=hunter2",
    "redis:/user:hunter2@localhost",
  ]) {
    const error = t.throws(() => redisStoreAt(url), {
      instanceOf: LockOptionError,
      message:
        /^Expected `redis` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, or a redis:\/\/ URL, got/,
    });
    t.false(everythingOf(error).includes("hunter2"), url);
  }
  t.throws(() => redisStoreAt("localhost:6379"), { message: /got "localhost:6379"$/ });
});

test("the error for a malformed URL contains no password, and says how to encode it", (t) => {
  for (const url of [
    "redis://app:hunter2/x@localhost",
    "redis://app:12/hunter2@localhost",
    "redis://app:hunter2#x@localhost",
    "redis://app:hunter2?x@localhost",
    "redis://[hunter2",
    "redis://:hunter2",
    "rediss://localhost/hunter2",
  ]) {
    const error = t.throws(() => redisStoreAt(url), {
      instanceOf: LockOptionError,
      message: /got "rediss?:\/\/\*\*\*"\. Fix: encode .* in a password with encodeURIComponent\(\)/,
    });
    t.false(everythingOf(error).includes("hunter2"), url);
  }
});

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}locks throw until the user may select their database, and never go to another database`, async (t) => {
    const admin = server.client();
    const user = (...rules: string[]): Promise<unknown> =>
      admin.call("ACL", "SETUSER", "unselecting", ...rules);
    await user("on", ">pw", "allkeys", "allchannels", "+@all", "-select");
    const client = new Redis({ port: server.port, username: "unselecting", password: "pw", db: 5 });
    t.teardown(() => client.disconnect());
    const byClient = redisStore(client);
    const byUrl = storeAt(t, at(`redis://unselecting:pw@127.0.0.1:${server.port}/5`));
    await until(() => client.status === "ready");
    const inFive = new Redis({ port: server.port, db: 5 });
    t.teardown(() => inFive.disconnect());
    for (const store of [byClient, byUrl]) {
      const [key, requestId] = [newKey(), newId()];
      await t.throwsAsync(acquire(store, key, requestId), {
        instanceOf: LockMisconfiguredError,
        message: /select/,
      });
      t.is(await admin.exists(key), 0);
    }
    await user("+select");
    client.disconnect(true);
    for (const store of [byClient, byUrl]) {
      const key = newKey();
      await until(async () => (await acquire(store, key, newId()).catch(() => undefined))?.acquired === true);
      t.is(await admin.exists(key), 0);
      t.is(await inFive.exists(key), 1);
    }
    await byClient.close();
  });
}

for (const enableReadyCheck of [true, false]) {
  test(`a command queued for a connection to the wrong database throws (enableReadyCheck=${enableReadyCheck})`, async (t) => {
    const name = `elsewhere${enableReadyCheck}`;
    await server
      .client()
      .call("ACL", "SETUSER", name, "on", ">pw", "allkeys", "allchannels", "+@all", "-select");
    const holder = redisStore(server.client({ db: 5 }));
    const key = newKey();
    t.like(await acquire(holder, key, newId()), TAKEN);
    const client = server.client({ username: name, password: "pw", db: 5, enableReadyCheck });
    const store = redisStore(client);
    t.not(client.status, "ready", "the next command waits for the connection");
    await t.throwsAsync(acquire(store, key, newId()), {
      instanceOf: LockMisconfiguredError,
      message: /select/,
    });
    await Promise.all([holder.close(), store.close()]);
  });
}

test("a command that the client queues in a transaction throws, although it may run later", async (t) => {
  const client = server.client();
  const store = redisStore(client);
  await acquire(store, newKey(), newId()); // The store has read the server's settings.
  void client.multi({ pipeline: false });
  const key = newKey();
  await t.throwsAsync(acquire(store, key, newId()), { message: /QUEUED/ });
  await client.exec();
  t.is(await client.exists(key), 1);
});
