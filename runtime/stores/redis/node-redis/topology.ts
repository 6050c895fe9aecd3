import { inRoot, runInPromiseJob } from "../../../base/root-context";
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
import type { Command } from "../command";
import { isMoved, isReply } from "../errors";
import { PLAIN, type NodeRedis, type NodeRedisCluster, type NodeRedisMaster } from "./client";
import { openOwn, openShardedSubscription } from "./connection";
import { portError } from "./errors";
import { SlotSearch } from "./slot-search";
import { stateOf } from "./state";
import { textOf } from "./words";

/** A connection of the client to a master, from when it is ready until it breaks. */
class Node implements ClusterNode {
  readonly address: string;
  readonly client: NodeRedis;
  /** Fails each write without a reply. */
  readonly writes = new Set<() => void>();
  /** A key that was sent to it, which the user may use. */
  key: string | undefined;

  constructor(address: string, client: NodeRedis) {
    this.address = address;
    this.client = client;
  }

  get database(): number {
    return this.client.options?.database ?? 0;
  }
}

/**
 * The nodes of a client that `createCluster()` made. The client reports neither new slots nor, before version 5.9, the state of its
 * connections. So the slots are compared at each use, and each connection is observed by itself.
 */
export class NodeRedisTopology implements Topology {
  readonly #cluster: NodeRedisCluster;
  readonly #prefix: string;
  readonly #search: SlotSearch;
  readonly #listeners = new Set<TopologyListeners>();
  readonly #onKnown: () => void;
  readonly #nodes = new Map<NodeRedis, Node>();
  /** Removes the listeners of each connection. */
  readonly #watched = new Map<NodeRedis, () => void>();
  #slots: NodeRedisCluster["slots"] | undefined;
  #isClosed = false;
  /** A key or a channel whose slot another node serves than the client believes. */
  #moved: string | undefined;

  /** @param onKnown called when the client knows the slots for the first time, or again */
  constructor(cluster: NodeRedisCluster, prefix: string, onKnown: () => void) {
    this.#cluster = cluster;
    this.#prefix = prefix;
    this.#search = new SlotSearch(cluster);
    this.#onKnown = onKnown;
    this.#readSlots();
  }

