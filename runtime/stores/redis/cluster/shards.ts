import type { ClusterNode, ClusterPort } from "../client-port";
import { Pace } from "./pace";
import { slotOf } from "./slots";

/** The shortest time between two reports that slots have moved, in milliseconds. After each report, the process verifies all its leases. */
const PAUSE_MS = 1_000;

interface ShardsListeners {
  /** A connection to a node broke, or a node is gone. The client may resend commands that have no reply. */
  readonly onDown: () => void;
  /** A slot has a different master, or may have one soon. */
  readonly onMoved: () => void;
  readonly onNodeAdded: () => void;
}

/** The masters of a cluster and their slots, as the cluster client knows them. */
export class Shards {
  readonly #client: ClusterPort;
  readonly #listeners: ShardsListeners;
  readonly #stopListening: () => void;
  readonly #moves: Pace;
  /** The masters by address. They are cached, because the client creates a new list at each call. */
  #masters: ReadonlyMap<string, ClusterNode> | undefined;
  /** The address of the master of each slot, when the client last refreshed its slots. */
  #owners: readonly (string | undefined)[];

  constructor(client: ClusterPort, listeners: ShardsListeners) {
    this.#client = client;
    this.#listeners = listeners;
    this.#moves = new Pace(PAUSE_MS, listeners.onMoved);
    this.#stopListening = client.topology.onChange({
      nodeAdded: () => this.#onNodeAdded(),
      nodeGone: () => this.#onNodeGone(),
      nodeDown: listeners.onDown,
      refreshed: () => this.#onRefreshed(),
    });
    this.#owners = client.topology.addresses();
  }

  close(): void {
    this.#stopListening();
    this.#moves.stop();
  }

  slotOf(key: string): number {
    return slotOf(this.#client.keyPrefix + key);
  }

  /** Returns the address of the slot's master, or undefined if the client does not know it. */
  addressOf(slot: number): string | undefined {
    return this.#client.topology.addressOf(slot);
  }

  /**
   * Returns the address of the slot's master when the client last refreshed its slots. At a redirection, ioredis changes one slot without
   * asking the nodes, and with it all others of the same range.
   */
  ownerOf(slot: number): string | undefined {
    return this.#owners[slot];
  }

  /**
   * Returns a master, or undefined if there is no connection to it. Looks again for a master that is not cached, because the client may have
   * connected to it for a command of its user, and reports that to nobody.
   */
  masterAt(address: string | undefined): ClusterNode | undefined {
    if (address === undefined || !this.#client.isReady) return undefined;
    const cached = this.#masters?.get(address);
    if (cached !== undefined) return cached;
    this.#masters = new Map(this.#client.topology.masters().map((node) => [node.address, node]));
    return this.#masters.get(address);
  }

  /** Returns the master that a server named. The client may know that master by another address. */
  masterNamed(address: string | undefined): ClusterNode | undefined {
    return address === undefined ? undefined : this.masterAt(this.#client.topology.reachable(address));
  }

  /** Discards the cached masters, because they may be out of date. */
  forgetMasters(): void {
    this.#masters = undefined;
  }

  #onNodeAdded(): void {
    this.forgetMasters();
    this.#listeners.onNodeAdded();
  }

  /**
   * Reports a node that is gone. The client sends nothing by itself. So it does not learn which node takes over, nor that the node is back
   * without its data. The process learns both when it verifies its leases.
   */
  #onNodeGone(): void {
    this.forgetMasters();
    if (this.#client.isReady) this.moved();
    this.#listeners.onDown();
  }

  #onRefreshed(): void {
    this.forgetMasters();
    const [before, now] = [this.#owners, this.#client.topology.addresses()];
    this.#owners = now;
    if (before.length > 0 && now.some((owner, slot) => owner !== before[slot])) this.moved();
  }

  /** Reports that a slot has a different master: a server said so, or the client's slots have changed, or the master is gone. */
  moved(): void {
    this.#moves.request();
  }
}
