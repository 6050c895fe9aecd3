import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import test, { type ExecutionContext } from "ava";
import { LockError, LockLostError, LockOptionError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import type { ValkeyGlide, ValkeyGlideClient } from "../../runtime/stores/redis/client";
import { quorumStore } from "../../runtime/stores/quorum/quorum-store";
import { redisStore } from "../../runtime/stores/redis/redis";
import { storeContract, untilListening } from "../store-contract";
import {
  acquire,
  enqueue,
  newId,
  newKey,
  placing,
  release,
  renew,
  TAKEN,
  TIMEOUT_MS,
} from "../store-contract/subject";
import { queueOf } from "../support/auxiliary-keys";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { openGlide, type GlideConfig, type OpenGlide } from "../support/glide";
import { hasOtherClients, withOtherClients } from "../support/other-clients";
import { startRedis, startRedisAt, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import { closeWhileDown } from "./close-while-down";
import { recordEvents } from "./noting-listener";
import { registering } from "./registering";

// Locks over a client of Valkey GLIDE for one node.

const KEY = "LOCK_glide";
const ENDLESS = { retryTimes: 1, waitTime: "10m" } as const;
const SHORT = { connectionTimeout: 500 };

let server: RedisServer;
/** The store under the contract. Its client returns buffers by default. */
let contract: { readonly given: OpenGlide; readonly store: WholeStore };
let admin: Redis;

test.before(async () => {
  server = await startRedis();
  if (!hasOtherClients) return;
  const given = await openGlide(server.port, { databaseId: 3, defaultDecoder: 0 });
  contract = { given, store: redisStore(given) };
  admin = server.client({ db: 3 });
  await untilListening(contract.store);
});

test.after.always(async () => {
  if (hasOtherClients) {
    await contract.store.close();
    contract.given.glide.close();
  }
  await server.stop();
});

if (hasOtherClients) {
  storeContract(registering(test), () => ({
    store: contract.store,
    elapse: (ms) => pause(ms + 5), // Redis expires a key up to a millisecond late.
    async put(key, value, ms) {
      await admin.set(key, value, "PX", ms);
    },
  }));
}

/** Connects a client, which closes at the end of the test. */
async function connected(
  t: ExecutionContext,
  { port }: { readonly port: number } = server,
  options: Partial<GlideConfig> = {},
): Promise<OpenGlide> {
  const given = await openGlide(port, options);
  t.teardown(() => given.glide.close());
  return given;
}

function storeOver(t: ExecutionContext, given: ValkeyGlide | ValkeyGlideClient): WholeStore {
  const store = redisStore(given);
  t.teardown(() => store.close());
  return store;
}

function processOver(t: ExecutionContext, given: ValkeyGlide | ValkeyGlideClient): FleetProcess {
  const process = new FleetProcess({ store: redisStore(given), logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  return process;
}

// ---- replies --------------------------------------------------------------------------------------------

withOtherClients("a key that does not hold a lock fails only the requests for that key", async (t) => {
  const store = storeOver(t, await connected(t));
  const [list, free, held, requestId] = [newKey(), newKey(), newKey(), newId()];
  await server.client().rpush(list, "an item");
  await acquire(store, held, requestId);
  const renewals = await store.renew(
    [list, free, held].map((key) => ({ key, requestId, lockTimeMs: 60_000, fencing: false })),
    TIMEOUT_MS,
  );
  t.deepEqual(renewals, [
    { renewed: false, holder: "(other data than text)" },
    { renewed: false, holder: undefined },
    { renewed: true },
  ]);
  t.deepEqual(await store.peek([list, held], TIMEOUT_MS), ["(other data than text)", requestId]);
});

withOtherClients("a value that is not valid text counts as another caller's hold", async (t) => {
  const store = storeOver(t, await connected(t));
  const key = newKey();
  await server.client().set(key, Buffer.from([0xff, 0xfe]));
  t.like(await acquire(store, key, newId()), { acquired: false, holder: "\uFFFD\uFFFD" });
  t.like(await enqueue(store, key, newId()), { acquired: false, holder: "\uFFFD\uFFFD" });
});

withOtherClients("locks continue after Redis has lost its scripts", async (t) => {
  const store = storeOver(t, await connected(t));
  const [key, requestId] = [newKey(), newId()];
  await acquire(store, key, requestId);
  await renew(store, key, requestId, 60_000);
  await server.client().script("FLUSH");
  t.deepEqual(await renew(store, key, requestId, 60_000), { renewed: true });
});

withOtherClients("the error about a missing permission names the fix", async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  await own.client().call("ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-set");
  const credentials = { username: "u", password: "p" };
  const process = processOver(t, await connected(t, own, { credentials }));
  await t.throwsAsync<LockError>(
    process.call(KEY, ENDLESS, () => t.fail()),
    { code: "LOCK_MISCONFIGURED", message: /lacks permission for a command/ },
  );
});

withOtherClients(
  "a user without permission for INFO, which GLIDE needs to connect, is reported",
  async (t) => {
    const own = await startRedis();
    t.teardown(own.stop);
    await own.client().call("ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-info");
    const credentials = { username: "u", password: "p" };
    const process = processOver(t, await connected(t, own, { credentials, lazyConnect: true }));
    await t.throwsAsync<LockError>(
      process.call(KEY, ENDLESS, () => t.fail()),
      { code: "LOCK_MISCONFIGURED", message: /may not run INFO.*Fix: grant it \+info/ },
    );
  },
);

withOtherClients(
  "a command that GLIDE queues in a transaction throws, and leaves no lock when it runs",
  async (t) => {
    const { glide } = await connected(t);
    const process = processOver(t, glide);
    const key = newKey();
    t.is(await process.call(key, ENDLESS, () => "in"), "in");
    await glide.customCommand(["MULTI"]);
    await t.throwsAsync(
      process.call(key, { retryTimes: 1, waitTime: "2s" }, () => t.fail()),
      { message: /unexpected reply.*'QUEUED'/ },
    );
    await glide.customCommand(["EXEC"]);
    const watcher = server.client();
    await until(async () => (await watcher.exists(key)) === 0);
    t.is(await process.call(key, ENDLESS, () => "in"), "in");
  },
);

withOtherClients("a call over a closed client says that the client was closed", async (t) => {
  const given = await connected(t);
  const process = processOver(t, given);
  given.glide.close();
  await t.throwsAsync<LockError>(
    process.call(KEY, ENDLESS, () => t.fail()),
    { code: "LOCK_MISCONFIGURED", message: /was closed by close\(\)/ },
  );
});

// ---- other connections ----------------------------------------------------------------------------------

withOtherClients(
  "a client without its configuration polls for a free lock, and one warning says what to pass",
  async (t) => {
    const { glide } = await connected(t);
    const warnings: string[] = [];
    const store = storeOver(t, glide);
    const { warned } = recordEvents(store);
    const process = new FleetProcess({ store, logger: { warn: (message) => warnings.push(message) } });
    const [entered, end] = [deferred(), deferred()];
    const key = newKey();
    const holder = processOver(t, await connected(t)).call(key, ENDLESS, async () => {
      entered.resolve();
      await end.promise;
    });
    await entered.promise;
    const waiters = [1, 2].map(() => process.call(key, ENDLESS, () => "in"));
    await warned;
    end.resolve();
    await holder;
    t.deepEqual(await Promise.all(waiters), ["in", "in"]);
    t.is(warnings.length, 1);
    t.regex(
      warnings.join(),
      /polling once a second\. Fix: pass \{ glide: client, config \} to configure\(\)/,
    );
  },
);

withOtherClients("`replicas` over a bare client rejects, and says what to pass", async (t) => {
  const process = processOver(t, (await connected(t)).glide);
  await t.throwsAsync<LockError>(
    process.call(KEY, { ...ENDLESS, replicas: 1 }, () => t.fail()),
    { code: "LOCK_MISCONFIGURED", message: /remove `replicas`, or pass \{ glide: client, config \}/ },
  );
});

withOtherClients(
  "a waiter is notified, and the application's client receives only its own messages",
  async (t) => {
    const given = await connected(t);
    const process = processOver(t, given);
    const message = given.glide.getPubSubMessage();
    await given.glide.customCommand(["subscribe", "theirs"]);
    const [entered, end] = [deferred(), deferred()];
    const key = newKey();
    const holder = processOver(t, await connected(t)).call(key, ENDLESS, async () => {
      entered.resolve();
      await end.promise;
    });
    await entered.promise;
    const waiter = process.call(key, ENDLESS, () => "in");
    const watcher = server.client();
    await until(async () => (await watcher.exists(queueOf(key))) === 1);
    end.resolve();
    await holder;
    t.is(await waiter, "in");
    await until(async () => (await watcher.publish("theirs", "for the user")) === 1);
    t.like(await message, { channel: "theirs", message: "for the user" });
  },
);

withOtherClients(
  "a user without permission for the channels is reported, and waits by polling",
  async (t) => {
    const own = await startRedis();
    t.teardown(own.stop);
    await own.client().call("ACL", "SETUSER", "u", "on", ">p", "~*", "+@all", "resetchannels");
    const credentials = { username: "u", password: "p" };
    const { glide, config } = await connected(t, own, { credentials });
    // GLIDE reports the refusal only by this timeout, so the second client gets a short one.
    const store = storeOver(t, { glide, config: { ...config, advancedConfiguration: SHORT } });
    const { warned } = recordEvents(store);
    const key = newKey();
    await acquire(store, key, newId());
    await enqueue(store, key, newId());
    t.regex(await warned, /no permission for the channels that wake waiters/);
  },
);

withOtherClients(
  "a lock with replicas is on the replica when acquire() resolves, in the client's database",
  async (t) => {
    const master = await startRedis("--repl-diskless-sync-delay", "0");
    const replica = await startRedis("--replicaof", "127.0.0.1", String(master.port));
    t.teardown(async () => {
      await master.stop();
      await replica.stop();
    });
    const store = storeOver(t, await connected(t, master, { databaseId: 3 }));
    const masterAdmin = master.client();
    await until(async () => (await masterAdmin.call("WAIT", 1, 10)) === 1);
    const there = replica.client({ db: 3 });
    const held = { key: newKey(), requestId: newId(), lockTimeMs: 10_000, fencing: false, replicas: 1 };
    t.like(await store.acquire(held, TIMEOUT_MS), { acquired: true });
    t.is(await there.get(held.key), held.requestId);
    t.deepEqual(await store.renew([held], TIMEOUT_MS), [{ renewed: true }]);
    // GLIDE replaces the connection by itself. A WAIT on the new one would wait for nothing.
    await masterAdmin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    const acquireAnother = () => store.acquire({ ...held, key: newKey(), requestId: newId() }, TIMEOUT_MS);
    await t.throwsAsync(acquireAnother(), { message: /the connection was replaced|connection error/ });
    // If GLIDE reported the broken connection first, the next lock notices the new one.
    await until(async () => (await acquireAnother().catch(() => undefined))?.acquired === true);
    process.kill(replica.pid, "SIGSTOP");
    await t.throwsAsync(store.acquire({ ...held, key: newKey(), requestId: newId() }, 1_000), {
      message: /0 of 1 replicas confirmed|did not answer in time/,
    });
    process.kill(replica.pid, "SIGCONT");
  },
);

withOtherClients("the error about a permission that only `replicas` needs names the fix", async (t) => {
  const own = await startRedis();
  t.teardown(own.stop);
  await own.client().call("ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", "-client");
  const credentials = { username: "u", password: "p" };
  const process = processOver(t, await connected(t, own, { credentials }));
  await t.throwsAsync<LockError>(
    process.call(KEY, { ...ENDLESS, replicas: 1 }, () => t.fail()),
    { code: "LOCK_MISCONFIGURED", message: /lacks permission for a command.*client\|info/ },
  );
});

withOtherClients("a quorum rejects clients of GLIDE, which do not report reconnects", async (t) => {
  const { glide } = await connected(t);
  const masters = [glide, "redis://a", "redis://b"] as unknown as string[];
  t.throws(() => quorumStore(masters), { instanceOf: LockOptionError, message: /Valkey GLIDE.*Fix: / });
});

// ---- lost replies ---------------------------------------------------------------------------------------

interface OverProxy {
  readonly store: WholeStore;
  readonly proxy: TcpProxy;
}

async function overProxy(t: ExecutionContext): Promise<OverProxy> {
  const proxy = await startTcpProxy(server.port);
  const given = await openGlide(proxy.port, { requestTimeout: 30_000 });
  const store = redisStore(given);
  t.teardown(async () => {
    await store.close();
    given.glide.close();
    await proxy.stop();
  });
  return { store, proxy };
}

withOtherClients("a command whose reply is lost rejects, and its effect can be found", async (t) => {
  const watcher = server.client();
  const { store, proxy } = await overProxy(t);
  const [taken, queuing, given] = [newKey(), newKey(), newKey()];
  const [one, two, three, four] = [newId(), newId(), newId(), newId()];
  await acquire(store, given, three);
  const next = placing(given, newId(), {}, four);
  proxy.withholdReplies();
  const lost = Promise.allSettled([
    acquire(store, taken, one),
    enqueue(store, queuing, newId(), {}, two),
    store.queue.releaseAndEnqueue({ key: given, requestId: three }, next, TIMEOUT_MS),
  ]);
  await until(
    async () => (await watcher.exists(taken, queuing)) === 2 && (await watcher.get(given)) === four,
  );
  proxy.cut();
  t.deepEqual(
    (await lost).map(({ status }) => status),
    ["rejected", "rejected", "rejected"],
  );
  for (const [key, id] of [
    [taken, one],
    [queuing, two],
    [given, four],
  ] as const) {
    t.deepEqual(await renew(store, key, id, 60_000), { renewed: true });
    t.like(await acquire(store, key, id), { acquired: false, holder: id });
    t.deepEqual(await release(store, key, id), { released: true });
  }
});

withOtherClients(
  "a release whose reply is lost rejects, and other calls notice the broken connection",
  async (t) => {
    const watcher = server.client();
    const { store, proxy } = await overProxy(t);
    const { reconnected } = recordEvents(store);
    const [key, requestId] = [newKey(), newId()];
    t.deepEqual(await acquire(store, key, requestId), TAKEN);
    proxy.withholdReplies();
    const lost = release(store, key, requestId);
    await until(async () => (await watcher.exists(key)) === 0);
    proxy.cut();
    await t.throwsAsync(lost);
    await reconnected; // The store verifies all leases.
  },
);

// ---- faults ---------------------------------------------------------------------------------------------

withOtherClients(
  "a holder keeps its lock and waiters enter after it while all connections are killed",
  async (t) => {
    const own = await startRedis();
    t.teardown(own.stop);
    const [entered, end] = [deferred(), deferred()];
    const key = newKey();
    const holder = processOver(t, await connected(t, own)).call(key, { lockTime: "10m" }, async (lock) => {
      entered.resolve();
      await end.promise;
      return lock.remaining() > 0 ? "kept" : "lost";
    });
    await entered.promise;
    const two = processOver(t, await connected(t, own));
    const waiters = [1, 2, 3].map(() => two.call(key, ENDLESS, () => "in"));
    const watcher = own.client();
    await until(async () => (await watcher.exists(queueOf(key))) === 1);
    for (const type of ["normal", "pubsub"])
      await watcher.call("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
    end.resolve();
    t.is(await holder, "kept");
    t.deepEqual(await Promise.all(waiters), ["in", "in", "in"]);
  },
);

withOtherClients(
  "no call hangs and no two bodies overlap while connections are killed again and again",
  async (t) => {
    const own = await startRedis();
    t.teardown(own.stop);
    const key = newKey();
    const fleet = [1, 2, 3].map(async () => processOver(t, await connected(t, own)));
    const watcher = own.client();
    let [inside, overlaps, entered] = [0, 0, 0];
    const calls = (await Promise.all(fleet)).flatMap((member) =>
      Array.from({ length: 20 }, () =>
        member.call(key, ENDLESS, async ({ signal }) => {
          inside += 1;
          entered += 1;
          if (inside > 1) overlaps += 1;
          if (entered % 5 === 0) await watcher.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
          if (entered % 11 === 0) await watcher.call("CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes");
          await pause(1);
          if (!signal.aborted) inside -= 1;
        }),
      ),
    );
    const outcomes = await Promise.allSettled(calls);
    t.is(outcomes.length, 60);
    t.deepEqual(
      outcomes.filter(({ status }) => status === "rejected"),
      [],
    );
    t.is(overlaps, 0);
  },
);

withOtherClients(
  "a holder learns of its loss after a command failed and Redis is back without its data",
  async (t) => {
    const first = await startRedis();
    const given = await connected(t, first, { requestTimeout: 250 });
    const process = processOver(t, given);
    const call = process.call(newKey(), { lockTime: "10m" }, async ({ signal }) => {
      const aborted = once(signal, "abort");
      await first.stop();
      await process.call(newKey(), { retryTimes: 1, waitTime: "100ms" }, () => t.fail()).catch(() => {});
      const second = await startRedisAt(first.port);
      t.teardown(second.stop);
      await aborted;
    });
    await t.throwsAsync(call, { instanceOf: LockLostError, message: /its key disappeared early/ });
  },
);

withOtherClients("while the server is down, waiters can be ended and the store closes", async (t) => {
  const own = await startRedis();
  const given = await connected(t, own);
  const store = redisStore(given);
  await closeWhileDown(t, store, own.stop);
});
