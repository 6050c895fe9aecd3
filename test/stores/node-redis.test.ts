import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { setImmediate as afterIo } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { createClient, createCluster, type RedisClientType } from "redis";
import { LockError, LockLostError } from "../../runtime/base/errors";
import { portOf } from "../../runtime/stores/redis/recognize-client";
import { redisStore } from "../../runtime/stores/redis/redis";
import { untilListening } from "../store-contract";
import { acquire, enqueue, newId, newKey, TAKEN, TIMEOUT_MS } from "../store-contract/subject";
import { queueOf } from "../support/auxiliary-keys";
import { NODE_REDIS, NODE_REDIS_POOL } from "../support/client-libraries";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import {
  freePort,
  startRedis,
  startRedisAt,
  type NodeRedisOptions,
  type RedisServer,
} from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import { recordEvents } from "./noting-listener";
import { UNTRUSTED } from "./untrusted";

// The behavior that only clients of node-redis need.

const KEY = "LOCK_node_redis";
const ENDLESS = { retryTimes: 1, waitTime: "10m" } as const;
const SHORT = { retryTimes: 1, waitTime: "300ms" } as const;

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

async function connected(options: NodeRedisOptions = {}, at = server): Promise<RedisClientType> {
  const client = at.nodeRedis(options);
  await client.connect();
  return client;
}

/** Connects a client that survives a restart of its server. */
async function surviving(t: ExecutionContext, { url }: RedisServer): Promise<RedisClientType> {
  const client = createClient({ url }) as RedisClientType;
  client.on("error", () => {});
  t.teardown(() => client.destroy());
  await client.connect();
  return client;
}

