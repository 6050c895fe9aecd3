import type { Clock } from "../../clock";
import type { RenewReply, RenewRequest } from "../port";
import type { Duplicable, RedisClient } from "./client";
import type { Cluster } from "./cluster/by-slot";
import { Confirmer } from "./confirmer";
import { databaseOf } from "./database";
import { translateError } from "./errors";

/** How often a hold is looked for elsewhere when its slot has gone from where it was looked for. */
const MOST_HOPS = 3;

/** A renewal waits for no acquisition: each kind has a connection of its own to each master. */
export type Purpose = "acquire" | "renew";

/** The replicas of each master, by the number of them that are asked for. */
export class Replicas {
  readonly #client: RedisClient;
  readonly #cluster: Cluster | undefined;
  readonly #clock: Clock;
  readonly #confirmers = new Map<string, Confirmer>();
  #isClosed = false;

  /** @param cluster where the client is that of one */
  constructor(client: RedisClient, cluster: Cluster | undefined, clock: Clock) {
    this.#clock = clock;
    this.#client = client;
    this.#cluster = cluster;
  }

  /** Renews a hold. It counts as renewed where so many replicas have it as the request says. */
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
      if (this.#cluster === undefined || !GONE.has(kind) || hops === MOST_HOPS) return translateError(reply);
      if (kind === "MOVED") {
        this.#cluster.shards.moved();
        this.#client.refreshSlotsCache?.();
      }
      // Where some keys of a slot are here and some there, each is asked for by itself.
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
    const place = this.#cluster === undefined ? `${db}` : `${host}:${port}`;
    const name = `${purpose} ${replicas} ${place}`;
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

/** How a node of a cluster begins to say that a key is not, or not surely, with it. */
const GONE = new Set(["MOVED", "ASK", "TRYAGAIN"]);
