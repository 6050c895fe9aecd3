import type { Clock } from "../../base/clock";
import { inRoot } from "../../base/root-context";
import { loadUuid } from "../../base/uuid";
import { Heartbeat } from "../connection/heartbeat";
import type { PostgresPort, Subscription } from "./client-port";

/** If our own notification does not arrive within this time, a pooler is in the way, or the server is very busy. */
const PROBE_MS = 5_000;

/** The payload of our own notification. No ticket has this value. */
const PROBE = "probe";

/** Receives what the channel reports. */
export interface WakeUpOwner {
  /** A wake-up: the waiter with this ticket should ask again, or all waiters if it is undefined. */
  onWakeUp(ticket: string | undefined): void;
  onReconnect(): void;
  /** No notification arrives on this connection. */
  onSilent(): void;
}

/** The channel on which a store receives wake-ups. Its connection is opened when a caller first waits. */
export class WakeUps {
  readonly #port: PostgresPort;
  readonly #owner: WakeUpOwner;
  readonly #clock: Clock;
  /** A channel has at most 63 bytes. */
  readonly #channel = `lockweave_${loadUuid()().replaceAll("-", "")}`;
  readonly #heartbeat: Heartbeat;
  #subscription: Subscription | undefined;
  #hasSubscribed = false;
  #isSilent = false;
  #isClosed = false;
  #stopWaiting: () => void = () => {};

  constructor(port: PostgresPort, owner: WakeUpOwner, clock: Clock) {
    this.#port = port;
    this.#owner = owner;
    this.#clock = clock;
    this.#heartbeat = new Heartbeat(
      clock,
      () => this.#subscription?.ping(),
      () => this.#subscription?.replace(),
    );
  }

  /** Returns the channel that notifies waiters, and opens it. Empty if no notification arrives there. */
  address(): string {
    this.#open();
    this.#heartbeat.needed();
    return this.#isSilent ? "" : this.#channel;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopWaiting();
    this.#heartbeat.stop();
    this.#subscription?.close();
  }

  #open(): void {
    if (this.#subscription !== undefined || this.#isClosed) return;
    this.#subscription = inRoot(() =>
      this.#port.listen(this.#channel, {
        subscribed: () => this.#subscribed(),
        message: (payload) => this.#received(payload),
        failed: () => this.#stopWaiting(),
      }),
    );
  }

  #subscribed(): void {
    if (this.#isClosed) return;
    if (this.#hasSubscribed) this.#owner.onReconnect();
    this.#hasSubscribed = true;
    this.#stopWaiting();
    this.#stopWaiting = this.#clock.afterInBackground(PROBE_MS, () => this.#noteSilence());
    const sent = this.#port.query("SELECT pg_notify($1::text, $2::text)", [this.#channel, PROBE], PROBE_MS);
    // If it cannot be sent, we do not know whether the channel works. The next connection tries again.
    sent.catch(() => this.#stopWaiting());
    // Notifications that were sent while there was no connection are lost, so all waiters ask again.
    this.#owner.onWakeUp(undefined);
  }

  #received(payload: string): void {
    this.#stopWaiting();
    this.#isSilent = false;
    if (payload !== PROBE) this.#owner.onWakeUp(payload);
  }

  #noteSilence(): void {
    this.#isSilent = true;
    this.#owner.onSilent();
  }
}