function processOver(t: ExecutionContext, client: RedisClientType): FleetProcess {
  const process = new FleetProcess({ store: redisStore(client), logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  return process;
}

async function isMisconfigured(t: ExecutionContext, client: RedisClientType, words: RegExp): Promise<void> {
  const call = processOver(t, client).call(KEY, ENDLESS, () => t.fail());
  await t.throwsAsync<LockError>(call, { code: "LOCK_MISCONFIGURED", message: words });
}

// ---- the connection -------------------------------------------------------------------------------------

test("a lock waits for a client that is not connected yet", async (t) => {
  const client = server.nodeRedis();
  const call = processOver(t, client).call(`${KEY}_early`, ENDLESS, () => "in");
  await client.connect();
  t.is(await call, "in");
});

test("the error about a client that nobody connects says how to connect it", async (t) => {
  const process = processOver(t, server.nodeRedis());
  // On a busy machine, a call may give up before the command does.
  await until(async () => {
    const error = await t.throwsAsync(
      process.call(KEY, SHORT, () => t.fail()),
      { code: "LOCK_UNREACHABLE" },
    );
    return /client is not connected\. Fix: call `await client\.connect\(\)`/.test(error?.message ?? "");
  });
});

test("a lock command is never sent after its timeout, although node-redis would queue it", async (t) => {
  const first = await startRedis();
  const client = await surviving(t, first);
  const store = redisStore(client);
  t.teardown(() => store.close());
  await acquire(store, newKey(), newId());
  await first.stop();
  const lost = { key: newKey(), requestId: newId(), lockTimeMs: 60_000, fencing: false };
  await t.throwsAsync(store.acquire(lost, 100));
  // events.once() would reject at the error of an attempt to connect.
  const ready = new Promise((resolve) => client.once("ready", resolve));
  const second = await startRedisAt(first.port);
  t.teardown(second.stop);
  await ready;
  t.deepEqual(await acquire(store, newKey(), newId()), TAKEN);
  t.is(await second.client().exists(lost.key), 0);
});

test("a client that was closed is reported as a misconfiguration, and works again after connect()", async (t) => {
  const client = await connected();
  const process = processOver(t, client);
  await process.call(KEY, ENDLESS, () => {});
  await client.close();
  await t.throwsAsync(
    process.call(KEY, ENDLESS, () => t.fail()),
    {
      code: "LOCK_MISCONFIGURED",
      message: /closed by close\(\), quit\(\), or destroy\(\).*Fix: call shutdown/,
    },
  );
  await client.connect();
  t.is(await process.call(KEY, ENDLESS, () => "in"), "in");
});

test("a client that stopped reconnecting is reported as a misconfiguration", async (t) => {
  const client = server.nodeRedis({ port: await freePort(), reconnectStrategy: false });
  const store = redisStore(client);
  t.teardown(() => store.close());
  await t.throwsAsync(client.connect());
  await t.throwsAsync(acquire(store, KEY, newId()), { message: /stopped reconnecting \(.*ECONNREFUSED/ });
});

test("a client that its socketTimeout closed while it was idle is reported with the option", async (t) => {
  const client = server.nodeRedis({ socketTimeout: 500 });
  const store = redisStore(client);
  t.teardown(() => store.close());
  const timedOut = deferred();
  client.on("error", (error: Error) => error.message.startsWith("Socket timeout") && timedOut.resolve());
  client.connect().catch(() => {}); // On a slow machine, the timeout may end even this.
  await timedOut.promise;
  await t.throwsAsync(acquire(store, KEY, newId()), {
    message: /closed, probably by its socketTimeout.*Fix: remove socketTimeout .* and create a new client/,
  });
});

test("only a client that its socketTimeout would close while it is idle gets a warning of that option", async (t) => {
  const socketTimeout = 60_000;
  for (const [options, warns] of [
    [{ socket: { socketTimeout } }, true],
    [{ socket: { socketTimeout }, pingInterval: 60_000 }, true],
    [{ socket: { socketTimeout }, pingInterval: 20_000 }, false],
    [{ socket: { socketTimeout, reconnectStrategy: () => 100 } }, false],
    [{}, false],
  ] as const) {
    for (const client of [createClient(options), createCluster({ rootNodes: [], defaults: options })]) {
      const store = redisStore(client);
      t.teardown(() => store.close());
      const { warnings } = recordEvents(store);
      await afterIo();
      const isWarning = (line: string): boolean =>
        /socketTimeout .*while the client is idle.*Fix: /.test(line);
      t.is(warnings.some(isWarning), warns, JSON.stringify(options));
    }
  }
});

test("a wrong password and a database that does not exist are reported as misconfigurations", async (t) => {
  const guarded = await startRedis("--requirepass", "one");
  t.teardown(guarded.stop);
  const wrong = guarded.nodeRedis({ password: "two" });
  const outside = server.nodeRedis({ database: 99 });
  for (const [client, words] of [
    [wrong, /rejected the password.*WRONGPASS/],
    [outside, /no database with this number/],
  ] as const) {
    const refused = isMisconfigured(t, client, words);
    client.connect().catch(() => {});
    await refused;
  }
});

test("a client with subscriptions is rejected with RESP 2, and works with RESP 3", async (t) => {
  const [two, three] = [await connected({ RESP: 2 }), await connected()];
  for (const client of [two, three]) await client.subscribe("news", () => {});
  await isMisconfigured(t, two, /has subscriptions.*Fix: give Lockweave its own client/);
  t.is(await processOver(t, three).call(`${KEY}_news`, ENDLESS, () => "in"), "in");
});

test("locks go to the client's database, with its key prefix, whatever its type mapping is", async (t) => {
  const client = await connected({
    database: 5,
    keyPrefix: "app:",
    commandOptions: { typeMapping: { 36: Buffer } },
  });
  const there = server.client({ db: 5 });
  const process = processOver(t, client.withTypeMapping({ 58: String }));
  await process.call(KEY, { fencing: true }, async (lock) => {
    t.regex(String(await there.get(`app:${KEY}`)), /^[0-9a-f]{32}$/);
    t.true(Number(lock.fencingToken) > 0);
  });
  await until(async () => (await there.exists(`app:${KEY}`)) === 0);
});

test("all stores over a client share one set of listeners, none of them for errors, and close() closes their connections", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const client = createClient({ url: lonely.url });
  t.teardown(() => client.destroy());
  const store = redisStore(client);
  t.is(client.listenerCount("error"), 0);
  await client.connect();
  await untilListening(store);
  const watcher = lonely.client();
  const connections = async (): Promise<number> =>
    String(await watcher.client("LIST"))
      .trim()
      .split("\n").length;
  t.is(await connections(), 3);
  await store.close();
  await until(async () => (await connections()) === 2);
  const names = client.eventNames();
  t.false(names.includes("error"));
  await redisStore(client).close();
  for (const name of names) t.is(client.listenerCount(name), 1, String(name));
  t.is(await client.ping(), "PONG");
});

test("close() keeps the application's own listeners", async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  const client = await surviving(t, own);
  const store = redisStore(client);
  await acquire(store, newKey(), newId());
  await store.close();
  const failed = once(client, "error").catch((error: unknown) => [error]);
  const watcher = own.client();
  await watcher.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  t.regex(String(await failed), /Socket closed unexpectedly|ECONNRESET/);
  t.is(await client.ping(), "PONG");
});

test("locks and wake-ups work over TLS", async (t) => {
  const tunnel = createTlsServer(UNTRUSTED, (socket) => {
    const plain = connect(server.port, "127.0.0.1");
    for (const end of [socket, plain]) end.on("error", () => {});
    socket.pipe(plain).pipe(socket);
  });
  tunnel.listen(0, "127.0.0.1");
  await once(tunnel, "listening");
  t.teardown(() => tunnel.close());
  const { port } = tunnel.address() as AddressInfo;
  const client = createClient({ socket: { host: "127.0.0.1", port, tls: true, rejectUnauthorized: false } });
  client.on("error", () => {});
  await client.connect();
  t.teardown(() => client.destroy());
  const store = redisStore(client);
  await untilListening(store);
  t.deepEqual(await acquire(store, newKey(), newId()), TAKEN);
  await store.close();
});

test("close() while the second connection connects leaves no connection", async (t) => {
  const lonely = await startRedis();
  t.teardown(lonely.stop);
  const client = await connected({}, lonely);
  const watcher = lonely.client();
  const connections = async (): Promise<number> =>
    String(await watcher.client("LIST"))
      .trim()
      .split("\n").length;
  await watcher.ping();
  for (let ticks = 0; ticks < 20; ticks += 1) {
    const store = redisStore(client);
    await enqueue(store, newKey(), newId()); // This opens the second connection.
    for (let tick = 0; tick < ticks; tick += 1) await new Promise(setImmediate);
    await store.close();
  }
  await until(async () => (await connections()) === 2);
  t.is(await client.ping(), "PONG");
});

test("the error about a legacy client of node-redis names the client that works", (t) => {
  const legacy: unknown = server.nodeRedis().legacy();
  t.throws(() => redisStore(legacy as RedisClientType), { message: /legacy\(\)\. Fix: .*createClient\(\)/ });
});

// ---- the second connection ------------------------------------------------------------------------------

test("a subscription whose handshake gets no answer has a pending ping, so the heartbeat replaces it", async (t) => {
  const client = server.nodeRedis();
  const proxy = await startTcpProxy(server.port);
  t.teardown(() => proxy.stop());
  proxy.blackHole();
  const through = server.nodeRedis({ port: proxy.port });
  const listeners = { subscribed: () => t.fail(), message: () => t.fail(), failed() {}, ended() {} };
  const subscription = portOf(through).openSubscription?.("channel", listeners);
  await until(() => proxy.connectionsMade === 1);
  const ping = subscription?.ping();
  await client.connect();
  await client.ping();
  t.is(await Promise.race([ping, Promise.resolve("pending")]), "pending");
  subscription?.close();
  await t.throwsAsync(async () => await ping);
});

test("a connection that closes during its handshake ends its subscription to new passwords", async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  const [asked, answer] = [deferred(), deferred()];
  let subscriptions = 0;
  const dispose = (): void => void (subscriptions -= 1);
  const client = createClient({
    url: own.url,
    credentialsProvider: {
      type: "streaming-credentials-provider",
      async subscribe() {
        subscriptions += 1;
        if (subscriptions === 2) {
          asked.resolve();
          await answer.promise;
        }
        return [{}, { dispose }];
      },
      onReAuthenticationError: () => t.fail(),
    },
  });
  client.on("error", () => {});
  t.teardown(() => client.destroy());
  await client.connect();
  const listeners = { subscribed: () => t.fail(), message: () => t.fail(), failed() {}, ended() {} };
  const subscription = portOf(client).openSubscription?.("channel", listeners);
  await asked.promise;
  subscription?.close();
  answer.resolve();
  await until(() => subscriptions === 1);
  t.is(await client.ping(), "PONG");
});

