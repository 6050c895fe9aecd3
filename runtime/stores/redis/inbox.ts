import { systemClock } from "../../base/clock";
import { Latch } from "../../base/latch";
import { inRoot } from "../../base/root-context";
import { loadUuid } from "../../base/uuid";
import { Backoff } from "../connection/backoff";
import { Heartbeat } from "../connection/heartbeat";
import type { Subscription, SubscribingPort } from "./client-port";
import { isDenied, isUnknownCommand } from "./errors";
import { inboxName } from "./keys";

/** Receives the events of an inbox. */
export interface InboxOwner {
  /** A wake-up: the waiter with this ticket should ask again, or all waiters if it is undefined. */
  onWakeUp(ticket: string | undefined): void;
  /** The user of the client lacks permission for the channel. */
  onDenied(): void;
  /** Returns the shortest time left of all leases and waiters here, in milliseconds. Reconnects wait at most a fifth of it. */
  shortestTimeLeftMs(): number;
}

/** Receives the wake-ups of a store. */
export interface WakeUpChannel {
  /** Returns the channel that notifies waiters for the key, and opens it. Empty if the process knows that it cannot subscribe. */
  addressFor(key: string): string;
  /** Resolves when the server has confirmed or refused each channel that is open. */
  answered(): Promise<void>;
  /** Whether the user of the client lacks permission for a channel. */
  readonly isDenied: boolean;
  close(): void;
}

/** The channel on which a store receives wake-ups. Its connection is a second one, which is opened when a caller first waits. */
export class Inbox implements WakeUpChannel {
  readonly #client: SubscribingPort;
  readonly #owner: InboxOwner;
  #name: string | undefined;
  readonly #backoff: Backoff;
  readonly #heartbeat: Heartbeat;
  #subscription: Subscription | undefined;
  /** Replaces a subscription that does not answer, once it has subscribed. */
  #spare: Subscription | undefined;
  readonly #answer = new Latch();
  #isDenied = false;
  #isClosed = false;

  constructor(client: SubscribingPort, owner: InboxOwner) {
    this.#client = client;
    this.#owner = owner;
    this.#backoff = new Backoff(systemClock, () => owner.shortestTimeLeftMs());
    this.#heartbeat = new Heartbeat(
      systemClock,
      () => this.#subscription?.ping(),
      () => this.#openSpare(),
    );
  }

  addressFor(): string {
    this.#backoff.hurry();
    this.open();
    this.#heartbeat.needed();
    return this.#isDenied ? "" : this.#channel;
  }

  get isDenied(): boolean {
    return this.#isDenied;
  }

  /** The name of the channel. A process in which nobody waits needs none. */
  get #channel(): string {
    return (this.#name ??= inboxName(loadUuid()()));
  }

  answered(): Promise<void> {
    return this.#answer.opened;
  }

  open(): void {
    if (this.#subscription !== undefined || this.#isClosed || this.#backoff.isPending) return;
    inRoot(() => (this.#subscription = this.#connect()));
  }

  close(): void {
    this.#isClosed = true;
    this.#backoff.stop();
    this.#heartbeat.stop();
    this.#subscription?.close();
    this.#spare?.close();
  }

  #openSpare(): void {
    this.#spare?.close();
    this.#spare = this.#connect();
  }

  #connect(): Subscription {
    const subscription = this.#client.openSubscription(this.#channel, {
      subscribed: () => this.#subscribed(subscription),
      message: (ticket) => this.#owner.onWakeUp(ticket),
      failed: (error) => {
        if (!isDenied(error) && !isUnknownCommand(error)) return;
        this.#isDenied = true;
        this.#answer.open();
        this.#owner.onDenied();
      },
      // A subscription that does not reconnect by itself is replaced after a pause.
      ended: () => this.#ended(subscription),
    });
    return subscription;
  }

  #subscribed(subscription: Subscription): void {
    this.#isDenied = false;
    this.#answer.open();
    this.#backoff.connected();
    if (subscription === this.#spare) {
      const dead = this.#subscription;
      this.#subscription = subscription;
      this.#spare = undefined;
      dead?.close();
    }
    // Messages that were published while there was no connection are lost, so all waiters ask again.
    this.#owner.onWakeUp(undefined);
  }

  #ended(subscription: Subscription): void {
    if (this.#spare === subscription) this.#spare = undefined;
    if (this.#subscription !== subscription || this.#isClosed) return;
    this.#subscription = undefined;
    this.#backoff.schedule(() => this.open());
  }
}
