import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import type { Cluster } from "ioredis";
import { LockError, LockLostError } from "../../runtime/base/errors";
import type { WholeStore } from "../../runtime/stores/port";
import type { ValkeyGlide } from "../../runtime/stores/redis/client";
import { redisStore } from "../../runtime/stores/redis/redis";
import { storeContract } from "../store-contract";
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
import { openGlideCluster, type GlideConfig, type OpenGlide } from "../support/glide";
import { hasOtherClients, withOtherClients } from "../support/other-clients";
import { startRedisCluster, type ClusterNode, type RedisCluster } from "../support/redis-cluster";
import { retire } from "../support/retire";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";
import { closeWhileDown } from "./close-while-down";
import { recordEvents } from "./noting-listener";
import { registering } from "./registering";
import { shardInboxes, untilSubscribedEverywhere } from "./subscribed-everywhere";

// Locks over a `GlideClusterClient` of Valkey GLIDE. Failovers and migrating slots have their tests in `test/faults/cluster.test.ts` and
// `redis-slots.test.ts`.

const ENDLESS = { retryTimes: 1, waitTime: "10m" } as const;

let cluster: RedisCluster;
let admin: Cluster;
/** The store under the contract. Its client returns buffers by default. */
let contract: { readonly given: OpenGlide; readonly store: WholeStore };

test.before(async () => {
  if (!hasOtherClients) return;
  cluster = await startRedisCluster(3);
  admin = cluster.cluster();
  const given = await openGlideCluster(cluster, { defaultDecoder: 0 });
  contract = { given, store: redisStore(given) };
  await untilSubscribedEverywhere(contract.store, cluster);
});

