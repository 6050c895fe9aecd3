import { monotonicMs } from "./monotonic";
import type { ClusterNode, RedisCluster } from "./redis-cluster";
import { until } from "./until";

/** How many keys move at once, as `redis-cli --cluster reshard` would by default or a little more. */
const AT_ONCE = 100;
const MIGRATE_WITHIN_MS = 5_000;
const MOST_TIMES = 10_000;
/** Much longer than the nodes take to tell each other. */
const ASKED_AGAIN_MS = 3_000;

/**
 * The slot of the key is on its way to another master, and stays so: the keys that are there stay, and new ones are made
 * at the other. Returns what ends it, as `migrateSlot` does.
 */
export async function openSlot(
  cluster: RedisCluster,
  key: string,
  to: ClusterNode,
): Promise<() => Promise<void>> {
  await agreeing(cluster);
  const from = await cluster.masterOf(key);
  const slot = await slotOf(from, key);
  await to.admin.cluster("SETSLOT", slot, "IMPORTING", from.id);
  await from.admin.cluster("SETSLOT", slot, "MIGRATING", to.id);
  return () => migrateSlot(cluster, key, to);
}

/** The slot of the key moves to another master with all its keys. */
export async function migrateSlot(cluster: RedisCluster, key: string, to: ClusterNode): Promise<void> {
  await agreeing(cluster);
  const from = await cluster.masterOf(key);
  const slot = await slotOf(from, key);
  await to.admin.cluster("SETSLOT", slot, "IMPORTING", from.id);
  await from.admin.cluster("SETSLOT", slot, "MIGRATING", to.id);
  for (let nth = 1; ; nth += 1) {
    const keys = await from.admin.cluster("GETKEYSINSLOT", slot, AT_ONCE);
    if (keys.length === 0) break;
    if (nth > MOST_TIMES) throw new Error(`slot ${slot} still has keys after ${MOST_TIMES} times ${AT_ONCE}`);
    await from.admin.call("MIGRATE", "127.0.0.1", to.port, "", 0, MIGRATE_WITHIN_MS, "KEYS", ...keys);
  }
  // The one who gets it first: otherwise, for a moment, nobody would have it.
  for (const node of [to, from]) await node.admin.cluster("SETSLOT", slot, "NODE", to.id);
  for (const node of cluster.nodes) {
    if (node === to || node === from || !node.isRunning) continue;
    await node.admin.cluster("SETSLOT", slot, "NODE", to.id).catch(() => {}); // A replica hears it from its master.
  }
  await agreedUpon(cluster, slot, to);
}

/**
 * All nodes name one owner of the slot. On a machine that is so busy that a node was taken for dead meanwhile, a fail-over
 * and the move may be of the same epoch: then the new owner says its word once more, in a higher one.
 */
async function agreedUpon(cluster: RedisCluster, slot: number, to: ClusterNode): Promise<void> {
  let askedAt = monotonicMs();
  await until(async () => {
    const running = cluster.nodes.filter(({ isRunning }) => isRunning);
    const owners = await Promise.all(running.map((node) => ownerOf(node, slot)));
    if (owners[0] !== undefined && new Set(owners).size === 1) return true;
    if (monotonicMs() - askedAt > ASKED_AGAIN_MS) {
      askedAt = monotonicMs();
      await to.admin.cluster("BUMPEPOCH");
    }
    return false;
  });
}

async function ownerOf({ admin }: ClusterNode, slot: number): Promise<number | undefined> {
  const table = await admin.cluster("SLOTS");
  const [, , master] = table.find(([from, to]) => from <= slot && slot <= to) ?? [];
  return master?.[1];
}

/**
 * All have heard of what moved last: of two moves at once, a node may believe the older word of the two, and then the old
 * master and the new one each name the other, for good. Whoever moves slots moves one after the other.
 */
async function agreeing({ nodes }: RedisCluster): Promise<void> {
  await until(async () => {
    const running = nodes.filter(({ isRunning }) => isRunning);
    const epochs = await Promise.all(running.map((node) => node.info("cluster", "cluster_current_epoch")));
    return new Set(epochs).size === 1;
  });
}

async function slotOf({ admin }: ClusterNode, key: string): Promise<number> {
  return await admin.cluster("KEYSLOT", key);
}
