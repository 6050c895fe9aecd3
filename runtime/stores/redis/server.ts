import { runInPromiseJob } from "../../base/root-context";
import { LockMisconfiguredError, errorMessage } from "../../base/errors";
import type { StoreListener, StoreState } from "../port";
import type { Cluster } from "./cluster/cluster";
import { Routes } from "./cluster/routes";
import { ShardInboxes } from "./cluster/shard-inboxes";
import { Shards } from "./cluster/shards";
import { canSubscribe, isOfCluster, type ClientPort, type OwnClient, type Transport } from "./client-port";
import { evictionWarning } from "./eviction";
import { Inbox, type WakeUpChannel, type InboxOwner } from "./inbox";
import { assertPrefix, isInSlot, auxiliaryKey } from "./keys";
import type { Command } from "./command";
import { translateError } from "./errors";
import { WatchedClient } from "./watched-client";

/**
 * A Redis server or a cluster, as the commands of a store see it: how to send commands to it, the names of the keys that belong to a lock, and the
 * events that it reports by itself.
 */
export class Server {
  readonly client: ClientPort;
  /** Present if it is a cluster. */
  readonly cluster: Cluster | undefined;
  readonly transport: Transport;
  readonly inbox: WakeUpChannel;
  /** "1" if PUBLISH counts all subscribers. In a cluster, it counts those of one node only. */
  readonly publishCountsAll: "0" | "1";
  /** The number of times that a connection has broken, if the client may then resend a command without a reply. Otherwise always 0. */
  breaks = 0;
  readonly #prefix: string;
  readonly #listeners = new Set<StoreListener>();
  readonly #stopListening: () => void;
  /** The first warning about each subject. */
  readonly #warnings = new Map<string, string>();
  #hasBeenReady = false;
  /** Whether the server has refused to notify a waiter since the last check. */
  #isPublishDenied = false;
  #isClosed = false;

  /**
   * @param own the client itself, if it belongs to the store
   * @throws {LockOptionError} if the client's keyPrefix could make a lock key look like one of the keys that belong to a lock
   */
  constructor(client: ClientPort, own?: OwnClient) {
    this.client = client;
    this.#prefix = client.keyPrefix;
    assertPrefix(this.#prefix);
    if (client.hazard !== undefined) this.warn(client.hazard);
    this.publishCountsAll = isOfCluster(client) ? "0" : "1";
    const owner: InboxOwner = {
      onWakeUp: (ticket) => {
        for (const listener of this.#listeners) listener.onWakeUp(ticket);
      },
      onDenied: () => this.warn(CHANNELS_DENIED),
      shortestTimeLeftMs: () => this.shortestTimeLeftMs(),
    };
    const onDown = (): void => {
      if (client.mayResend) this.breaks += 1;
    };
    if (isOfCluster(client)) {
      const shards = new Shards(client, {
        onDown,
        onMoved: () => this.#reportReconnect(),
        onNodeAdded: () => this.#hasBeenReady && this.#reportReconnect(),
      });
      const routes = new Routes(client, shards, () => this.shortestTimeLeftMs());
      this.cluster = { shards, routes };
      this.transport = {
        send: (command, timeoutMs) => routes.send(command, timeoutMs),
        close: () => {
          routes.close();
          client.close();
        },
      };
      this.inbox = new ShardInboxes(client, shards, owner);
    } else {
      this.transport = own ?? new WatchedClient(client, (message) => this.warn(message));
      this.inbox = canSubscribe(client) ? new Inbox(client, owner) : this.#withoutInbox();
    }
    this.#stopListening = client.onState({ up: () => this.#connected(), down: onDown });
    if (client.isReady) this.#connected();
    own?.onTrouble((error) => this.warn(`there is no connection to Redis: ${errorMessage(error)}`));
  }

  /** Sends a command. An error says what is wrong and what to do, if that is known. */
  ask(command: Command, timeoutMs: number): Promise<unknown> {
    return this.transport.send(command, timeoutMs).catch((error: unknown) => {
      throw translateError(error);
    });
  }

  get state(): StoreState {
    if (this.client.isReady && this.client.fault === undefined) return "up";
    return this.#hasBeenReady ? "down" : "starting";
  }

  /**
   * Resolves once the server has confirmed all subscriptions for wake-ups that this process needs so far.
   *
   * @throws {LockMisconfiguredError} if the user has no permission for a channel
   */
  async assertWakeUps(): Promise<void> {
    await this.inbox.answered();
    const isDenied = this.inbox.isDenied || this.#isPublishDenied;
    this.#isPublishDenied = false; // Somebody may grant the permission.
    if (isDenied) throw new LockMisconfiguredError(CHANNELS_DENIED);
  }

  // ---- keys of a lock ---------------------------------------------------------------------------------

  queueOf(key: string): string {
    return auxiliaryKey("queue", this.#prefix, key);
  }

  fenceOf(key: string): string {
    return auxiliaryKey("fence", this.#prefix, key);
  }

  /** Returns the key with the holds of a shared lock. */
  holdsOf(key: string): string {
    return auxiliaryKey("holds", this.#prefix, key);
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

  /** Returns the shortest time left of all leases and waiters of the listeners. */
  shortestTimeLeftMs(): number {
    let shortest = Infinity;
    for (const listener of this.#listeners) {
      shortest = Math.min(shortest, listener.shortestTimeLeftMs?.() ?? Infinity);
    }
    return shortest;
  }

  /** Reports a warning to all listeners, including later ones. Reports one warning about each subject. */
  warn(message: string, subject = message): void {
    if (this.#isClosed || this.#warnings.has(subject)) return;
    this.#warnings.set(subject, message);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  /** Warns that the server refused to notify a waiter. */
  warnOfDeniedChannels(): void {
    this.#isPublishDenied = true;
    this.warn(CHANNELS_DENIED);
  }

  /** Warns when a caller first waits. An empty address means that nobody listens. */
  #withoutInbox(): WakeUpChannel {
    const { secondConnection = "pass a Redis URL instead of the client" } = this.client.advice;
    const addressFor = (): string => {
      this.warn(`${NO_WAKE_UPS}. Fix: ${secondConnection}`);
      return "";
    };
    return { isDenied: false, addressFor, answered: async () => {}, close() {} };
  }

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
      const warning = evictionWarning(String(await this.client.send(INFO_MEMORY, INFO_TIMEOUT_MS)));
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
    this.transport.close();
  }
}

const INFO_MEMORY: Command = { name: "info", keys: [], args: ["memory"] };
const INFO_TIMEOUT_MS = 5_000;

const NO_WAKE_UPS =
  "this Redis client opens no connection for wake-ups, so waiters notice a free lock only by polling once a second";
const CHANNELS_DENIED =
  "the Redis user has no permission for the channels that wake waiters, or the server has no PUBLISH or SUBSCRIBE, so waiters notice a free lock only by polling, which takes longer. Fix: ACL SETUSER <user> &lockweave:1:*, or use a server that has both commands";
