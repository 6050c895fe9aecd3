import { monotonicMs } from "./monotonic";
import type { ClusterNode, RedisCluster } from "./redis-cluster";
import { until } from "./until";

/** The number of keys that move at once, a little more than the default of `redis-cli --cluster reshard`. */
const AT_ONCE = 100;
const MIGRATE_WITHIN_MS = 5_000;
const MOST_TIMES = 10_000;
/** Much longer than the nodes need to inform each other. */
const ANNOUNCED_AGAIN_MS = 3_000;

/**
 * Begins to migrate the slot of the key to another master, and leaves it migrating. Existing keys stay, and new keys are
 * created at the other master. Returns a function that completes the migration.
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

/** Moves the slot of the key, with all its keys, to another master. */
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
  // The new owner first. Otherwise, nobody would own the slot for a moment.
  for (const node of [to, from]) await node.admin.cluster("SETSLOT", slot, "NODE", to.id);
  for (const node of cluster.nodes) {
    if (node === to || node === from || !node.isRunning) continue;
    await node.admin.cluster("SETSLOT", slot, "NODE", to.id).catch(() => {}); // A replica learns it from its master.
  }
  await agreedUpon(cluster, slot, to);
}

/**
 * Resolves when all nodes agree on the owner of the slot. If a busy machine caused a failover, it may have the same epoch as
 * the move. The new owner then announces itself again with a higher epoch.
 */
async function agreedUpon(cluster: RedisCluster, slot: number, to: ClusterNode): Promise<void> {
  let announcedAt = monotonicMs();
  await until(async () => {
    const running = cluster.nodes.filter(({ isRunning }) => isRunning);
    const owners = await Promise.all(running.map((node) => ownerOf(node, slot)));
    if (owners[0] !== undefined && new Set(owners).size === 1) return true;
    if (monotonicMs() - announcedAt > ANNOUNCED_AGAIN_MS) {
      announcedAt = monotonicMs();
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
 * Resolves when all nodes know of the last move. With two concurrent moves, a node may believe the older one, and the old
 * and the new master may name each other forever. So slots must move one after the other.
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
