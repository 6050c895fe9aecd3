import test, { type ExecutionContext } from "ava";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { fenceOf } from "../support/auxiliary-keys";
import { Crowd, PROCESSES } from "../support/crowd";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { openGlideCluster } from "../support/glide";
import { monotonicMs } from "../support/monotonic";
import { hasOtherClients } from "../support/other-clients";
import { startRedisCluster, type ClusterNode, type RedisCluster } from "../support/redis-cluster";
import { migrateSlot } from "../support/reshard";
import { retire } from "../support/retire";
import { judge } from "../support/sections";
import { inRounds } from "../support/suites";
import { until } from "../support/until";

// Mutual exclusion while a cluster loses nodes, fails over masters, and moves slots.

/** `CLUSTER_ROUNDS=20` plays each scenario 20 times, including the heavy ones. */
const ROUNDS = Number(process.env["CLUSTER_ROUNDS"] ?? 1);
/** For a machine that is busy with other tests. The cluster notices a failed node only after some seconds. */
const ROUND_WITHIN_MS = 100_000;
/** A replica gives up a manual failover after five seconds. */
const ASKED_AGAIN_MS = 6_000;

type Scenario = (cluster: RedisCluster, keys: readonly string[], crowd: Crowd) => Promise<void>;

/** Waits until another node serves the slots of the dead master, and returns it. */
async function succeeded(cluster: RedisCluster, key: string, dead: ClusterNode): Promise<ClusterNode> {
  let successor: ClusterNode | undefined;
  await until(async () => {
    successor = await cluster.masterOf(key).catch(() => undefined);
    return successor !== undefined && successor !== dead && (await cluster.isWhole());
  });
  if (successor === undefined) throw new Error("no node has taken over from the dead master");
  return successor;
}

async function shardChannels({ admin }: ClusterNode): Promise<number> {
  return ((await admin.call("PUBSUB", "SHARDCHANNELS")) as unknown[]).length;
}

const SCENARIOS: Record<string, { readonly play: Scenario; readonly isHeavy?: boolean }> = {
  "a master is killed, and with it the connections for its wake-ups": {
    async play(cluster, [key = ""], crowd) {
      const master = await cluster.masterOf(key);
      await until(async () => (await shardChannels(master)) > 0);
      await master.kill();
      const successor = await succeeded(cluster, key, master);
      await crowd.progresses();
      await until(async () => (await shardChannels(successor)) > 0);
      await master.start();
      await until(() => cluster.isWhole());
    },
  },
  "masters fail over to their replicas on command": {
    async play(cluster, keys, crowd) {
      for (const key of keys) {
        await giveAway(cluster, key);
        await crowd.progresses();
      }
    },
  },
  "slots move under load": {
    async play(cluster, keys, crowd) {
      for (const key of [...keys, ...keys]) {
        await migrateSlot(cluster, key, await otherMaster(cluster, key));
        await crowd.progresses();
      }
    },
  },
  "every node is restarted, one after the other": {
    isHeavy: true,
    async play(cluster, keys, crowd) {
      for (const node of cluster.nodes) {
        const owners = await Promise.all(keys.map((key) => cluster.masterOf(key)));
        const key = keys.find((_, nth) => owners[nth] === node);
        if (key !== undefined) await giveAway(cluster, key);
        await node.kill();
        await crowd.progresses();
        await node.start();
        await until(() => cluster.isWhole());
      }
    },
  },
};

/** Fails over the master of the key to its replica. Repeats the command, because it expires if the nodes are too busy. */
async function giveAway(cluster: RedisCluster, key: string): Promise<void> {
  const master = await cluster.masterOf(key);
  let askedAt = -Infinity;
  await until(async () => {
    if ((await cluster.masterOf(key)) !== master) return true;
    if (monotonicMs() - askedAt < ASKED_AGAIN_MS) return false;
    askedAt = monotonicMs();
    const replica = await replicaOf(cluster, master);
    await replica?.admin.cluster("FAILOVER").catch(() => {}); // It may have become the master meanwhile.
    return false;
  });
}

async function replicaOf(cluster: RedisCluster, master: ClusterNode): Promise<ClusterNode | undefined> {
  for (const node of cluster.nodes) {
    if (!node.isRunning || (await node.info("replication", "role")) !== "slave") continue;
    if (Number(await node.info("replication", "master_port")) === master.port) return node;
  }
  return undefined;
}

async function otherMaster(cluster: RedisCluster, key: string): Promise<ClusterNode> {
  const owner = await cluster.masterOf(key);
  for (const node of cluster.nodes) {
    if (node === owner || !node.isRunning) continue;
    if ((await node.info("replication", "role")) === "master") return node;
  }
  throw new Error("there is no other master");
}

/** Opens a store over a client of the cluster. */
type Open = (t: ExecutionContext, cluster: RedisCluster) => WholeStore | Promise<WholeStore>;

const GLIDE = "over GLIDE: ";

const LIBRARIES: Record<string, Open> = {
  "": (_, cluster) => redisStore(cluster.cluster()),
  "over node-redis: ": (_, cluster) => redisStore(cluster.nodeRedis()),
  ...(hasOtherClients && { [GLIDE]: openOverGlide }),
};

async function openOverGlide(t: ExecutionContext, cluster: RedisCluster): Promise<WholeStore> {
  const given = await openGlideCluster(cluster);
  t.teardown(() => given.glide.close());
  return redisStore(given);
}

