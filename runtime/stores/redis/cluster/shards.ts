import { systemClock, type CancelTimer } from "../../../base/clock";
import { listenInRoot } from "../../../base/root-context";
import type { NatMap, NatMapper, RedisClient } from "../client";
import { slotOf } from "./slots";

/** The shortest time between two reports that slots have moved, in milliseconds. After each report, the process verifies all its leases. */
const PAUSE_MS = 1_000;

/** The masters of a cluster and their slots, as the cluster client knows them. */
export class Shards {
  readonly #client: RedisClient;
  readonly #prefix: string;
  readonly #onBreak: () => void;
  readonly #stopListening: () => void;
  readonly #onMoved: () => void;
  /** The watched nodes, each with the function that ends the watch. */
  readonly #watched = new Map<RedisClient, () => void>();
  /** The masters by address. They are cached, because `Cluster#nodes()` creates a new list at each call. */
  #masters: ReadonlyMap<string, RedisClient> | undefined;
  /** The address of the master of each slot, when the client last refreshed its slots. */
  #owners: readonly (string | undefined)[] = [];
  /** Cancels the pause after the last report. Undefined if there is no pause. */
  #endPause: CancelTimer | undefined;
  #hasMovedSince = false;

  /**
   * @param onBreak called when a connection to a node breaks
   * @param onMoved called when a slot has a different master, or may have one soon
   */
  constructor(client: RedisClient, onBreak: () => void, onMoved: () => void) {
    this.#client = client;
    this.#prefix = client.options.keyPrefix ?? "";
    this.#onBreak = onBreak;
    this.#onMoved = onMoved;
    this.#stopListening = listenInRoot(client, {
      "+node": this.#onNode,
      "-node": this.#onGone,
      refresh: this.#onRefresh,
    });
    for (const node of client.nodes?.("all") ?? []) this.#watch(node);
    this.#owners = this.#ownersNow();
  }

  close(): void {
    this.#stopListening();
    for (const forget of this.#watched.values()) forget();
    this.#endPause?.();
  }

  slotOf(key: string): number {
    return slotOf(this.#prefix + key);
  }

  /** Returns the address of the slot's master, or undefined if the client does not know it. */
  addressOf(slot: number): string | undefined {
    return this.#client.slots?.[slot]?.[0];
  }

  /** Returns the connection to a master, or undefined if there is none. */
  masterAt(address: string | undefined): RedisClient | undefined {
    if (address === undefined || this.#client.status !== "ready") return undefined;
    this.#masters ??= new Map(this.masters().map((node) => [addressOf(node), node]));
    return this.#masters.get(address);
  }

  /** Returns the connection to the master that a server named. The client may know that master by another address. */
  masterNamed(address: string | undefined): RedisClient | undefined {
    const { natMap } = this.#client.options;
    const mapped = address === undefined ? undefined : mappedBy(natMap, address);
    return this.masterAt(mapped ? `${mapped.host}:${mapped.port}` : address);
  }

  masters(): readonly RedisClient[] {
    return this.#client.nodes?.("master") ?? [];
  }

  /** Discards the cached connections, because they may be out of date. */
  forgetMasters(): void {
    this.#masters = undefined;
  }

  readonly #onNode = (node: unknown): void => {
    this.forgetMasters();
    this.#watch(node as RedisClient);
  };

  /**
   * Reports a node that is gone. The client sends nothing by itself. So it does not learn which node takes over, nor that the node is back
   * without its data. The process learns both when it verifies its leases.
   */
  readonly #onGone = (): void => {
    this.forgetMasters();
    if (this.#client.status === "ready") this.moved();
  };

  /** Counts the broken connections of a node. ioredis reconnects by itself, and may resend commands that have no reply. */
  #watch(node: RedisClient): void {
    if (this.#watched.has(node)) return;
    const forget = (): void => {
      stopListening();
      this.#watched.delete(node);
    };
    this.#watched.set(node, forget);
    const stopListening = listenInRoot(node, { close: this.#onBreak, end: forget });
  }

  readonly #onRefresh = (): void => {
    this.forgetMasters();
    const [before, now] = [this.#owners, this.#ownersNow()];
    this.#owners = now;
    if (before.length > 0 && now.some((owner, slot) => owner !== before[slot])) this.moved();
  };

  /** Reports that a slot has a different master: a server said so, or the client's slots have changed, or the master is gone. */
  moved(): void {
    this.#hasMovedSince = this.#endPause !== undefined;
    if (this.#hasMovedSince) return;
    this.#endPause = systemClock.afterInBackground(PAUSE_MS, () => {
      this.#endPause = undefined;
      if (this.#hasMovedSince) this.moved();
    });
    this.#onMoved();
  }

  #ownersNow(): (string | undefined)[] {
    return (this.#client.slots ?? []).map((nodes) => nodes?.[0]);
  }
}

function mappedBy(natMap: NatMap | undefined, address: string): ReturnType<NatMapper> {
  return typeof natMap === "function" ? natMap(address) : natMap?.[address];
}

function addressOf({ options: { host, port } }: RedisClient): string {
  return `${host}:${port}`;
}