test.after.always(async () => {
  if (!hasOtherClients) return;
  await contract.store.close();
  contract.given.glide.close();
  await cluster.stop();
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
  to = cluster,
  options: Partial<GlideConfig> = {},
): Promise<OpenGlide> {
  const given = await openGlideCluster(to, options);
  t.teardown(() => given.glide.close());
  return given;
}

function storeOver(t: ExecutionContext, given: ValkeyGlide): WholeStore {
  const store = redisStore(given);
  t.teardown(() => store.close());
  return store;
}

function processOver(t: ExecutionContext, given: ValkeyGlide): FleetProcess {
  const process = new FleetProcess({ store: redisStore(given), logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  return process;
}

async function ownCluster(t: ExecutionContext, masters = 2): Promise<RedisCluster> {
  const own = await startRedisCluster(masters);
  t.teardown(() => own.stop());
  return own;
}

async function killAll({ nodes }: RedisCluster, type: "normal" | "pubsub"): Promise<void> {
  await Promise.all(nodes.map((node) => node.admin.call("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes")));
}

// ---- replies --------------------------------------------------------------------------------------------

withOtherClients("a key that does not hold a lock fails only the requests for that key", async (t) => {
  const store = storeOver(t, await connected(t));
  const name = newKey();
  const [list, free, held] = [`{${name}}list`, `{${name}}free`, `{${name}}held`];
  const requestId = newId();
  await admin.rpush(list, "an item");
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

withOtherClients("locks continue after all nodes have lost their scripts", async (t) => {
  const store = storeOver(t, await connected(t));
  const [key, requestId] = [newKey(), newId()];
  await acquire(store, key, requestId);
  await renew(store, key, requestId, 60_000);
  for (const node of cluster.nodes) await node.admin.script("FLUSH");
  t.deepEqual(await renew(store, key, requestId, 60_000), { renewed: true });
});

withOtherClients("a call over a closed client says that the client was closed", async (t) => {
  const given = await connected(t);
  const process = processOver(t, given);
  given.glide.close();
  await t.throwsAsync<LockError>(
    process.call(newKey(), ENDLESS, () => t.fail()),
    { code: "LOCK_MISCONFIGURED", message: /was closed by close\(\)/ },
  );
});

withOtherClients("`replicas` rejects, and says which clients confirm locks with them", async (t) => {
  const process = processOver(t, await connected(t));
  await t.throwsAsync<LockError>(
    process.call(newKey(), { ...ENDLESS, replicas: 1 }, () => t.fail()),
    {
      code: "LOCK_MISCONFIGURED",
      message: /remove `replicas`, or pass a `new Cluster\(\[\.\.\.\]\)` of ioredis/,
    },
  );
});

// ---- wake-ups -------------------------------------------------------------------------------------------

withOtherClients(
  "a waiter is notified, and the application's client receives only its own messages",
  async (t) => {
    const given = await connected(t);
    const process = processOver(t, given);
    const message = given.glide.getPubSubMessage();
    await given.glide.customCommand(["ssubscribe", "theirs"]);
    const [entered, end] = [deferred(), deferred()];
    const key = newKey();
    const holder = processOver(t, await connected(t)).call(key, ENDLESS, async () => {
      entered.resolve();
      await end.promise;
    });
    await entered.promise;
    const waiter = process.call(key, ENDLESS, () => "in");
    await until(async () => (await admin.exists(queueOf(key))) === 1);
    end.resolve();
    await holder;
    t.is(await waiter, "in");
    await until(async () => (await admin.spublish("theirs", "for the user")) === 1);
    t.like(await message, { channel: "theirs", message: "for the user" });
  },
);

withOtherClients("a store closes its subscriptions and its second client", async (t) => {
  const own = await ownCluster(t);
  const given = await connected(t, own);
  const connections = async (): Promise<number[]> =>
    await Promise.all(
      own.nodes.map(
        async ({ admin: node }) =>
          String(await node.client("LIST"))
            .trim()
            .split("\n").length,
      ),
    );
  const store = redisStore(given);
  await acquire(store, newKey(), newId());
  const before = await connections();
  await untilSubscribedEverywhere(store, own);
  t.true((await connections()).every((count, nth) => count > (before[nth] ?? NaN)));
  await store.close();
  await until(async () => String(await connections()) === String(before));
  t.deepEqual((await Promise.all(own.nodes.map(shardInboxes))).flat(), []);
});

for (const [what, ...rights] of [
  ["sharded channels", "-ssubscribe", "-spublish"],
  ["any channel", "resetchannels"],
] as const) {
  withOtherClients(
    `a user without permission for ${what} still acquires a lock when it becomes free`,
    async (t) => {
      const own = await ownCluster(t);
      for (const node of own.nodes)
        await node.admin.call("ACL", "SETUSER", "u", "on", ">p", "~*", "&*", "+@all", ...rights);
      const credentials = { username: "u", password: "p" };
      const [one, two] = [await connected(t, own, { credentials }), await connected(t, own, { credentials })];
      const [entered, end] = [deferred(), deferred()];
      const key = newKey();
      const holder = processOver(t, one).call(key, ENDLESS, async () => {
        entered.resolve();
        await end.promise;
      });
      await entered.promise;
      const waiter = processOver(t, two).call(key, ENDLESS, () => "in");
      const node = await own.masterOf(key);
      await until(async () => (await node.admin.exists(queueOf(key))) === 1);
      end.resolve();
      await holder;
      t.is(await waiter, "in");
    },
  );
}

// ---- lost replies ---------------------------------------------------------------------------------------

interface OverProxies {
  readonly store: WholeStore;
  readonly proxies: readonly TcpProxy[];
}

/** Opens a store whose client reaches each node of the cluster through a proxy. */
async function overProxies(t: ExecutionContext): Promise<OverProxies> {
  const proxies = await Promise.all(cluster.nodes.map(({ port }) => startTcpProxy(port)));
  const addressResolver = (host: string, port: number): [string, number] => {
    const nth = cluster.nodes.findIndex((node) => node.port === port);
    return [host, proxies[nth]?.port ?? port];
  };
  const given = await openGlideCluster(cluster, { requestTimeout: 30_000, addressResolver });
  const store = redisStore(given);
  t.teardown(async () => {
    await store.close();
    given.glide.close();
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });
  return { store, proxies };
}

withOtherClients(
  "a command whose reply is lost has its effect once, and the effect can be found",
  async (t) => {
    const { store, proxies } = await overProxies(t);
    const [taken, queuing, given] = [newKey(), newKey(), newKey()];
    const [one, two, three, four] = [newId(), newId(), newId(), newId()];
    await acquire(store, given, three);
    const next = placing(given, newId(), {}, four);
    for (const proxy of proxies) proxy.withholdReplies();
    const lost = Promise.allSettled([
      acquire(store, taken, one),
      enqueue(store, queuing, newId(), {}, two),
      store.queue.releaseAndEnqueue({ key: given, requestId: three }, next, TIMEOUT_MS),
    ]);
    await until(
      async () =>
        (await admin.exists(taken)) === 1 &&
        (await admin.exists(queuing)) === 1 &&
        (await admin.get(given)) === four,
    );
    for (const proxy of proxies) {
      proxy.cut();
      proxy.heal();
    }
    await lost;
    for (const [key, id] of [
      [taken, one],
      [queuing, two],
      [given, four],
    ] as const) {
      t.deepEqual(await renew(store, key, id, 60_000), { renewed: true });
      t.like(await acquire(store, key, id), { acquired: false, holder: id });
      t.deepEqual(await release(store, key, id), { released: true });
    }
  },
);

withOtherClients("other calls notice that a connection broke before a reply", async (t) => {
  const { store, proxies } = await overProxies(t);
  const { reconnected } = recordEvents(store);
  const [key, requestId] = [newKey(), newId()];
  t.deepEqual(await acquire(store, key, requestId), TAKEN);
  for (const proxy of proxies) proxy.withholdReplies();
  const lost = release(store, key, requestId).catch(() => {});
  await until(async () => (await admin.exists(key)) === 0);
  for (const proxy of proxies) {
    proxy.cut();
    proxy.heal();
  }
  await lost;
  await reconnected; // The store verifies all leases.
  t.pass();
});

// ---- faults ---------------------------------------------------------------------------------------------

withOtherClients(
  "a holder keeps its lock and waiters enter after it while all connections are killed",
  async (t) => {
    const own = await ownCluster(t);
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
    const { admin: node } = await own.masterOf(key);
    await until(async () => (await node.exists(queueOf(key))) === 1);
    await killAll(own, "normal");
    await killAll(own, "pubsub");
    end.resolve();
    t.is(await holder, "kept");
    t.deepEqual(await Promise.all(waiters), ["in", "in", "in"]);
  },
);

withOtherClients(
  "no call hangs and no two bodies overlap while connections are killed again and again",
  async (t) => {
    const own = await ownCluster(t);
    const key = newKey();
    const fleet = [1, 2, 3].map(async () => processOver(t, await connected(t, own)));
    let [inside, overlaps, entered] = [0, 0, 0];
    const calls = (await Promise.all(fleet)).flatMap((member) =>
      Array.from({ length: 20 }, () =>
        member.call(key, ENDLESS, async ({ signal }) => {
          inside += 1;
          entered += 1;
          if (inside > 1) overlaps += 1;
          if (entered % 5 === 0) await killAll(own, "normal");
          if (entered % 11 === 0) await killAll(own, "pubsub");
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

withOtherClients("a holder learns of its loss after its node is back without its data", async (t) => {
  const own = await ownCluster(t);
  const process = processOver(t, await connected(t, own, { requestTimeout: 250 }));
  const key = newKey();
  const node = await own.masterOf(key);
  const call = process.call(key, { lockTime: "10m" }, async ({ signal }) => {
    const aborted = once(signal, "abort");
    await node.kill();
    await process.call(`{${key}}2`, { retryTimes: 1, waitTime: "300ms" }, () => t.fail()).catch(() => {});
    await node.start();
    await aborted;
  });
  await t.throwsAsync(call, { instanceOf: LockLostError, message: /its key disappeared early/ });
});

for (const isMapped of [false, true]) {
  withOtherClients(
    `a lock is granted while its old master hangs and a replica has taken over${isMapped ? ", at mapped addresses" : ""}`,
    async (t) => {
      const own = await startRedisCluster(3, 1);
      const [master, other] = own.nodes;
      if (master === undefined || other === undefined) throw new Error("the cluster has no nodes");
      t.teardown(() => own.stop());
      const proxies = new Map<number, TcpProxy>();
      if (isMapped) for (const { port } of own.nodes) proxies.set(port, await startTcpProxy(port));
      t.teardown(() => Promise.all([...proxies.values()].map((proxy) => proxy.stop())));
      const given = await connected(t, own, {
        requestTimeout: 500,
        ...(isMapped && { addressResolver: (host, port) => [host, proxies.get(port)?.port ?? port] }),
      });
      const process = processOver(t, given);
      const key = await keyOf(own, master);
      t.is(await process.call(key, ENDLESS, () => "in"), "in");
      await own.setFailovers(true);
      hang(t, master.pid);
      await until(async () => {
        const slots = await other.admin.cluster("SLOTS");
        return slots.every(([, , node]) => node?.[1] !== master.port);
      });
      t.is(await process.call(key, ENDLESS, () => "again"), "again");
    },
  );
}

/** Suspends a process until the end of the test. */
function hang(t: ExecutionContext, pid: number): void {
  process.kill(pid, "SIGSTOP");
  t.teardown(() => process.kill(pid, "SIGCONT"));
}

/** Returns a key in a slot of the node. */
async function keyOf(own: RedisCluster, node: ClusterNode): Promise<string> {
  for (;;) {
    const key = `{${newKey()}}`;
    if ((await own.masterOf(key)) === node) return key;
  }
}

withOtherClients("while all nodes are down, waiters can be ended and the store closes", async (t) => {
  const own = await startRedisCluster(2);
  const given = await openGlideCluster(own);
  t.teardown(() => given.glide.close());
  const store = redisStore(given);
  await closeWhileDown(t, store, own.stop);
});
