import { listenInRoot } from "../../../base/root-context";
import {
  ConnectionClosedError,
  type ClusterNode,
  type OwnConnection,
  type OwnConnectionOptions,
  type Subscription,
  type SubscriptionListeners,
  type Topology,
  type TopologyListeners,
} from "../client-port";
import type { NatMap, NatMapper, RedisClient } from "../client";
import { Pace } from "../cluster/pace";
import type { Command } from "../command";
import { CLOSED, exec, openOwn, type Duplicable } from "./connection";
import { databaseOf } from "./database";
import { openShardedSubscription } from "./subscription";

/** The shortest time between two questions for the slots. Without it, each caller of a master that is down would cause a question. */
const REFRESH_PAUSE_MS = 100;

/** The connection of a `Cluster` to a node. */
class Node implements ClusterNode {
  readonly redis: RedisClient;
  readonly address: string;

  constructor(redis: RedisClient) {
    this.redis = redis;
    this.address = `${redis.options.host}:${redis.options.port}`;
  }

  get database(): number {
    return databaseOf(this.redis);
  }
}

/** The nodes of a `Cluster`. */
export class IoredisTopology implements Topology {
  readonly #client: RedisClient;
  readonly #prefix: string;
  readonly #nodes = new WeakMap<RedisClient, Node>();
  readonly #refreshes: Pace;

  constructor(client: RedisClient) {
    this.#client = client;
    this.#prefix = client.options.keyPrefix ?? "";
    this.#refreshes = new Pace(REFRESH_PAUSE_MS, () => client.refreshSlotsCache?.());
  }

  addressOf(slot: number): string | undefined {
    return this.#client.slots?.[slot]?.[0];
  }

  addresses(): readonly (string | undefined)[] {
    return (this.#client.slots ?? []).map((nodes) => nodes?.[0]);
  }

  masters(): readonly ClusterNode[] {
    return (this.#client.nodes?.("master") ?? []).map((redis) => this.#nodeOf(redis));
  }

  reachable(address: string): string {
    const mapped = mappedBy(this.#client.options.natMap, address);
    return mapped ? `${mapped.host}:${mapped.port}` : address;
  }

  async write(node: ClusterNode, commands: readonly Command[]): Promise<readonly unknown[]> {
    const { redis } = node as Node;
    const pipeline = redis.pipeline?.();
    if (pipeline === undefined) return commands.map(() => new ConnectionClosedError(CLOSED));
    return await exec(pipeline, commands, this.#prefixFor(redis));
  }

  /** ioredis asks its nodes in random order, and skips a node that does not answer in time. */
  refresh(): void {
    this.#refreshes.request();
  }

  close(): void {
    this.#refreshes.stop();
  }

  openSubscription(node: ClusterNode, channel: string, listeners: SubscriptionListeners): Subscription {
    return openShardedSubscription((node as Node).redis, channel, listeners);
  }

  openOwn(node: ClusterNode, options: OwnConnectionOptions): OwnConnection {
    return openOwn((node as Node).redis as RedisClient & Duplicable, this.#prefix, options);
  }

  onChange({ nodeAdded, nodeGone, nodeDown, refreshed }: TopologyListeners): () => void {
    const watched = new Map<RedisClient, () => void>();
    const watch = (node: RedisClient): void => {
      if (watched.has(node)) return;
      const forget = (): void => {
        stopListening();
        watched.delete(node);
      };
      watched.set(node, forget);
      const stopListening = listenInRoot(node, { close: nodeDown, end: forget });
    };
    const stop = listenInRoot(this.#client, {
      "+node": (node: unknown) => {
        watch(node as RedisClient);
        nodeAdded();
      },
      "-node": nodeGone,
      refresh: refreshed,
    });
    for (const node of this.#client.nodes?.("all") ?? []) watch(node);
    return () => {
      stop();
      for (const forget of watched.values()) forget();
    };
  }

  #nodeOf(redis: RedisClient): Node {
    let node = this.#nodes.get(redis);
    if (node === undefined) this.#nodes.set(redis, (node = new Node(redis)));
    return node;
  }

  /** Returns the key prefix of the cluster client, unless the connection to the node adds it. */
  #prefixFor(redis: RedisClient): string {
    return redis.options.keyPrefix === this.#prefix ? "" : this.#prefix;
  }
}

function mappedBy(natMap: NatMap | undefined, address: string): ReturnType<NatMapper> {
  return typeof natMap === "function" ? natMap(address) : natMap?.[address];
}
