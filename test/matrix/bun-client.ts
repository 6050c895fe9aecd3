import { join } from "node:path";

// Tests of Bun's `RedisClient`, which runtimes.ts runs with `bun test`. Each file runs in its own process, with the server as REDIS_URL.

/** Returns the path of a file of test/support, in quotes. Bun runs TypeScript. */
const support = (file: string): string => JSON.stringify(join(__dirname, "../support", file));

const CONTRACT = `import { test } from "bun:test";
import { setTimeout as pause } from "node:timers/promises";
import { RedisClient } from "bun";
import { redisStore } from "lockweave";
import { storeContract } from "lockweave/store-contract";

const store = redisStore(new RedisClient(process.env.REDIS_URL));
storeContract(test, () => ({ store, elapse: (ms) => pause(ms + 5) }));
`;

const CONNECTION = `import { afterEach, expect, test } from "bun:test";
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { RedisClient } from "bun";
import { configure, redisStore, shutdown, withLock } from "lockweave";

const url = process.env.REDIS_URL ?? "";
const admin = new RedisClient(url);
const QUIET = { woven: false, logger: { warn: () => {} } };

afterEach(() => shutdown({ patience: "0s" }));

async function inboxes(): Promise<number> {
  return ((await admin.send("PUBSUB", ["CHANNELS", "lockweave:1:inbox:*"])) as string[]).length;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5);
}

async function fails(call: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  const error = await call.catch((thrown: unknown) => thrown);
  expect(error).toHaveProperty("code", code);
  expect(String(error)).toMatch(message);
}

test("a lock works over a client that nobody has connected, and again after its connection is killed", async () => {
  const client = new RedisClient(url);
  configure({ redis: client, ...QUIET });
  expect(await withLock("LOCK_bun", {}, () => 1)).toBe(1);
  for (let kill = 0; kill < 3; kill += 1) {
    const id = /(?<=id=)\\d+/.exec((await client.send("CLIENT", ["INFO"])) as string)?.[0] ?? "";
    await admin.send("CLIENT", ["KILL", "ID", id]);
    expect(await withLock("LOCK_bun", {}, () => kill)).toBe(kill);
  }
  client.close();
});

test("the application's callbacks are called", async () => {
  const calls: string[] = [];
  const client = new RedisClient(url);
  client.onconnect = () => void calls.push("connect");
  client.onclose = () => void calls.push("close");
  configure({ redis: client, ...QUIET });
  await withLock("LOCK_bun", {}, () => {});
  client.close();
  await until(() => calls.length === 2);
  expect(calls).toEqual(["connect", "close"]);
});

test("a callback that the application sets later is called, and hides no reconnect from the store", async () => {
  const client = new RedisClient(url);
  await client.connect();
  const store = redisStore(client);
  let reconnects = 0;
  store.listen({ onWakeUp: () => {}, onReconnect: () => (reconnects += 1), onWarning: () => {} });
  const connected = Promise.withResolvers<void>();
  client.onconnect = () => connected.resolve();
  const id = /(?<=id=)\\d+/.exec((await client.send("CLIENT", ["INFO"])) as string)?.[0] ?? "";
  await admin.send("CLIENT", ["KILL", "ID", id]);
  await connected.promise;
  expect(reconnects).toBe(1);
  await store.close();
  client.close();
});

test("a waiter gets wake-ups again after its subscription was killed", async () => {
  const client = new RedisClient(url);
  configure({ redis: client, ...QUIET });
  await admin.send("SET", ["LOCK_bun", "another program", "PX", "60000"]);
  const waiting = withLock("LOCK_bun", { waitTime: "60s" }, () => "in");
  await until(async () => (await inboxes()) === 1);
  const [before] = (await admin.send("PUBSUB", ["CHANNELS", "lockweave:1:inbox:*"])) as string[];
  await admin.send("CLIENT", ["KILL", "TYPE", "pubsub"]);
  await until(async () => (await inboxes()) === 0);
  await until(async () => (await inboxes()) === 1);
  await admin.send("DEL", ["LOCK_bun"]);
  await admin.send("PUBLISH", [before ?? "", ""]);
  expect(await waiting).toBe("in");
  await shutdown();
  await until(async () => (await inboxes()) === 0);
  client.close();
});

test("a closed client is a permanent error, and is not reopened", async () => {
  const client = new RedisClient(url);
  await client.connect();
  configure({ redis: client, ...QUIET });
  client.close();
  const call = withLock("LOCK_bun", { waitTime: "60s" }, () => "in");
  await fails(call, "LOCK_MISCONFIGURED", /the Redis client was closed/);
  expect(client.connected).toBe(false);
});

for (const options of [{ idleTimeout: 100 }, { autoReconnect: false }, { maxRetries: 0 }]) {
  test("locks and wake-ups continue after the client has stopped for good: " + JSON.stringify(options), async () => {
    const client = new RedisClient(url, options);
    configure({ redis: client, ...QUIET });
    const stopped = Promise.withResolvers<void>();
    await withLock("LOCK_bun", {}, () => {});
    client.onclose = () => stopped.resolve();
    if (!("idleTimeout" in options)) await admin.send("CLIENT", ["KILL", "TYPE", "normal", "SKIPME", "yes"]);
    await stopped.promise;
    expect(client.connected).toBe(false);
    let waiting: Promise<string> | undefined;
    const holding = withLock("LOCK_bun", { waitTime: "60s" }, async (lock) => {
      waiting = withLock("LOCK_bun", { waitTime: "60s" }, () => "in");
      await pause(300);
      return lock.signal.aborted;
    });
    expect(await holding).toBe(false);
    expect(await waiting).toBe("in");
    client.close();
    const call = withLock("LOCK_bun", { waitTime: "60s" }, () => "in");
    await fails(call, "LOCK_MISCONFIGURED", /the Redis client was closed/);
  });
}

test("a client that stopped and that the application then closed is not reopened", async () => {
  const client = new RedisClient(url, { idleTimeout: 100 });
  const stopped = Promise.withResolvers<void>();
  client.onclose = () => stopped.resolve();
  configure({ redis: client, ...QUIET });
  await withLock("LOCK_bun", {}, () => {});
  await stopped.promise;
  client.close();
  const call = withLock("LOCK_bun", { waitTime: "60s" }, () => "in");
  await fails(call, "LOCK_MISCONFIGURED", /the Redis client was closed/);
  expect(client.connected).toBe(false);
});

test("a wrong password is a permanent error", async () => {
  const client = new RedisClient(url.replace("//", "//somebody:wrong@"));
  configure({ redis: client, ...QUIET });
  const call = withLock("LOCK_bun", { waitTime: "60s" }, () => "in");
  await fails(call, "LOCK_MISCONFIGURED", /password/);
});

test("a lock that must be on a replica is rejected, with a fix", async () => {
  const client = new RedisClient(url);
  configure({ redis: client, ...QUIET });
  const call = withLock("LOCK_bun", { replicas: 1, waitTime: "60s" }, () => "in");
  await fails(call, "LOCK_MISCONFIGURED", /Fix: remove .replicas./);
  client.close();
});

test("a call throws LOCK_UNREACHABLE at the end of its wait budget if the server is down", async () => {
  const client = new RedisClient("redis://127.0.0.1:1");
  configure({ redis: client, ...QUIET });
  const call = withLock("LOCK_bun", { waitTime: "500ms" }, () => "in");
  await fails(call, "LOCK_UNREACHABLE", /no connection yet/);
  client.close();
});

/** A server that closes each connection as soon as a command arrives, and forwards connections to Redis once it is open. */
async function startGate() {
  let isOpen = false;
  const gate = createServer((socket) => {
    socket.on("error", () => {});
    if (isOpen) {
      const { hostname, port } = new URL(url);
      const redis = connect(Number(port), hostname);
      redis.on("error", () => {});
      return socket.pipe(redis).pipe(socket);
    }
    socket.on("data", (data) => {
      if (String(data).includes("HELLO")) socket.write("%1\\r\\n$5\\r\\nproto\\r\\n:3\\r\\n");
      else socket.destroy();
    });
  });
  gate.listen(0, "127.0.0.1");
  await once(gate, "listening");
  return { url: "redis://127.0.0.1:" + (gate.address() as AddressInfo).port, open: () => (isOpen = true) };
}

test("a connection that breaks before the first reply is not a permanent error", async () => {
  const gate = await startGate();
  const client = new RedisClient(gate.url);
  configure({ redis: client, ...QUIET });
  await fails(withLock("LOCK_bun", { waitTime: "100ms" }, () => "in"), "LOCK_UNREACHABLE", /./);
  const waiting = withLock("LOCK_bun", { waitTime: "60s" }, () => "in");
  gate.open();
  expect(await waiting).toBe("in");
  client.close();
});

test("a client without an offline queue is not a permanent error while it is not connected", async () => {
  const client = new RedisClient(url, { enableOfflineQueue: false });
  configure({ redis: client, ...QUIET });
  expect(await withLock("LOCK_bun", { waitTime: "60s" }, () => "in")).toBe("in");
  client.close();
});
`;