async function play(t: ExecutionContext, open: Open, isShared: boolean): Promise<void> {
  t.timeout(ROUNDS * ROUND_WITHIN_MS);
  const cluster = await startRedisCluster(3, 3);
  t.teardown(() => cluster.stop());
  await cluster.setFailovers(true);
  const keys: string[] = [];
  for (const node of cluster.nodes.slice(0, 3)) keys.push(await keyOf(cluster, node));
  const stores: WholeStore[] = [];
  while (stores.length < PROCESSES) stores.push(await open(t, cluster));
  const next = (): WholeStore => {
    const store = stores.pop();
    if (store === undefined) throw new Error("the crowd has more processes than there are stores");
    return store;
  };
  const crowd = new Crowd(next, keys, isShared);
  t.teardown(() => crowd.end());
  await crowd.progresses();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, { play: strike, isHeavy = false }] of Object.entries(SCENARIOS)) {
      if (isHeavy && ROUNDS === 1) continue;
      if (!isShared && name.startsWith("a master is killed")) continue; // Nobody waits, so there are no wake-ups.
      try {
        await strike(cluster, keys, crowd);
        await crowd.progresses();
      } catch (error) {
        throw new Error(`${name}, round ${round}:\n${await cluster.views()}`, { cause: error });
      }
    }
  }
  await crowd.end();
  for (const [key, sections] of crowd.sections) {
    const { unannounced, fallenTokens } = judge(sections);
    t.log(`${key}: ${sections.length} sections`);
    t.deepEqual(unannounced, []);
    t.deepEqual(fallenTokens, []);
  }
  t.log(`failures: ${JSON.stringify([...crowd.failures])}`);
  const fences = new Set([...crowd.sections.keys()].map(fenceOf));
  await until(async () => {
    const left = await Promise.all(cluster.nodes.map(({ admin }) => admin.keys("*")));
    return left.flat().every((key) => fences.has(key));
  });
}

/** Returns a key in a slot of the node. */
async function keyOf(cluster: RedisCluster, node: ClusterNode): Promise<string> {
  for (let count = 0; count < 1_000; count += 1) {
    const key = `{LOCK_${count}}`;
    if ((await cluster.masterOf(key)) === node) return key;
  }
  throw new Error("the node has no slots");
}

function openProcess(t: ExecutionContext, store: WholeStore): FleetProcess {
  const own = new FleetProcess({ store, commandTimeout: "500ms", logger: { warn: () => {} } });
  t.teardown(() => retire(own));
  return own;
}

/** Cuts the replica off from its master. The clients of the master do not notice. */
async function cut(cluster: RedisCluster, master: ClusterNode): Promise<void> {
  const replica = await replicaOf(cluster, master);
  await master.admin.call("ACL", "SETUSER", "default", "-psync", "-sync");
  await master.admin.call("CLIENT", "KILL", "TYPE", "replica");
  await until(async () => (await replica?.info("replication", "master_link_status")) === "down");
}

for (const [title, open] of Object.entries(LIBRARIES)) {
  // The matrix runs the tests over each library. `npm test` must stay short.
  if (title !== "" && process.env["CLUSTER_ROUNDS"] === undefined) continue;
  inRounds("CLUSTER_ROUNDS")(
    `${title}no two bodies ever trust the same lock at once in a failing cluster, and nothing is left`,
    (t) => play(t, open, true),
  );

  inRounds("CLUSTER_ROUNDS")(
    `${title}no two bodies ever trust the same lock at once in a failing cluster without waiters`,
    (t) => play(t, open, false),
  );

  if (title === GLIDE) continue; // It does not confirm locks with the replicas of a cluster.

  test.serial(
    `${title}a lock that only the master held is lost long before a renewal, and one with replicas is not granted`,
    async (t) => {
      t.timeout(ROUND_WITHIN_MS);
      const cluster = await startRedisCluster(3, 3);
      t.teardown(() => cluster.stop());
      const [master] = cluster.nodes;
      if (master === undefined) throw new Error("the cluster has no nodes");
      const key = await keyOf(cluster, master);
      const [holder, other] = [
        openProcess(t, await open(t, cluster)),
        openProcess(t, await open(t, cluster)),
      ];
      t.is(await holder.call(key, { replicas: 1, waitTime: "20s" }, () => "in"), "in");
      await cut(cluster, master);
      const aborted = deferred();
      const entered = deferred();
      const lost = holder.call(key, { lockTime: "1h" }, async (lock) => {
        lock.signal.addEventListener("abort", () => aborted.resolve());
        entered.resolve();
        await aborted.promise;
      });
      const isLost = t.throwsAsync(lost);
      await entered.promise;
      const options = { replicas: 1, waitTime: "1s", retryTimes: 1 } as const;
      const refused = await t.throwsAsync(other.call(`${key}, refused`, options, () => t.fail()));
      t.regex(
        refused?.message ?? "",
        /0 of 1 replicas confirmed|replicas did not answer in time|no reply from the store/,
      );
      await cluster.setFailovers(true);
      await master.kill();
      await succeeded(cluster, key, master);
      await aborted.promise;
      t.like(await isLost, { code: "LOCK_LOST" });
      t.is(await other.call(key, { waitTime: "20s" }, () => "in"), "in");
      await master.start();
      await until(() => cluster.isWhole());
      t.is(await other.call(key, { replicas: 1, waitTime: "20s" }, () => "in"), "in");
    },
  );
}