  addressOf(slot: number): string | undefined {
    if (this.#cluster.slots !== this.#slots) this.#readSlots();
    const master = this.#cluster.slots[slot]?.master;
    if (master !== undefined && master.client === undefined) this.#connect(master);
    return master?.address;
  }

  addresses(): readonly (string | undefined)[] {
    if (this.#cluster.masters.length === 0) return [];
    return Array.from(this.#cluster.slots, (shard) => shard?.master.address);
  }

  /** Returns the masters to which there is a connection. */
  masters(): readonly Node[] {
    return this.#cluster.masters.flatMap((master) => this.#nodeOf(master) ?? []);
  }

  reachable(address: string): string {
    return address; // The client names nodes as they name each other, and maps the address when it connects.
  }

  write(node: ClusterNode, commands: readonly Command[]): Promise<readonly unknown[]> {
    const { client, writes } = node as Node;
    this.#noteKey(node as Node, commands);
    if (!client.isReady) return Promise.resolve(commands.map(() => new ConnectionClosedError(NO_CONNECTION)));
    const state = stateOf(client);
    const { fault } = state.replies;
    if (fault !== undefined) return Promise.reject(fault);
    return new Promise((resolve) => {
      const replies: unknown[] = commands.map(() => new ConnectionClosedError(BROKE));
      let left = commands.length;
      const end = (): void => {
        writes.delete(end);
        resolve(replies);
      };
      writes.add(end);
      commands.forEach((command, index) => {
        const settle = (reply: unknown): void => {
          replies[index] = reply;
          if (isMoved(reply)) this.#moved = this.#prefix + (command.keys[0] ?? "");
          left -= 1;
          if (left === 0) end();
        };
        const onReply = (reply: unknown): void => whenSure(state.replies.verify(reply), settle);
        const onError = (thrown: unknown): void => {
          const error = portError(thrown);
          if (isReply(error)) onReply(error);
          else settle(this.#broken(node as Node, error));
        };
        client.sendCommand(textOf(command, this.#prefix), PLAIN).then(onReply, onError);
      });
    });
  }

  #noteKey(node: Node, commands: readonly Command[]): void {
    const key = commands.at(-1)?.keys[0];
    if (key !== undefined) node.key = this.#prefix + key;
  }

  refresh(silent?: ClusterNode): void {
    if (silent !== undefined) return this.#findSuccessorOf(silent as Node);
    if (this.#moved !== undefined) void this.find(this.#moved);
  }

  /** Sends a key of the master to another node, which redirects the client. The client then asks that node for all slots. */
  #findSuccessorOf({ key }: Node): void {
    if (key === undefined) return;
    this.#search.avoidMasterOf(key);
    inRoot(() => void this.find(key));
  }

  /** Makes the client ask the nodes for the slots, because it does not know the right master of the key, or cannot reach it. */
  async find(key: string): Promise<void> {
    await this.#search.find(key);
    this.#readSlots();
  }

  openSubscription(node: ClusterNode, channel: string, listeners: SubscriptionListeners): Subscription {
    return openShardedSubscription({ client: (node as Node).client }, channel, {
      subscribed: () => listeners.subscribed(),
      message: (text) => listeners.message(text),
      failed: (error) => {
        if (isMoved(error)) this.#moved = channel;
        listeners.failed(error);
      },
      ended: () => listeners.ended(),
      moved: () => {
        this.#moved = channel;
        listeners.moved?.();
      },
    });
  }

  openOwn(node: ClusterNode, options: OwnConnectionOptions): OwnConnection {
    return openOwn({ client: (node as Node).client }, this.#prefix, options);
  }

  onChange(listeners: TopologyListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  close(): void {
    this.#isClosed = true;
    for (const forget of this.#watched.values()) forget();
    this.#watched.clear();
  }

  #nodeOf({ address, client: given }: NodeRedisMaster): Node | undefined {
    if (given === undefined) return undefined;
    const { _self: client = given } = given;
    this.#watch(client);
    if (!client.isReady) return undefined;
    let node = this.#nodes.get(client);
    if (node === undefined) this.#nodes.set(client, (node = new Node(address, client)));
    return node;
  }

  /** Opens the connection to a node. With the option `minimizeConnections`, the client has none before the first command for the node. */
  #connect(master: NodeRedisMaster): void {
    inRoot(() => void Promise.resolve(this.#cluster.nodeClient(master)).catch(() => {})); // The caller tries again.
    this.#nodeOf(master); // This observes the connection.
  }

  #watch(client: NodeRedis): void {
    if (this.#watched.has(client) || this.#isClosed) return;
    const forget = stateOf(client).listen({
      up: () => this.#notify(({ nodeAdded }) => nodeAdded()),
      down: () => this.#onDown(client),
    });
    this.#watched.set(client, forget);
  }

  /** Fails all commands without a reply. The client may still send one of them after a reconnect. */
  #onDown(client: NodeRedis): void {
    const node = this.#nodes.get(client);
    this.#nodes.delete(client);
    this.#notify(({ nodeGone }) => nodeGone());
    for (const end of node?.writes ?? []) end();
  }

  /** Forgets the connections to nodes that have left the cluster. The client has closed them. */
  #forgetClosed(): void {
    for (const [client, forget] of this.#watched) {
      if (client.isOpen) continue;
      forget();
      this.#watched.delete(client);
    }
  }

  #broken(node: Node, cause: Error): Error {
    // Callers may send the command again, so they must first learn that it may have run.
    if (this.#nodes.get(node.client) === node) this.#notify(({ nodeDown }) => nodeDown());
    return new ConnectionClosedError(cause.message, { cause });
  }

  /** Reads the slots of the client again, if the client has asked the nodes for them since. */
  #readSlots(): void {
    const { slots, masters } = this.#cluster;
    if (slots === this.#slots) return;
    this.#slots = slots;
    this.#forgetClosed();
    if (masters.length === 0) return;
    this.masters(); // This observes their connections.
    runInPromiseJob(() => {
      this.#onKnown();
      this.#notify(({ refreshed }) => refreshed());
    });
  }

  #notify(call: (listeners: TopologyListeners) => void): void {
    for (const listeners of this.#listeners) call(listeners);
  }
}

/** Calls `use` with the reply as soon as it is certain that it belongs to its command, or with the error if it does not. */
function whenSure(reply: unknown, use: (reply: unknown) => void): void {
  if (reply instanceof Promise) reply.then(use, use);
  else use(reply);
}

const NO_CONNECTION = "there is no connection to the cluster node";
const BROKE = "the connection to the cluster node broke";
