import type { Clock } from "../../base/clock";
import type { RenewReply, RenewRequest } from "../port";
import type { ClientPort, ClusterNode, OwnConnection } from "./client-port";
import type { Cluster } from "./cluster/cluster";
import { Confirmer } from "./confirmer";
import { errorOf, translateError } from "./errors";
import { noOwnConnections } from "./states";

/** The largest number of times that a renewal is sent to another node because the slot has moved. */
const MOST_HOPS = 3;

/** The kind of a command. Each kind has a connection of its own to each master, so a renewal does not wait for an acquisition. */
export type Purpose = "acquire" | "renew";

/** Confirms holds with the replicas of each master. There is one confirmer for each master, kind of command, and number of replicas. */
export class Replicas {
  readonly #client: ClientPort;
  readonly #cluster: Cluster | undefined;
  readonly #clock: Clock;
  readonly #confirmers = new Map<string, Confirmer>();
  readonly #canOpenOwn: boolean;
  #isClosed = false;

  /** @param cluster the nodes, if it is a client of a cluster */
  constructor(client: ClientPort, cluster: Cluster | undefined, clock: Clock) {
    this.#clock = clock;
    this.#client = client;
    this.#cluster = cluster;
    this.#canOpenOwn = (client.topology ?? client).openOwn !== undefined;
  }

  /** Renews a hold. It counts as renewed if as many replicas have it as the request asks for. */
  async confirm(request: RenewRequest, timeoutMs: number, purpose: Purpose): Promise<RenewReply> {
    if (!this.#canOpenOwn) return errorOf(noOwnConnections(this.#client.advice.secondConnection));
    const until = this.#clock.now() + timeoutMs;
    let node = this.#nodeOf(request.key);
    let isAsking = false;
    for (let hops = 0; ; hops += 1) {
      if (node === undefined) return new Error("the cluster node of the lock is not known yet");
      const leftMs = until - this.#clock.now();
      const confirmer = this.#confirmerAt(node, request.replicas ?? 0, purpose);
      const reply = await confirmer.confirm(request, isAsking, leftMs);
      if (!(reply instanceof Error)) return reply;
      const [kind = "", , address] = reply.message.split(" ");
      if (this.#cluster === undefined || !REDIRECTS.has(kind) || hops === MOST_HOPS)
        return translateError(reply);
      if (kind === "MOVED") {
        this.#cluster.shards.moved();
        this.#client.topology?.refresh();
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

  #openOwn(node: ClusterNode, onEnd: () => void): OwnConnection | undefined {
    const { topology } = this.#client;
    const options = { database: node.database, onEnd };
    return topology === undefined ? this.#client.openOwn?.(options) : topology.openOwn?.(node, options);
  }

  /** Returns the master of the key. Without a cluster, there is only one. */
  #nodeOf(key: string): ClusterNode | undefined {
    if (this.#cluster === undefined) return { address: "", database: this.#client.database };
    const { shards } = this.#cluster;
    return shards.masterAt(shards.addressOf(shards.slotOf(key)));
  }

  #confirmerAt(node: ClusterNode, replicas: number, purpose: Purpose): Confirmer {
    const name = `${purpose} ${replicas} ${node.address} ${node.database}`;
    let confirmer = this.#confirmers.get(name);
    if (confirmer === undefined) {
      const slotOf = (key: string): number => this.#cluster?.shards.slotOf(key) ?? 0;
      confirmer = new Confirmer((onEnd) => this.#openOwn(node, onEnd), replicas, slotOf, this.#clock);
      this.#confirmers.set(name, confirmer);
    }
    if (this.#isClosed) confirmer.close();
    return confirmer;
  }
}

/** The codes of errors by which a cluster node says that it does not serve a key, or perhaps does not. */
const REDIRECTS = new Set(["MOVED", "ASK", "TRYAGAIN"]);