// ---- the user's own listeners -----------------------------------------------------------------------------

/** Subscribes with a listener that throws. node-redis then drops the other replies that it received with the message. */
async function subscribeThrowing(client: RedisClientType): Promise<string> {
  const channel = newKey();
  await client.subscribe(channel, () => {
    throw new Error("thrown by the user's listener");
  });
  return channel;
}

test("no lock is granted by the reply to another command after an application's listener threw and node-redis lost replies", async (t) => {
  const client = await surviving(t, server);
  const channel = await subscribeThrowing(client);
  const store = redisStore(client);
  t.teardown(() => store.close());
  await acquire(store, newKey(), newId());
  const held = newKey();
  await server.client().set(held, newId());
  const failed = once(client, "error").catch(String);
  // Redis sends the message and both replies at once, so both replies are lost.
  const published = client.publish(channel, "");
  const refused = acquire(store, held, newId());
  await failed;
  const others: Promise<unknown>[] = [];
  for (let nth = 0; nth < 3; nth += 1) {
    others.push(acquire(store, newKey(), newId()));
    await afterIo(); // Otherwise they would share one command.
  }
  const outcomes = Promise.allSettled(others);
  const message = /commands may get the replies of other commands \(thrown by the user's listener\)\. Fix: /;
  await t.throwsAsync(refused, { message });
  await t.throwsAsync(acquire(store, newKey(), newId()), { message });
  await published;
  client.destroy();
  t.true((await outcomes).every(({ status }) => status === "rejected"));
  await client.connect();
  t.deepEqual(await acquire(store, newKey(), newId()), TAKEN);
});

test("locks continue after an application's listener threw and no reply was lost", async (t) => {
  const client = await surviving(t, server);
  const channel = await subscribeThrowing(client);
  const store = redisStore(client);
  t.teardown(() => store.close());
  await acquire(store, newKey(), newId());
  const failed = once(client, "error").catch(String);
  await server.client().publish(channel, "");
  t.regex(String(await failed), /thrown by the user's listener/);
  // On a busy machine, the check of the replies may take longer than a second. Until then, no lock is granted.
  await until(
    async () => (await acquire(store, newKey(), newId()).catch(() => undefined))?.acquired === true,
  );
  t.pass();
});

test("a lock call while the client closes says that it was closed", async (t) => {
  const client = await connected();
  const process = processOver(t, client);
  await process.call(KEY, ENDLESS, () => {});
  const blocked = client.blPop("never filled", 60);
  const closing = client.close();
  await t.throwsAsync(
    process.call(KEY, ENDLESS, () => t.fail()),
    { code: "LOCK_MISCONFIGURED", message: /closed by close\(\), quit\(\), or destroy\(\)/ },
  );
  client.destroy();
  await t.throwsAsync(blocked);
  await closing;
});

// ---- faults ---------------------------------------------------------------------------------------------

for (const { title, client } of [...NODE_REDIS, NODE_REDIS_POOL]) {
  test(`${title}a holder keeps its lock and a waiter enters after it if all connections are killed`, async (t) => {
    const own = await startRedis();
    t.teardown(own.stop);
    const [entered, end] = [deferred(), deferred()];
    const [one, two] = [await client(own), await client(own)];
    const holder = processOver(t, one as RedisClientType).call(KEY, { lockTime: "10m" }, async (lock) => {
      entered.resolve();
      await end.promise;
      return lock.remaining() > 0 ? "kept" : "lost";
    });
    await entered.promise;
    const waiter = processOver(t, two as RedisClientType).call(KEY, ENDLESS, () => "in");
    const watcher = own.client();
    await until(async () => (await watcher.exists(queueOf(KEY))) === 1);
    for (const type of ["normal", "pubsub"]) {
      await watcher.call("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
    }
    end.resolve();
    t.is(await holder, "kept");
    t.is(await waiter, "in");
  });
}

for (const { title, client } of NODE_REDIS) {
  test(`${title}locks continue after a connection broke while commands were about to be written`, async (t) => {
    const proxy = await startTcpProxy(server.port);
    const given = (await client(server, { port: proxy.port })) as RedisClientType;
    const store = redisStore(given);
    t.teardown(async () => {
      await store.close();
      given.destroy();
      await proxy.stop();
    });
    t.deepEqual(await acquire(store, newKey(), newId()), TAKEN);
    // Node runs the timer first, then reads the reset, and then node-redis writes the commands. Version 5 loses their order.
    const locks = await new Promise<Promise<unknown>[]>((resolve) => {
      setImmediate(() => {
        setTimeout(() => {
          for (let nth = 0; nth < 5; nth += 1) given.sendCommand(["PING"]).catch(() => {});
          resolve([1, 2, 3, 4, 5].map(() => acquire(store, newKey(), newId())));
        });
        proxy.reset();
        const due = performance.now() + 5;
        while (performance.now() < due); // Otherwise the timer could be late.
      });
    });
    await Promise.allSettled(locks);
    await until(async () => {
      const reply = await acquire(store, newKey(), newId()).catch(() => undefined);
      return reply?.acquired === true;
    });
    t.pass();
  });
}

test("a holder learns of its loss as soon as Redis is back without its data", async (t) => {
  const first = await startRedis();
  const process = processOver(t, await surviving(t, first));
  const call = process.call(KEY, { lockTime: "10m" }, async ({ signal }) => {
    const aborted = once(signal, "abort");
    await first.stop();
    const second = await startRedisAt(first.port);
    t.teardown(second.stop);
    await aborted;
  });
  await t.throwsAsync(call, { instanceOf: LockLostError, message: /its key disappeared early/ });
});

test("a lock with replicas is on the replica when acquire() resolves, in the client's database", async (t) => {
  const master = await startRedis("--repl-diskless-sync-delay", "0");
  const replica = await startRedis("--replicaof", "127.0.0.1", String(master.port));
  t.teardown(async () => {
    await master.stop();
    await replica.stop();
  });
  const store = redisStore(await connected({ database: 3, keyPrefix: "app:" }, master));
  t.teardown(() => store.close());
  const admin = master.client();
  await until(async () => (await admin.call("WAIT", 1, 10)) === 1);
  const there = replica.client({ db: 3 });
  const held = { key: newKey(), requestId: newId(), lockTimeMs: 10_000, fencing: false, replicas: 1 };
  t.like(await store.acquire(held, TIMEOUT_MS), { acquired: true });
  t.is(await there.get(`app:${held.key}`), held.requestId);
  t.deepEqual(await store.renew([held], TIMEOUT_MS), [{ renewed: true }]);
  process.kill(replica.pid, "SIGSTOP");
  await t.throwsAsync(store.acquire({ ...held, key: newKey(), requestId: newId() }, 1_000), {
    message: /0 of 1 replicas confirmed|did not answer in time/,
  });
  process.kill(replica.pid, "SIGCONT");
});
