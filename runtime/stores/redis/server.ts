import { listenInRoot, runInPromiseJob } from "../../base/root-context";
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
 * A Redis server or a cluster, as both halves of a store see it: how to send commands to it, the names of the keys beside a lock, and the
 * events that it reports by itself.
 */
export class Server {
  readonly client: RedisClient;
  /** Present if the client is a `Cluster`. */
  readonly cluster: Cluster | undefined;
  readonly send: Send;
  readonly scripts: ScriptRunner;
  readonly inbox: WakeUpChannel;
  /** "1" if PUBLISH counts all subscribers. In a cluster, it counts those of one node only. */
  readonly publishCountsAll: "0" | "1";
  /** How often a connection has broken. */
  breaks = 0;
  readonly #prefix: string;
  readonly #listeners = new Set<StoreListener>();
  readonly #stopListening: () => void;
  /** The first warning about each subject. */
  readonly #warnings = new Map<string, string>();
  #hasBeenReady = false;
  #isClosed = false;

  /** @throws {LockOptionError} if the client's keyPrefix could make a lock key look like one of the keys beside a lock */
  constructor(client: RedisClient, send: Send) {
    this.client = client;
    this.#prefix = client.options.keyPrefix ?? "";
    assertPrefix(this.#prefix);
    this.publishCountsAll = isCluster(client) ? "0" : "1";
    const owner: InboxOwner = {
      onWakeUp: (ticket) => {
        for (const listener of this.#listeners) listener.onWakeUp(ticket);
      },
      onDenied: () => this.warnOfDeniedChannels(),
      shortestLeaseMs: () => this.shortestLeaseMs(),
    };
    if (isCluster(client)) {
      const shards = new Shards(
        client,
        () => void (this.breaks += 1),
        () => this.#reportReconnect(),
      );
      const routes = new Routes(client, shards);
      this.cluster = { shards, routes };
      this.send = (_timeoutMs, ...command) => routes.send(...command);
      this.inbox = new ShardInboxes(client, shards, owner);
    } else {
      this.send = send;
      this.inbox = new Inbox(client, owner);
    }
    this.scripts = new ScriptRunner(this.send, this.cluster?.routes);
    this.#stopListening = listenInRoot(client, this.#events);
    if (client.status === "ready") this.#connected();
  }

  // ---- keys beside a lock -----------------------------------------------------------------------------

  queueOf(key: string): string {
    return nameBeside("queue", this.#prefix, key);
  }

  fenceOf(key: string): string {
    return nameBeside("fence", this.#prefix, key);
  }

  /** Returns the key with the holds of a shared lock. */
  holdsOf(key: string): string {
    return nameBeside("holds", this.#prefix, key);
  }

  /** Whether the lock can have a queue. In a cluster, all keys of a script must be in one slot. */
  canQueue(key: string): boolean {
    return this.cluster === undefined || isInSlot(this.#prefix, key);
  }

  // ---- events -----------------------------------------------------------------------------------------

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    // The listener also receives earlier warnings, but only after this call, because no caller expects them during it.
    const earlier = [...this.#warnings.values()];
    runInPromiseJob(() => {
      if (this.#listeners.has(listener)) earlier.forEach((message) => listener.onWarning(message));
    });
    return () => this.#listeners.delete(listener);
  }

  /** Returns the shortest time left of all leases of the listeners. */
  shortestLeaseMs(): number {
    let shortest = Infinity;
    for (const listener of this.#listeners) {
      shortest = Math.min(shortest, listener.shortestLeaseMs?.() ?? Infinity);
    }
    return shortest;
  }

  /** Reports a warning to all listeners, including later ones. Reports one warning about each subject. */
  warn(message: string, subject = message): void {
    if (this.#isClosed || this.#warnings.has(subject)) return;
    this.#warnings.set(subject, message);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  /** Warns that waiters cannot be notified. */
  warnOfDeniedChannels(): void {
    this.warn(CHANNELS_DENIED);
  }

  /** The events of a client when a connection breaks or is ready. `-node` and `+node` are events of a `Cluster`. */
  readonly #events: Readonly<Record<string, () => void>> = {
    close: () => void (this.breaks += 1),
    "-node": () => void (this.breaks += 1),
    ready: () => this.#connected(),
    "+node": () => this.#hasBeenReady && this.#reportReconnect(),
  };

  #connected(): void {
    if (this.#hasBeenReady) this.#reportReconnect();
    this.#hasBeenReady = true;
    void this.#checkEviction();
  }

  #reportReconnect(): void {
    for (const listener of this.#listeners) listener.onReconnect();
  }

  async #checkEviction(): Promise<void> {
    try {
      const warning = evictionWarning(String(await this.client.info?.("memory")));
      if (warning !== undefined) this.warn(warning);
    } catch {
      // The user may not run INFO, so there is no warning.
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
  "the Redis user has no permission for the channels that wake waiters, so waiters notice a free lock only by polling, which takes longer. Fix: ACL SETUSER <user> &lockweave:2:*";
