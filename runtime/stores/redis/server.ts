import { listenInRoot, runInPromiseJob } from "../../root-context";
import type { StoreListener } from "../port";
import type { Cluster } from "./cluster/by-slot";
import { Routes } from "./cluster/routes";
import { ShardInboxes } from "./cluster/shard-inboxes";
import { Shards } from "./cluster/shards";
import { isCluster, type RedisClient } from "./client";
import { evictionWarning } from "./eviction";
import { Inbox, type WakeUpChannel, type InboxOwner } from "./inbox";
import { assertPrefix, isInSlot, nameBeside } from "./keys";
import { ScriptRunner, type Send } from "./script-runner";

/**
 * A Redis, or a cluster, as both halves of its store see it: how to reach it, what stands beside a lock there, and what it
 * tells without having been asked.
 */
export class Server {
  readonly client: RedisClient;
  /** Where the client is that of one. */
  readonly cluster: Cluster | undefined;
  readonly send: Send;
  readonly scripts: ScriptRunner;
  readonly inbox: WakeUpChannel;
  /** In a cluster PUBLISH counts who listens on one node only. */
  readonly counts: "0" | "1";
  /** How often a connection broke. */
  breaks = 0;
  readonly #prefix: string;
  readonly #listeners = new Set<StoreListener>();
  readonly #stopListening: () => void;
  readonly #warnings: string[] = [];
  #hasBeenReady = false;
  #isClosed = false;

  /** @throws {LockOptionError} when the client's keyPrefix could make a key pass for what stands beside a lock */
  constructor(client: RedisClient, send: Send) {
    this.client = client;
    this.#prefix = client.options.keyPrefix ?? "";
    assertPrefix(this.#prefix);
    this.counts = isCluster(client) ? "0" : "1";
    const owner: InboxOwner = {
      hinted: (place) => {
        for (const listener of this.#listeners) listener.onWakeUp(place);
      },
      denied: () => this.channelsAreDenied(),
      shortestLeaseMs: () => this.shortestLeaseMs(),
    };
    if (isCluster(client)) {
      const shards = new Shards(
        client,
        () => void (this.breaks += 1),
        () => this.#tellOfReconnection(),
      );
      const routes = new Routes(client, shards);
      this.cluster = { shards, routes };
      this.send = (_withinMs, ...command) => routes.send(...command);
      this.inbox = new ShardInboxes(client, shards, owner);
    } else {
      this.send = send;
      this.inbox = new Inbox(client, owner);
    }
    this.scripts = new ScriptRunner(this.send, this.cluster?.routes);
    this.#stopListening = listenInRoot(client, this.#events);
    if (client.status === "ready") this.#connected();
  }

  // ---- what stands beside a lock ----------------------------------------------------------------------

  queueOf(key: string): string {
    return nameBeside("queue", this.#prefix, key);
  }

  fenceOf(key: string): string {
    return nameBeside("fence", this.#prefix, key);
  }

  /** Where the holds of those who share the key are. */
  holdsOf(key: string): string {
    return nameBeside("holds", this.#prefix, key);
  }

  /** In a cluster, all keys of a script must be in one slot. */
  canQueue(key: string): boolean {
    return this.cluster === undefined || isInSlot(this.#prefix, key);
  }

  // ---- what it tells without having been asked --------------------------------------------------------

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    // Also what was seen before it came; later, since nobody expects to be told during the call.
    const earlier = [...this.#warnings];
    runInPromiseJob(() => {
      if (this.#listeners.has(listener)) earlier.forEach((message) => listener.onWarning(message));
    });
    return () => this.#listeners.delete(listener);
  }

  /** The shortest time left of a lease that those who listen hold. */
  shortestLeaseMs(): number {
    let shortest = Infinity;
    for (const listener of this.#listeners) {
      shortest = Math.min(shortest, listener.shortestLeaseMs?.() ?? Infinity);
    }
    return shortest;
  }

  /** Tells those who listen, and those who will; the same words once. */
  warn(message: string): void {
    if (this.#isClosed || this.#warnings.includes(message)) return;
    this.#warnings.push(message);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  /** Those who wait cannot be told. */
  channelsAreDenied(): void {
    this.warn(CHANNELS_DENIED);
  }

  /** How a client tells that a connection broke, or is there: a `Redis`, and a `Cluster` of its nodes. */
  readonly #events: Readonly<Record<string, () => void>> = {
    close: () => void (this.breaks += 1),
    "-node": () => void (this.breaks += 1),
    ready: () => this.#connected(),
    "+node": () => this.#hasBeenReady && this.#tellOfReconnection(),
  };

  #connected(): void {
    if (this.#hasBeenReady) this.#tellOfReconnection();
    this.#hasBeenReady = true;
    void this.#lookAtEviction();
  }

  #tellOfReconnection(): void {
    for (const listener of this.#listeners) listener.onReconnect();
  }

  async #lookAtEviction(): Promise<void> {
    try {
      const warning = evictionWarning(String(await this.client.info?.("memory")));
      if (warning !== undefined) this.warn(warning);
    } catch {
      // Who may not ask is not told.
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.cluster?.shards.close();
    this.inbox.close();
  }
}

const CHANNELS_DENIED =
  "the Redis user may not use the channels on which those who wait for a lock are told that it is theirs: they find it by looking again, which takes longer. Let it: ACL SETUSER <user> &lockweave:2:*";
