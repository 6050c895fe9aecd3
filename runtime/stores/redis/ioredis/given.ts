import type { RedisClient } from "../client";
import type { ClientPort } from "../client-port";
import { IoredisCluster } from "./cluster";
import { IoredisNode } from "./node";
import { isCluster } from "./state";

/** Returns the adapter for a client that the user created. By default, such a client resends commands that have no reply. */
export function portOfIoredis(client: RedisClient): ClientPort {
  return isCluster(client) ? new IoredisCluster(client) : new IoredisNode(client, true);
}

export function serversOfIoredis(client: RedisClient): "one node" | "sentinels" | "cluster" {
  if (isCluster(client)) return "cluster";
  const { sentinels } = client.options as { readonly sentinels?: unknown };
  return (sentinels ?? null) === null ? "one node" : "sentinels";
}
