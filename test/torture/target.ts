import { Cluster, Redis } from "ioredis";
import { Pool } from "pg";
import { createCluster } from "redis";
import type { WholeStore } from "../../runtime/stores/port";
import { postgresStoreAt } from "../../runtime/stores/postgres/open-store";
import { quorumStore } from "../../runtime/stores/quorum/quorum-store";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { LONGEST_LOCK_MS } from "./plan";

/** Leads each server's own address to the route of one process. */
type NatMap = Readonly<Record<string, { readonly host: string; readonly port: number }>>;

/** How a process reaches its store, as JSON. */
export type StoreTarget =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "client"; readonly url: string }
  | {
      readonly kind: "sentinel";
      readonly name: string;
      readonly sentinels: readonly number[];
      readonly natMap: NatMap;
    }
  | {
      readonly kind: "cluster";
      readonly library: "ioredis" | "redis";
      readonly nodes: readonly number[];
      readonly natMap: NatMap;
    }
  | { readonly kind: "quorum"; readonly urls: readonly string[] }
  /** With a `listenUrl`, `url` leads to a pooler. */
  | {
      readonly kind: "postgres";
      readonly url: string;
      readonly listenUrl: string;
      readonly guardUrl: string;
    };

export interface OpenedStore {
  readonly store: WholeStore;
  /** Connections for transactions that guard a lock. */
  readonly guardPool?: Pool;
  /** Closes what the store does not close itself. */
  close(): Promise<void>;
}

/** Opens the store in the way in which an application would. */
export function openTarget(target: StoreTarget): OpenedStore {
  switch (target.kind) {
    case "url":
      return { store: redisStoreAt(target.url), close: async () => {} };
    case "client":
      return overIoredis(new Redis(target.url));
    case "sentinel": {
      const { name, natMap } = target;
      return overIoredis(new Redis({ name, natMap, sentinels: onLoopback(target.sentinels) }));
    }
    case "cluster":
      return target.library === "redis" ? overNodeRedis(target) : overCluster(target);
    case "quorum":
      return { store: quorumStore(target.urls, QUORUM), close: async () => {} };
    default:
      return overPostgres(target);
  }
}

/** A master that was restarted counts again after this time. */
export const QUORUM = { longestLockTime: `${LONGEST_LOCK_MS}ms` } as const;

function onLoopback(ports: readonly number[]): { host: string; port: number }[] {
  return ports.map((port) => ({ host: "127.0.0.1", port }));
}

function overIoredis(client: Redis): OpenedStore {
  client.on("error", () => {}); // Each command reports its own failure.
  return { store: redisStore(client), close: async () => client.disconnect() };
}

function overCluster({ nodes, natMap }: StoreTarget & { kind: "cluster" }): OpenedStore {
  const cluster = new Cluster(onLoopback(nodes), { natMap });
  cluster.on("error", () => {});
  return { store: redisStore(cluster), close: async () => cluster.disconnect() };
}

function overNodeRedis({ nodes, natMap }: StoreTarget & { kind: "cluster" }): OpenedStore {
  const rootNodes = onLoopback(nodes).map((socket) => ({ socket }));
  const cluster = createCluster({ rootNodes, nodeAddressMap: natMap, RESP: 3 });
  cluster.on("error", () => {});
  cluster.connect().catch(() => {}); // Each command reports its own failure.
  return { store: redisStore(cluster), close: async () => cluster.destroy() };
}

function overPostgres({ url, listenUrl, guardUrl }: StoreTarget & { kind: "postgres" }): OpenedStore {
  const guardPool = new Pool({ connectionString: guardUrl, max: 2 });
  guardPool.on("error", () => {}); // The fault that broke an idle connection.
  return {
    store: postgresStoreAt(url === listenUrl ? url : { url, listenUrl }, "postgres"),
    guardPool,
    close: () => guardPool.end(),
  };
}
