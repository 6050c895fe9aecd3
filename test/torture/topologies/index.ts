import type { Topology } from "../topology";
import { startCluster, startResharding } from "./cluster";
import { startNode } from "./node";
import { startPostgresServer } from "./postgres";
import { startQuorum } from "./quorum";
import { startReplicas } from "./replicas";
import { startSentinel } from "./sentinel";

/** Starts the servers of each topology. */
export const TOPOLOGIES = {
  node: startNode,
  sentinel: startSentinel,
  cluster: startCluster,
  resharding: startResharding,
  quorum: startQuorum,
  replicas: startReplicas,
  postgres: startPostgresServer,
} as const satisfies Record<string, () => Promise<Topology>>;

export type TopologyName = keyof typeof TOPOLOGIES;

export const TOPOLOGY_NAMES = Object.keys(TOPOLOGIES) as TopologyName[];

export function isTopology(name: string): name is TopologyName {
  return Object.hasOwn(TOPOLOGIES, name);
}
