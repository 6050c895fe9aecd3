import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createSecureServer } from "node:tls";
import test, { type ExecutionContext } from "ava";
import { Redis, type RedisOptions } from "ioredis";
import { LockError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import { quorumStore } from "../../runtime/stores/quorum/quorum-store";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { RELEASE } from "../../runtime/stores/redis/scripts/release";
import { CHECK_AND_ACQUIRE } from "../../runtime/stores/redis/scripts/rights";
import { URL_LIBRARIES } from "../support/client-libraries";
import { FleetProcess } from "../support/fleet";
import { commandsDuring } from "../support/monitor";
import { freePort, startRedis, startRedisAt, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { newId } from "../store-contract/subject";
import { UNTRUSTED } from "../stores/untrusted";
import { until } from "../support/until";

// The store checks the server before it acquires its first lock: whether both use TLS or neither does, whether the server has
// all keys, and whether its user may release locks.

const KEY = "LOCK_admission";
const ENDLESS = { retryTimes: 1, waitTime: "10m" } as const;
const SHORT = { retryTimes: 2, waitTime: "300ms" } as const;

let server: RedisServer;
const dir = mkdtempSync(join(tmpdir(), "admission-"));

test.before(async () => {
  server = await startRedis();
});

test.after.always(async () => {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});

function processOver(t: ExecutionContext, store: WholeStore): FleetProcess {
  const process = new FleetProcess({ store, logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  return process;
}

function refusal(t: ExecutionContext, store: WholeStore): Promise<LockError> {
  return t.throwsAsync<LockError>(
    processOver(t, store).call(KEY, ENDLESS, () => t.fail()),
    {
      instanceOf: LockError,
    },
  );
}

function isMisconfigured(t: ExecutionContext, error: LockError, words: RegExp): void {
  t.is(error.code, "LOCK_MISCONFIGURED", error.message);
  t.regex(error.message, words);
  t.regex(error.message, /\. Fix: /);
}

function clientOf(t: ExecutionContext, options: Pick<RedisOptions, "port" | "tls"> = {}): Redis {
  const client = new Redis({ host: "127.0.0.1", port: server.port, ...options });
  client.on("error", () => {});
  t.teardown(() => client.disconnect());
  return client;
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a rediss:// connection to a plain port is reported as a misconfiguration`, async (t) => {
    const url = `rediss://127.0.0.1:${server.port}`;
    isMisconfigured(t, await refusal(t, redisStoreAt(at(url))), /speaks TLS, and the server does not/);
    const client = clientOf(t, { tls: {} });
    isMisconfigured(t, await refusal(t, redisStore(client)), /speaks TLS, and the server does not/);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a redis:// connection to a TLS port is reported as a misconfiguration`, async (t) => {
    const certificate = ["-days", "1", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    execFileSync("openssl", ["req", "-x509", ...kind, ...certificate], { cwd: dir, stdio: "ignore" });
    const files = ["--tls-cert-file", join(dir, "cert.pem"), "--tls-key-file", join(dir, "key.pem")];
    const port = await freePort();
    const secure = await startRedis("--tls-port", String(port), ...files, "--tls-auth-clients", "no");
    t.teardown(secure.stop);
    const store = redisStoreAt(at(`redis://127.0.0.1:${port}`));
    isMisconfigured(t, await refusal(t, store), /speaks TLS, and the connection does not/);
    isMisconfigured(t, await refusal(t, redisStore(clientOf(t, { port }))), /Fix: write rediss:/);
  });
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}a Redis that has reached maxclients is named in the error and retried`, async (t) => {
    const full = await startRedis();
    t.teardown(full.stop);
    const admin = full.client();
    const clients = String(await admin.client("LIST"))
      .trim()
      .split("\n").length;
    await admin.call("CONFIG", "SET", "maxclients", clients);
    const words =
      /reached its limit of client connections \(.*max number of clients.*Fix: raise its maxclients/;
    const hasty = processOver(t, redisStoreAt(at(full.url)));
    // On a busy machine, a call may give up before it knows the reason.
    for (let error: LockError | undefined; !words.test(error?.message ?? "");) {
      error = await t.throwsAsync<LockError>(
        hasty.call(KEY, SHORT, () => t.fail()),
        { code: "LOCK_UNREACHABLE" },
      );
    }
    const waiting = processOver(t, redisStoreAt(at(full.url))).call(
      KEY,
      { retryTimes: 1, waitTime: "20s" },
      () => "in",
    );
    await admin.call("CONFIG", "SET", "maxclients", 100);
    t.is(await waiting, "in");
  });
}

test("the error keeps the reason of an earlier check if the last one gets no reply within the rest of the wait budget", async (t) => {
  const replica = await startRedis("--replica-serve-stale-data", "no");
  t.teardown(replica.stop);
  const admin = replica.client();
  const store = redisStore(replica.client({ enableReadyCheck: false }));
  await admin.replicaof("127.0.0.1", 1);
  const waiting = new FleetProcess({ store, commandTimeout: "3s", logger: { warn: () => {} } });
  t.teardown(() => retire(waiting));
  const waitMs = 2_000;
  const endsAt = performance.now() + waitMs;
  const call = waiting.call(KEY, { retryTimes: 1, waitTime: `${waitMs}ms` }, () => t.fail());
  const refused = t.throwsAsync(call, { code: "LOCK_UNREACHABLE", message: /MASTERDOWN/ });
  await until(async () => (await admin.info("errorstats")).includes("errorstat_MASTERDOWN"));
  process.kill(replica.pid, "SIGSTOP");
  t.teardown(async () => {
    process.kill(replica.pid, "SIGCONT");
    await admin.replicaof("NO", "ONE");
  });
  // The process is busy, so the timeouts of the check and of the command are due at the same time.
  setTimeout(() => {
    while (performance.now() < endsAt + 50);
  }, waitMs * 0.9);
  await refused;
});

const PART =
  /one node of a Cluster, and has only some of the keys.*Fix: (?:use `new Cluster|pass a client that createCluster\(\) made)/;

async function oneOfCluster(t: ExecutionContext): Promise<RedisServer> {
  const node = await startRedis("--cluster-enabled", "yes");
  t.teardown(node.stop);
  await node.client().call("CLUSTER", "ADDSLOTSRANGE", 0, 5_460);
  return node;
}

for (const { title, at } of URL_LIBRARIES) {
  test(`${title}the URL or the client of one Cluster node is reported as a misconfiguration`, async (t) => {
    const node = await oneOfCluster(t);
    isMisconfigured(t, await refusal(t, redisStoreAt(at(node.url))), PART);
    isMisconfigured(t, await refusal(t, redisStore(node.client())), PART);
  });
}

test("a single Cluster node that has all slots works like any other Redis", async (t) => {
  const node = await startRedis("--cluster-enabled", "yes");
  t.teardown(node.stop);
  const admin = node.client();
  await admin.call("CLUSTER", "ADDSLOTSRANGE", 0, 16_383);
  await until(async () => String(await admin.call("CLUSTER", "INFO")).includes("cluster_state:ok"));
  t.is(await processOver(t, redisStoreAt(node.url)).call(KEY, ENDLESS, () => "in"), "in");
});

test("a quorum of three Cluster nodes is reported as a misconfiguration", async (t) => {
  const nodes = await Promise.all([oneOfCluster(t), oneOfCluster(t), oneOfCluster(t)]);
  isMisconfigured(t, await refusal(t, quorumStore(nodes.map(({ url }) => url))), PART);
});

for (const [name, rules] of [
  ["scripts", "~* &* +@all -@scripting"],
  ["the queue of a lock", "~LOCK_* &* +@all"],
  ["a command that ends a hold", "~* &* +@all -del"],
] as const) {
  test(`a user without the right to ${name} acquires no lock that it could not release`, async (t) => {
    const admin = server.client();
    const username = name.replaceAll(" ", "-");
    await admin.call("ACL", "SETUSER", username, "reset", "on", ">pw", ...rules.split(" "));
    const key = `${KEY}_${username}`;
    const process = processOver(t, redisStoreAt(`redis://${username}:pw@127.0.0.1:${server.port}`));
    const error = await t.throwsAsync<LockError>(process.call(key, ENDLESS, () => t.fail()));
    isMisconfigured(t, error, /user lacks permission for a command or a key that locks need/);
    t.is(await admin.exists(key), 0);
  });
}

/** Returns the commands that clients sent, without those inside scripts, whose names are in capitals. */
function sentBy(commands: Awaited<ReturnType<typeof commandsDuring>>): string[] {
  const sent = commands.filter(([name = ""]) => name === name.toLowerCase());
  return sent
    .map(([name, first]) => (name === "eval" ? name : `${name} ${first}`))
    .filter((command) => command !== "info memory");
}

test("the first lock needs one round trip, and a second one if the server has no script in its cache", async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  const firstLock = async (): Promise<string[]> => {
    const client = clientOf(t, { port: own.port });
    await client.ping();
    const process = processOver(t, redisStore(client));
    return sentBy(await commandsDuring(own.client(), () => process.call(KEY, ENDLESS, () => {})));
  };
  const [check, release] = [`evalsha ${CHECK_AND_ACQUIRE.sha1}`, `evalsha ${RELEASE.sha1}`];
  t.deepEqual((await firstLock()).slice(0, 3), [check, "eval", release]);
  t.deepEqual(await firstLock(), [check, release]);
});

async function proxyOf(t: ExecutionContext, { port }: RedisServer): Promise<TcpProxy> {
  const proxy = await startTcpProxy(port);
  t.teardown(() => proxy.stop());
  return proxy;
}

test("nothing acquires a lock for a caller that has given up before the check of the server ended", async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  const admin = own.client();
  await admin.call("ACL", "SETUSER", "default", "-info"); // So the command that acquires the first lock cannot check the server.
  const proxy = await proxyOf(t, own);
  const client = new Redis({ host: "127.0.0.1", port: proxy.port, enableReadyCheck: false });
  t.teardown(() => client.disconnect());
  await client.ping();
  const store = redisStore(client);
  const process = new FleetProcess({ store, commandTimeout: "200ms", logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  proxy.withholdReplies();
  await t.throwsAsync(
    process.call(KEY, { retryTimes: 0 }, () => t.fail()),
    { code: "LOCK_UNREACHABLE" },
  );
  const late = await commandsDuring(admin, async () => {
    proxy.heal();
    await client.ping();
    await client.ping(); // It follows all commands that the replies before the first one caused.
  });
  t.false(late.some(([name]) => name?.toLowerCase() === "set"));
  t.is(await admin.exists(KEY), 0);
});

test("the first lock is released if its command runs after its caller got LOCK_MISCONFIGURED", async (t) => {
  const secure = createSecureServer(UNTRUSTED, (socket) => socket.on("error", () => {}));
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  const { port } = secure.address() as AddressInfo;
  const client = new Redis({ host: "127.0.0.1", port, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on("error", () => {});
  t.teardown(() => client.disconnect());
  const waiting = processOver(t, redisStore(client));
  await t.throwsAsync(
    waiting.call(KEY, { ...ENDLESS, lockTime: "10m" }, () => t.fail()),
    { code: "LOCK_MISCONFIGURED", message: /speaks TLS, and the connection does not/ },
  );
  secure.close();
  await once(secure, "close");
  const plain = await startRedisAt(port);
  t.teardown(plain.stop);
  await client.ping();
  await until(async () => (await plain.client().exists(KEY)) === 0); // The command in the client's queue has run before the ping.
});

test("the first lock counts as acquired although the reply comes after the timeout", async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  const proxy = await proxyOf(t, own);
  const client = clientOf(t, { port: proxy.port });
  await client.script("LOAD", CHECK_AND_ACQUIRE.source);
  const store = redisStore(client);
  const request = { key: KEY, requestId: newId(), lockTimeMs: 60_000, fencing: false };
  proxy.withholdReplies();
  const reply = store.acquire(request, 50);
  await t.throwsAsync(store.acquire({ ...request, requestId: newId() }, 100)); // This caller shares the check, and gives up.
  proxy.heal();
  t.true((await reply).acquired);
});

test("an error reply shows that client and server speak one protocol, so nothing tests that", async (t) => {
  const admin = server.client();
  await admin.call("ACL", "SETUSER", "no-scripts", "reset", "on", ">pw", "~*", "&*", "+@all", "-evalsha");
  const proxy = await proxyOf(t, server);
  const client = new Redis({ port: proxy.port, username: "no-scripts", password: "pw" });
  t.teardown(() => client.disconnect());
  await client.ping();
  isMisconfigured(t, await refusal(t, redisStore(client)), /user lacks permission/);
  t.is(proxy.connectionsMade, 1);
});

test("a read-only replica is reported, even if somebody holds the key of the first lock", async (t) => {
  const replica = await startRedis("--replicaof", "127.0.0.1", String(server.port));
  t.teardown(replica.stop);
  const key = `${KEY}_held`;
  await server.client().set(key, "held", "PX", 60_000);
  await until(async () => (await replica.client().exists(key)) === 1);
  const process = processOver(t, redisStore(clientOf(t, { port: replica.port })));
  await t.throwsAsync(
    process.call(key, { retryTimes: 0 }, () => t.fail()),
    { code: "LOCK_UNREACHABLE", message: /read-only replica/ },
  );
});
