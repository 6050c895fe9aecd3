import { drop, newId, newKey, place, take, TIMEOUT_MS } from "../../runtime/stores/contract/subject";
import type { Store } from "../../runtime/stores/port";
import { nameBeside } from "../../runtime/stores/redis/keys";
import type { ClusterNode, RedisCluster } from "../support/redis-cluster";
import { until } from "../support/until";

/** Resolves when the store hears hints from each master. */
export async function hearingEverywhere(store: Store, cluster: RedisCluster): Promise<void> {
  for (const node of cluster.nodes) {
    if (node.master === undefined) await hearingOf(store, cluster, await keyAt(cluster, node));
  }
}

/** Resolves when the store hears hints from the master that has the key, which is free then. */
export async function hearingOf(
  store: Store,
  cluster: RedisCluster,
  key: string,
  keyPrefix = "",
): Promise<void> {
  const master = await cluster.masterOf(keyPrefix + key);
  const [holder, probe] = [newId(), newId()];
  await take(store, key, holder);
  await place(store, key, probe);
  const queue = keyPrefix + nameBeside("queue", keyPrefix, key);
  await until(() => isHeard(master, queue, probe));
  await store.dequeue(key, probe, TIMEOUT_MS);
  await drop(store, key, holder);
}

/** Whether the one who waits in the queue gets the hints that the master sends. */
export async function isHeard(master: ClusterNode, queue: string, waiting: string): Promise<boolean> {
  const entry = (await master.admin.zrange(queue, 0, "-1")).find((one) => one.startsWith(waiting));
  if (entry === undefined) throw new Error(`nobody of that name stands in ${queue}`);
  return (await shardInboxes(master)).includes(entry.slice(waiting.length + 1));
}

/** The channels on which stores hear hints from the master. */
export async function shardInboxes({ admin }: ClusterNode): Promise<string[]> {
  return (await admin.call("PUBSUB", "SHARDCHANNELS", "lockweave:2:inbox:*")) as string[];
}

/** A new key of the master's. */
export async function keyAt(cluster: RedisCluster, master: ClusterNode): Promise<string> {
  for (let count = 0; count < 1_000; count += 1) {
    const key = newKey();
    if ((await cluster.masterOf(key)) === master) return key;
  }
  throw new Error("the master has no slots");
}
