import { systemClock, type CancelTimer } from "../../../clock";
import { listenInRoot } from "../../../root-context";
import type { NatMap, NatMapper, RedisClient } from "../client";
import { slotOf } from "./slots";

/** How often it is told at most that slots have moved, in milliseconds: all who hold a lock look again then. */
const PAUSE_MS = 1_000;

/** Which master has which slots, as the cluster client knows it. */
export class Shards {
  readonly #client: RedisClient;
  readonly #prefix: string;
  readonly #onBreak: () => void;
  readonly #stopListening: () => void;
  readonly #onMoved: () => void;
  /** Nodes, each with what ends the watch. */
  readonly #watched = new Map<RedisClient, () => void>();
  /** By address: what `Cluster#nodes` makes anew at each call. */
  #masters: ReadonlyMap<string, RedisClient> | undefined;
  /** Whose each slot was at the last look. */
  #owners: readonly (string | undefined)[] = [];
  /** Ends the pause after the last time that it was told. */
  #endPause: CancelTimer | undefined;
  #hasMovedSince = false;

  /**
   * @param onBreak a connection to a node broke
   * @param onMoved some slot has another master than before, or may have one soon
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

  /** Where the master of the slot is; undefined where the client does not know. */
  addressOf(slot: number): string | undefined {
    return this.#client.slots?.[slot]?.[0];
  }

  /** The connection to a master; undefined where there is none. */
  masterAt(address: string | undefined): RedisClient | undefined {
    if (address === undefined || this.#client.status !== "ready") return undefined;
    this.#masters ??= new Map(this.masters().map((node) => [addressOf(node), node]));
    return this.#masters.get(address);
  }

  /** The same by the address that a server gives, which the client may know by another. */
  masterNamed(address: string | undefined): RedisClient | undefined {
    const { natMap } = this.#client.options;
    const mapped = address === undefined ? undefined : mappedBy(natMap, address);
    return this.masterAt(mapped ? `${mapped.host}:${mapped.port}` : address);
  }

  masters(): readonly RedisClient[] {
    return this.#client.nodes?.("master") ?? [];
  }

  /** What is known of the connections may be out of date from now on. */
  forgetMasters(): void {
    this.#masters = undefined;
  }

  readonly #onNode = (node: unknown): void => {
    this.forgetMasters();
    this.#watch(node as RedisClient);
  };

  /**
   * The client asks for nothing by itself, and so hears neither of who comes in the node's place, nor of the node when it is
   * back without its data: those who look do.
   */
  readonly #onGone = (): void => {
    this.forgetMasters();
    if (this.#client.status === "ready") this.moved();
  };

  /** A node whose connection comes back by itself may be sent again what it had not answered. */
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

  /** A slot has another master: a server has said so, or what the client knows has changed; or its master is gone. */
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