const LOST_REPLIES = `import { afterEach, expect, test } from "bun:test";
import { setTimeout as pause } from "node:timers/promises";
import { RedisClient } from "bun";
import { configure, shutdown, withLock } from "lockweave";
import { deferred } from ${support("deferred.ts")};
import { startTcpProxy, type TcpProxy } from ${support("tcp-proxy.ts")};

// Redis executes a command, and its reply is lost. Callers do not notice, and no caller waits for a lock time.

const url = new URL(process.env.REDIS_URL ?? "");
const admin = new RedisClient(url.href);
const LOCK_TIME = { lockTime: "10m", waitTime: "10m" } as const;

let proxy: TcpProxy;
let client: RedisClient;
let keys = 0;

/** Returns a new key, and acquires the lock once, so that Redis has the scripts. */
async function newKey(): Promise<string> {
  proxy = await startTcpProxy(Number(url.port));
  client = new RedisClient("redis://127.0.0.1:" + proxy.port, { maxRetries: 1_000_000_000 });
  configure({ redis: client, commandTimeout: "200ms", woven: false, logger: { warn: () => {} } });
  const key = "LOCK_lost_" + (keys += 1);
  await admin.set(key, "another program");
  const waiting = withLock(key, LOCK_TIME, () => {});
  await until(() => isAwaited(key));
  await admin.del(key);
  await waiting;
  await isFree(key);
  return key;
}

afterEach(async () => {
  await shutdown({ patience: "0s" });
  client.close();
  await proxy.stop();
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5);
}

/** Whether the key has a queue. */
function isAwaited(key: string): Promise<boolean> {
  return admin.exists("lockweave:1:queue:{" + key + "}");
}

async function isFree(key: string): Promise<void> {
  await until(async () => !(await admin.exists(key)) && !(await isAwaited(key)));
}

const LOSSES = {
  "the connection is reset": { fate: "reset", recover: async () => {} },
  "the connection falls silent and is reset after the command timeout": {
    fate: "silence",
    async recover() {
      await pause(400);
      proxy.reset();
    },
  },
} as const;

for (const [name, { fate, recover }] of Object.entries(LOSSES)) {
  for (const fencing of [false, true]) {
    test(\`a caller gets the lock if the reply to its acquire is lost, fencing \${fencing}: \${name}\`, async () => {
      const key = await newKey();
      const struck = proxy.strike(1, fate, key);
      let runs = 0;
      const call = withLock(key, { ...LOCK_TIME, fencing }, (lock) => {
        lock.assertHeld();
        return (runs += 1);
      });
      await struck;
      await recover();
      expect(await call).toBe(1);
      expect(runs).toBe(1);
      await isFree(key);
    });
  }

  test(\`a waiter gets the lock if the reply to its enqueue is lost: \${name}\`, async () => {
    const key = await newKey();
    await admin.set(key, "another program");
    const struck = proxy.strike(2, fate, key); // After the acquire, which is refused.
    const call = withLock(key, LOCK_TIME, () => "in");
    await struck;
    await recover();
    await admin.del(key);
    expect(await call).toBe("in");
    await isFree(key);
  });

  test(\`a waiter gets the lock if the reply that grants it is lost: \${name}\`, async () => {
    const key = await newKey();
    await admin.set(key, "another program");
    const call = withLock(key, LOCK_TIME, () => "in");
    await until(() => isAwaited(key));
    await admin.del(key);
    const struck = proxy.strike(1, fate, key);
    await struck;
    await recover();
    expect(await call).toBe("in");
    await isFree(key);
  });

  test(\`a holder keeps the lock if the reply to a renewal is lost: \${name}\`, async () => {
    const key = await newKey();
    const call = withLock(key, { lockTime: "3s" }, async (lock) => {
      await proxy.strike(1, fate, key);
      const before = lock.remaining();
      await recover();
      await until(async () => lock.remaining() > before); // A later renewal succeeded.
      return lock.signal.aborted;
    });
    expect(await call).toBe(false);
    await isFree(key);
  });

  test(\`a release frees the key even if its reply is lost: \${name}\`, async () => {
    const key = await newKey();
    const struck = deferred();
    const call = withLock(key, LOCK_TIME, () => {
      void proxy.strike(1, fate, key).then(struck.resolve);
      return "in";
    });
    expect(await call).toBe("in");
    await struck.promise;
    await isFree(key); // Before the network recovers.
    await recover();
    expect(await withLock(key, LOCK_TIME, () => "again")).toBe("again");
  });
}
`;

