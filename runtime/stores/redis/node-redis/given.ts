import type { NodeRedisClient } from "../client";
import type { ClientPort, OwnClient } from "../client-port";
import { ReconnectingClient } from "../own-client";
import type { NodeRedis, NodeRedisCluster, NodeRedisPool, NodeRedisSentinel } from "./client";
import { ClientSource, isOfVersion5 } from "./client-source";
import { NodeRedisClusterPort } from "./cluster";
import { NodeRedisNode } from "./node";
import { NodeRedisConnection } from "./own-connection";
import { PoolSource } from "./pool";
import { sentinelSourceOf } from "./sentinel";
import type { Source } from "./source";

/** The function that created a client. */
type Origin = "createClient()" | "createClientPool()" | "createSentinel()" | "createCluster()";

/** Whether it is a client of node-redis 5 or 6. */
export function isNodeRedis(client: unknown): client is NodeRedisClient {
  const { isOpen, sendCommand, withTypeMapping } = (client ?? {}) as Partial<NodeRedisClient>;
  return (
    typeof isOpen === "boolean" && typeof sendCommand === "function" && typeof withTypeMapping === "function"
  );
}

export function serversOfNodeRedis(client: NodeRedisClient): "one node" | "sentinels" | "cluster" {
  const origin = originOf(client);
  if (origin === "createCluster()") return "cluster";
  return origin === "createSentinel()" ? "sentinels" : "one node";
}

/** @param client a client for which {@link openBeside} returns undefined */
export function portOfNodeRedis(client: NodeRedisClient): ClientPort {
  const given: unknown = client;
  return originOf(client) === "createCluster()"
    ? new NodeRedisClusterPort(given as NodeRedisCluster)
    : new NodeRedisNode(given as NodeRedis);
}

/** Opens a separate connection for a client whose own connections are not fit for locks. Returns undefined if they are. */
export function openBeside(client: NodeRedisClient, shortestTimeLeftMs: () => number): OwnClient | undefined {
  const source = sourceOf(client);
  return (
    source &&
    new ReconnectingClient((listeners) => new NodeRedisConnection(source, listeners), shortestTimeLeftMs)
  );
}

function sourceOf(client: NodeRedisClient): Source | undefined {
  const [origin, given]: [Origin, unknown] = [originOf(client), client];
  if (origin === "createClientPool()") return new PoolSource(given as NodeRedisPool);
  if (origin === "createSentinel()") return sentinelSourceOf(given as NodeRedisSentinel);
  if (origin === "createCluster()" || !isOfVersion5(client)) return undefined;
  const { _self: self = given as NodeRedis } = given as NodeRedis;
  return new ClientSource(self);
}

/** Recognizes a client by a method that only clients of this kind have. */
function originOf(client: NodeRedisClient): Origin {
  if ("nodeClient" in client) return "createCluster()";
  if ("getMasterNode" in client) return "createSentinel()";
  if ("execute" in client) return "createClientPool()";
  return "createClient()";
}
