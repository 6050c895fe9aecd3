import { drop, newId, newKey, place, take, WITHIN_MS } from "../../runtime/stores/contract/subject";
import type { Store } from "../../runtime/stores/port";
import type { ClusterNode, RedisCluster } from "../support/redis-cluster";
import { until } from "../support/until";

/** Resolves when the store, alone in its cluster or not, hears hints from one more inbox of each master. */
export async function hearingEverywhere(store: Store, cluster: RedisCluster): Promise<void> {
  const masters = cluster.nodes.filter(({ master }) => master === undefined);
  for (const master of masters) {
    const before = await shardInboxes(master);
    const key = await keyAt(cluster, master);
    const [holder, probe] = [newId(), newId()];
    await take(store, key, holder);
    await place(store, key, probe);
    await until(async () => (await shardInboxes(master)) > before);
    await store.leave(key, probe, WITHIN_MS);
    await drop(store, key, holder);
  }
}

/** How many stores hear hints from the master. */
export async function shardInboxes({ admin }: ClusterNode): Promise<number> {
  return ((await admin.call("PUBSUB", "SHARDCHANNELS", "lockweave:2:inbox:*")) as unknown[]).length;
}

/** A new key of the master's. */
export async function keyAt(cluster: RedisCluster, master: ClusterNode): Promise<string> {
  for (;;) {
    const key = newKey();
    if ((await cluster.masterOf(key)) === master) return key;
  }
}
