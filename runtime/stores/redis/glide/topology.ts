import { systemClock, type CancelTimer } from "../../../base/clock";
import { inRoot } from "../../../base/root-context";
import {
  ConnectionClosedError,
  type ClusterNode,
  type Subscription,
  type SubscriptionListeners,
  type Topology,
  type TopologyListeners,
} from "../client-port";
import { keyIn, slotOf } from "../cluster/slots";
import type { Command } from "../command";
import { isReply } from "../errors";
import { execBatch } from "./batch";
import type { Endpoint, GlideCluster, GlideConfig, GlideRoute } from "./client";
import { faultOf, isClosing, isOverLimit, isTimeout, portError } from "./errors";
import { InFlight } from "./in-flight";
import { endpointOf, slotsOf } from "./slots";
import { GlideState } from "./state";
import { Subscriber } from "./subscriber";

const PING: Command = { name: "ping", keys: [], args: [] };
const CLUSTER_SLOTS: Command = { name: "cluster", keys: [], args: ["slots"] };

/**
 * After this time, the next commands also ask for the slots again. GLIDE follows redirections by itself, so no error shows that a slot has
 * moved.
 */
const ASK_AGAIN_MS = 1_000;
/** The pause after the slots could not be read, or were read while somebody asked for them again. */
const PAUSE_MS = 100;
/** The time for which commands wait until others of the same client have their replies. */
const ROOM_WITHIN_MS = 5_000;

/** A master of the cluster. */
class Node implements ClusterNode {
  readonly address: string;
  readonly database: number;
  readonly state: GlideState;
  #slot: number;
  #key: string | undefined;
  readonly #endpoint: Endpoint;
  #isByAddress = false;

  /**
   * @param slot one of its slots
   * @param endpoint its address as GLIDE reaches it
   * @param ping sends a command to the node, and reports its outcome to the state
   */
  constructor(
    address: string,
    slot: number,
    endpoint: Endpoint,
    database: number,
    ping: (node: Node) => Promise<unknown>,
  ) {
    this.address = address;
    this.#slot = slot;
    this.#endpoint = endpoint;
    this.database = database;
    this.state = new GlideState(() => ping(this));
  }

