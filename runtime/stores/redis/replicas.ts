import type { Clock } from "../../base/clock";
import type { RenewReply, RenewRequest } from "../port";
import type { Duplicable, RedisClient } from "./client";
import type { Cluster } from "./cluster/by-slot";
import { Confirmer } from "./confirmer";
import { databaseOf } from "./database";
import { translateError } from "./errors";

/** The largest number of times that a renewal is sent to another node because the slot has moved. */
const MOST_HOPS = 3;

/** The kind of a command. Each kind has a connection of its own to each master, so a renewal does not wait for an acquisition. */
export type Purpose = "acquire" | "renew";

/** Confirms holds with the replicas of each master. There is one confirmer for each master, kind of command, and number of replicas. */
export class Replicas {
  readonly #client: RedisClient;
  readonly #cluster: Cluster | undefined;
  readonly #clock: Clock;
  readonly #confirmers = new Map<string, Confirmer>();
  #isClosed = false;

  /** @param cluster the nodes, if the client is a `Cluster` */
  constructor(client: RedisClient, cluster: Cluster | undefined, clock: Clock) {
    this.#clock = clock;
    this.#client = client;
    this.#cluster = cluster;
  }

  /** Renews a hold. It counts as renewed if as many replicas have it as the request asks for. */
  async confirm(request: RenewRequest, timeoutMs: number, purpose: Purpose): Promise<RenewReply> {
    const until = this.#clock.now() + timeoutMs;
    let node = this.#nodeOf(request.key);
    let isAsking = false;
    for (let hops = 0; ; hops += 1) {
      if (node === undefined) return new Error("the cluster node of the lock is not known yet");
      const leftMs = until - this.#clock.now();
      const reply = await this.#confirmerAt(node, request.replicas ?? 0, purpose).confirm(
        request,
        isAsking,
        leftMs,
      );
      if (!(reply instanceof Error)) return reply;
      const [kind = "", , address] = reply.message.split(" ");
      if (this.#cluster === undefined || !REDIRECTS.has(kind) || hops === MOST_HOPS)
        return translateError(reply);
      if (kind === "MOVED") {
        this.#cluster.shards.moved();
        this.#client.refreshSlotsCache?.();
      }
      // TRYAGAIN: some keys of the slot are on this node, and some on another. The same node is asked again, with this key alone.
      if (kind !== "TRYAGAIN") node = this.#cluster.shards.masterNamed(address);
      isAsking = kind !== "MOVED";
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const confirmer of this.#confirmers.values()) confirmer.close();
  }

  #nodeOf(key: string): RedisClient | undefined {
    if (this.#cluster === undefined) return this.#client;
    const { shards } = this.#cluster;
    return shards.masterAt(shards.addressOf(shards.slotOf(key)));
  }

  #confirmerAt(node: RedisClient, replicas: number, purpose: Purpose): Confirmer {
    const { host, port } = node.options;
    const db = databaseOf(node);
    const nodeName = this.#cluster === undefined ? `${db}` : `${host}:${port}`;
    const name = `${purpose} ${replicas} ${nodeName}`;
    let confirmer = this.#confirmers.get(name);
    if (confirmer === undefined) {
      const { keyPrefix = "" } = this.#client.options;
      confirmer = new Confirmer(
        node as RedisClient & Duplicable,
        replicas,
        keyPrefix,
        db,
        (key) => this.#cluster?.shards.slotOf(key) ?? 0,
        this.#clock,
      );
      this.#confirmers.set(name, confirmer);
    }
    if (this.#isClosed) confirmer.close();
    return confirmer;
  }
}

/** The codes of errors by which a cluster node says that it does not serve a key, or perhaps does not. */
const REDIRECTS = new Set(["MOVED", "ASK", "TRYAGAIN"]);
