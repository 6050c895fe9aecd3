import { release, newId, newKey, enqueue, acquire, TIMEOUT_MS } from "../store-contract/subject";
import type { WholeStore } from "../../runtime/stores/port";
import { auxiliaryKey } from "../../runtime/stores/redis/keys";
import type { ClusterNode, RedisCluster } from "../support/redis-cluster";
import { until } from "../support/until";

/** Resolves when the store receives wake-ups from each master. */
export async function untilSubscribedEverywhere(
  store: WholeStore,
  cluster: RedisCluster,
  keyPrefix = "",
): Promise<void> {
  for (const node of cluster.nodes) {
    if (node.master !== undefined) continue;
    await untilSubscribedTo(store, cluster, await keyAt(cluster, node, keyPrefix), keyPrefix);
  }
}

/** Resolves when the store receives wake-ups from the key's master. The key is free afterwards. */
export async function untilSubscribedTo(
  store: WholeStore,
  cluster: RedisCluster,
  key: string,
  keyPrefix = "",
): Promise<void> {
  const master = await cluster.masterOf(keyPrefix + key);
  const [holder, probe] = [newId(), newId()];
  await acquire(store, key, holder);
  await enqueue(store, key, probe);
  const queue = keyPrefix + auxiliaryKey("queue", keyPrefix, key);
  await until(() => isSubscribed(master, queue, probe));
  await store.queue.dequeue(key, probe, TIMEOUT_MS);
  await release(store, key, holder);
}

/** Whether the waiter in the queue receives the master's wake-ups. */
export async function isSubscribed(master: ClusterNode, queue: string, waiting: string): Promise<boolean> {
  const entry = (await master.admin.zrange(queue, 0, "-1")).find((one) => one.startsWith(waiting));
  if (entry === undefined) throw new Error(`${queue} has no such waiter`);
  return (await shardInboxes(master)).includes(entry.slice(waiting.length + 1));
}

/** The channels on which stores receive wake-ups from the master. */
export async function shardInboxes({ admin }: ClusterNode): Promise<string[]> {
  return (await admin.call("PUBSUB", "SHARDCHANNELS", "lockweave:1:inbox:*")) as string[];
}

/** Returns a new key in one of the master's slots. */
export async function keyAt(cluster: RedisCluster, master: ClusterNode, keyPrefix = ""): Promise<string> {
  for (let count = 0; count < 1_000; count += 1) {
    const key = newKey();
    if ((await cluster.masterOf(keyPrefix + key)) === master) return key;
  }
  throw new Error("the master has no slots");
}
