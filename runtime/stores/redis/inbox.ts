import { systemClock } from "../../base/clock";
import { inRoot, listenInRoot } from "../../base/root-context";
import { loadUuid } from "../../base/uuid";
import { Backoff } from "./backoff";
import { isCluster, type RedisClient, type RedisNode, type RedisSubscriber } from "./client";
import { isDenied } from "./errors";
import { Heartbeat } from "./heartbeat";
import { inboxName } from "./keys";

/** Receives the events of an inbox. */
export interface InboxOwner {
  /** A wake-up: the waiter with this ticket should ask again, or all waiters if it is undefined. */
  onWakeUp(ticket: string | undefined): void;
  /** The user of the client lacks permission for the channel. */
  onDenied(): void;
  /** Returns the shortest time left of all leases here, in milliseconds. Reconnects wait at most a third of it. */
  shortestLeaseMs(): number;
}

/** Receives the wake-ups of a store. */
export interface WakeUpChannel {
  /** Returns the channel that notifies waiters for the key, and opens it. Empty if the process knows that it cannot subscribe. */
  addressFor(key: string): string;
  close(): void;
}

/** The channel on which a store receives wake-ups. Its connection is a second one, which is opened when a caller first waits. */
export class Inbox implements WakeUpChannel {
  readonly #client: RedisClient;
  readonly #owner: InboxOwner;
  readonly #name = inboxName(loadUuid()());
  readonly #backoff: Backoff;
  readonly #heartbeat: Heartbeat;
  #subscriber: RedisSubscriber | undefined;
  /** Replaces a subscriber that does not answer, once it has subscribed. */
  #spare: RedisSubscriber | undefined;
  #isDenied = false;
  #isClosed = false;

  constructor(client: RedisClient, owner: InboxOwner) {
    this.#client = client;
    this.#owner = owner;
    this.#backoff = new Backoff(systemClock, () => owner.shortestLeaseMs());
    this.#heartbeat = new Heartbeat(
      systemClock,
      () => this.#ping(),
      () => this.#openSpare(),
    );
  }

  addressFor(): string {
    this.open();
    this.#heartbeat.needed();
    return this.#isDenied ? "" : this.#name;
  }

  open(): void {
    if (this.#subscriber !== undefined || this.#isClosed || this.#backoff.isPending) return;
    inRoot(() => (this.#subscriber = this.#connect()));
  }

  close(): void {
    this.#isClosed = true;
    this.#backoff.stop();
    this.#heartbeat.stop();
    this.#subscriber?.disconnect();
    this.#spare?.disconnect();
  }

  /** Returns undefined for a `Cluster`. That would ping any node, and not the one on which it is subscribed. */
  #ping(): Promise<unknown> | undefined {
    return isCluster(this.#client) ? undefined : this.#subscriber?.call("ping");
  }

  #openSpare(): void {
    this.#spare?.disconnect();
    this.#spare = this.#connect();
  }

  #connect(): RedisSubscriber {
    // We subscribe ourselves on each "ready". With `autoResubscribe`, a `Redis` would subscribe, too, but nobody would handle its failure.
    const client: RedisNode = this.#client;
    const subscriber = isCluster(client) ? client.duplicate() : client.duplicate({ autoResubscribe: false });
    const subscribe = (): void => {
      subscriber.subscribe(this.#name).then(
        () => this.#subscribed(subscriber),
        (error: unknown) => {
          if (!isDenied(error)) return;
          this.#isDenied = true;
          this.#owner.onDenied();
        },
      );
    };
    listenInRoot(subscriber, {
      error() {}, // Waiters that receive no wake-up still ask again in time.
      message: (_channel, ticket) => this.#owner.onWakeUp(ticket),
      // A subscriber that does not reconnect by itself is replaced after a pause.
      end: () => this.#ended(subscriber),
      ready: subscribe,
      // A `Cluster` subscribes on a node of its choice, and does not report that choice. It only reports new nodes.
      ...(isCluster(client) && { "+node": subscribe }),
    });
    subscriber.subscribe(this.#name).catch(() => {}); // A client with `lazyConnect` connects now.
    return subscriber;
  }

  #subscribed(subscriber: RedisSubscriber): void {
    this.#isDenied = false;
    this.#backoff.connected();
    if (subscriber === this.#spare) {
      const dead = this.#subscriber;
      this.#subscriber = subscriber;
      this.#spare = undefined;
      dead?.disconnect();
    }
    // Messages that were published while there was no connection are lost, so all waiters ask again.
    this.#owner.onWakeUp(undefined);
  }

  #ended(subscriber: RedisSubscriber): void {
    if (this.#spare === subscriber) this.#spare = undefined;
    if (this.#subscriber !== subscriber || this.#isClosed) return;
    this.#subscriber = undefined;
    this.#backoff.schedule(() => this.open());
  }
}