  set slot(slot: number) {
    if (slot !== this.#slot) this.#key = undefined;
    this.#slot = slot;
  }

  /** A key of which it is the master. GLIDE sends commands without a key to the master of this one. */
  get key(): string {
    return (this.#key ??= keyIn(this.#slot));
  }

  /** @param key a key of the first command. By default, one of its own */
  routeBy(key = this.key): NodeRoute {
    return this.#isByAddress
      ? { type: "routeByAddress", ...this.#endpoint }
      : { type: "primarySlotKey", key };
  }

  /**
   * Changes to the other kind of route, because a command had no reply. GLIDE keeps sending the commands for a key to a master that hangs, even after
   * its replica has taken over. The address leads to the replica.
   */
  failed({ type }: NodeRoute): void {
    const wasByAddress = type === "routeByAddress";
    if (this.#isByAddress === wasByAddress) this.#isByAddress = !wasByAddress;
    this.state.failed();
  }
}

type NodeRoute = Exclude<GlideRoute, "randomNode">;

/**
 * The nodes of a `GlideClusterClient`, which shows neither its slots nor its connections. So the topology asks the cluster for the slots
 * itself, and a connection counts as broken from the first command without a reply until the next one with a reply.
 */
export class GlideTopology implements Topology {
  readonly #glide: GlideCluster;
  readonly #config: GlideConfig;
  readonly #inFlight: InFlight;
  readonly #subscriber: Subscriber;
  readonly #onKnown: () => void;
  readonly #listeners = new Set<TopologyListeners>();
  #nodes: ReadonlyMap<string, Node> = new Map();
  #slots: readonly (string | undefined)[] = [];
  #askedAt = -Infinity;
  #isAsking = false;
  #mustAskAgain = false;
  #cancelAsking: CancelTimer | undefined;
  #isClosed = false;

  /** @param onKnown called when the slots are known, and again whenever they were read */
  constructor(glide: GlideCluster, config: GlideConfig, onKnown: () => void) {
    this.#glide = glide;
    this.#config = config;
    this.#inFlight = new InFlight(config.inflightRequestsLimit);
    this.#subscriber = new Subscriber({ glide, config }, () => [...this.#nodes.keys()]);
    this.#onKnown = onKnown;
    this.refresh();
  }

  /** Whether the slots are known. */
  get isKnown(): boolean {
    return this.#nodes.size > 0;
  }

  addressOf(slot: number): string | undefined {
    return this.#slots[slot];
  }

  addresses(): readonly (string | undefined)[] {
    return this.#slots;
  }

  masters(): readonly ClusterNode[] {
    return [...this.#nodes.values()];
  }

  reachable(address: string): string {
    return address; // GLIDE names nodes as they name each other.
  }

  /** GLIDE itself sends a command to the node that it redirects to. So only a redirection that fails is an error here. */
  async write(node: ClusterNode, commands: readonly Command[]): Promise<readonly unknown[]> {
    const own = node as Node;
    return await this.#send(commands, own.routeBy(keyOf(commands)), own);
  }

  /** Sends a command to the master of its key, or to any node. Resolves to a reply or an error. */
  async sendAlone(command: Command): Promise<unknown> {
    const key = keyOf([command]);
    const address = key === undefined ? undefined : this.#slots[slotOf(key)];
    const node = this.#nodes.get(address ?? "");
    const byKey: GlideRoute = key === undefined ? "randomNode" : { type: "primarySlotKey", key };
    const [reply] = await this.#send([command], node?.routeBy(key) ?? byKey, node);
    return reply;
  }

  async #send(
    commands: readonly Command[],
    route: GlideRoute,
    node: Node | undefined,
  ): Promise<readonly unknown[]> {
    if (systemClock.now() - this.#askedAt > ASK_AGAIN_MS) this.refresh();
    let replies: readonly unknown[];
    try {
      replies = await this.#inFlight.run(() => execBatch(this.#glide, commands, route), ROOM_WITHIN_MS);
    } catch (thrown) {
      const error = this.#failed(thrown, route, node);
      return commands.map(() => error);
    }
    return replies.map((reply) => {
      if (reply instanceof Error && !isReply(reply)) return this.#failed(reply, route, node);
      node?.state.heard();
      return reply;
    });
  }

  /** Records that a command has failed, and returns its error in the form of the port. */
  #failed(thrown: unknown, route: GlideRoute, node: Node | undefined): Error {
    const error = portError(thrown);
    const fault = faultOf(error);
    if (fault !== undefined) return fault;
    const isAnswered: boolean = isReply(error);
    if (isAnswered || isOverLimit(error)) return error;
    if (route !== "randomNode") node?.failed(route);
    // Callers may send the command again, so they must first learn that it may have run.
    this.#notify(({ nodeDown }) => nodeDown());
    this.refresh();
    return isTimeout(error) ? error : new ConnectionClosedError(error.message, { cause: error });
  }

  openSubscription(_node: ClusterNode, channel: string, listeners: SubscriptionListeners): Subscription {
    return this.#subscriber.open("sharded", channel, listeners);
  }

  /** Subscribes to a channel that is not sharded. */
  openPlainSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    return this.#subscriber.open("plain", channel, listeners);
  }

  onChange(listeners: TopologyListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelAsking?.();
    this.#subscriber.close();
    for (const { state } of this.#nodes.values()) state.close();
  }

  // ---- slots ------------------------------------------------------------------------------------------

  refresh(): void {
    if (this.#isClosed || this.#cancelAsking !== undefined) return;
    this.#mustAskAgain = this.#isAsking; // The reply on its way may be older than the reason for this call.
    if (!this.#isAsking) inRoot(() => void this.#ask());
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    this.#askedAt = systemClock.now();
    const isKnown = await this.#read().catch(isClosing);
    this.#isAsking = false;
    if (!isKnown || this.#mustAskAgain) this.#askLater();
  }

  /** Resolves to whether a node answered. */
  async #read(): Promise<boolean> {
    const [reply] = await execBatch(this.#glide, [CLUSTER_SLOTS], "randomNode");
    const slots = slotsOf(reply);
    if (this.#isClosed || slots === undefined) return this.#isClosed;
    this.#learn(slots);
    return true;
  }

  #askLater(): void {
    if (this.#isClosed) return;
    this.#mustAskAgain = false;
    this.#cancelAsking = systemClock.afterInBackground(PAUSE_MS, () => {
      this.#cancelAsking = undefined;
      this.refresh();
    });
  }

  #learn(slots: readonly (string | undefined)[]): void {
    const nodes = new Map<string, Node>();
    slots.forEach((address, slot) => {
      if (address !== undefined && !nodes.has(address)) nodes.set(address, this.#nodeAt(address, slot));
    });
    for (const [address, { state }] of this.#nodes) if (!nodes.has(address)) state.close();
    this.#nodes = nodes;
    this.#slots = slots;
    this.#onKnown();
    this.#notify(({ refreshed }) => refreshed());
  }

  #nodeAt(address: string, slot: number): Node {
    const known = this.#nodes.get(address);
    if (known !== undefined) {
      known.slot = slot;
      return known;
    }
    const { databaseId = 0, addressResolver } = this.#config;
    const named = endpointOf(address);
    const [host, port] = addressResolver?.(named.host, named.port) ?? [named.host, named.port];
    const node = new Node(address, slot, { host, port }, databaseId, (one) => this.write(one, [PING]));
    node.state.listen({
      up: () => this.#notify(({ nodeAdded }) => nodeAdded()),
      down: () => this.#notify(({ nodeGone }) => nodeGone()),
    });
    return node;
  }

  #notify(call: (listeners: TopologyListeners) => void): void {
    inRoot(() => {
      for (const listeners of this.#listeners) call(listeners);
    });
  }
}

/** Returns the first key of the commands. */
function keyOf(commands: readonly Command[]): string | undefined {
  return commands.find(({ keys }) => keys.length > 0)?.keys[0];
}