const QUORUM = `import { expect, test } from "bun:test";
import { RedisClient } from "bun";
import { configure, quorumStore, shutdown, withLock } from "lockweave";
import { startRedis } from ${support("redis-server.ts")};

test("a quorum grants locks while connections are killed, and while one master is down", async () => {
  const masters = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const clients = masters.map(({ url }) => new RedisClient(url, { maxRetries: 1_000_000_000 }));
  const admins = masters.map(({ url }) => new RedisClient(url));
  const store = quorumStore(clients, { longestLockTime: "3s" }); // New masters count only after this time.
  configure({ store, defaults: { lockTime: "3s" }, woven: false, logger: { warn: () => {} } });
  let inside = 0;
  let sections = 0;
  const enter = (): Promise<void> =>
    withLock("LOCK_quorum", { waitTime: "60s", retryTimes: 20 }, async () => {
      expect((inside += 1)).toBe(1);
      const values = await Promise.all(admins.map((admin) => admin.get("LOCK_quorum")));
      expect(values.filter((value) => value !== null).length).toBeGreaterThanOrEqual(2);
      sections += 1;
      inside -= 1;
    });
  for (let round = 0; round < 6; round += 1) {
    const callers = Promise.all(Array.from({ length: 5 }, enter));
    await admins[round % 3]?.send("CLIENT", ["KILL", "TYPE", "normal", "SKIPME", "yes"]);
    await callers;
  }
  admins.shift()?.close();
  await masters.shift()?.stop();
  await Promise.all(Array.from({ length: 5 }, enter));
  expect(sections).toBe(35);
  await shutdown();
  for (const client of [...clients, ...admins]) client.close();
  await Promise.all(masters.map((master) => master.stop()));
});
`;

export const BUN_TESTS = {
  "contract.test.ts": CONTRACT,
  "connection.test.ts": CONNECTION,
  "lost-replies.test.ts": LOST_REPLIES,
  "quorum.test.ts": QUORUM,
};
