import type { Routes } from "./routes";
import type { Shards } from "./shards";

/** The nodes of a cluster, and the routes to them. */
export interface Cluster {
  readonly shards: Shards;
  readonly routes: Routes;
}
