import type { Clock } from "../../base/clock";
import { inRoot } from "../../base/root-context";
import { partsOf } from "../../base/tick-batch";
import { loadUuid } from "../../base/uuid";
import { Heartbeat } from "../connection/heartbeat";
import type { PostgresPort, Subscription } from "./client-port";
import { Gathering } from "./gathering";
import { SERVER_SHARE, type WakeUp } from "./statements";

/** If our own notification does not arrive within this time, a pooler is in the way, or the server is very busy. */
const PROBE_MS = 5_000;

/** The payload of our own notification. No ticket has this value. */
const PROBE = "probe";

/** After this time, waiters have asked again without a notification. */
const NOTIFY_MS = 1_000;

/** The most wake-ups in one statement. */
const MOST_WAKE_UPS = 512;

/**
 * Sends notifications in a transaction of their own, which waits for no disk and no standby. While it commits, it keeps a lock of the whole server, so
 * notifying commits of other programs wait for it, and it may wait for theirs.
 */
export const NOTIFY = `SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', $2::text, true), pg_notify(w->>0, w->>1)
FROM json_array_elements($1::text::json) w`;

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
  /** One statement at a time, because others may keep the lock of the server for long. */
  readonly #sending: Gathering<WakeUp>;
  /** What is on its way to other processes. */
  readonly #sent = new Set<Promise<unknown>>();
  #subscription: Subscription | undefined;
  #hasSubscribed = false;
  #isSilent = false;
  #isClosed = false;
  #stopWaiting: () => void = () => {};

  constructor(port: PostgresPort, owner: WakeUpOwner, clock: Clock) {
    this.#port = port;
    this.#owner = owner;
    this.#clock = clock;
    this.#sending = new Gathering(
      (some, timeoutMs) => this.#notify(some, timeoutMs),
      1,
      MOST_WAKE_UPS,
      clock,
    );
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

  /** Notifies waiters. If that fails, they ask again by themselves. */
  send(wakeUps: readonly WakeUp[]): void {
    for (const part of partsOf(wakeUps, MOST_WAKE_UPS)) {
      const sent = this.#sending.call(part, NOTIFY_MS).catch(() => {});
      this.#sent.add(sent);
      void sent.then(() => this.#sent.delete(sent));
    }
  }

  #notify(wakeUps: readonly WakeUp[], timeoutMs: number): Promise<readonly unknown[]> {
    return this.#port.query(
      NOTIFY,
      [JSON.stringify(wakeUps), Math.ceil(timeoutMs * SERVER_SHARE)],
      timeoutMs,
    );
  }

  /** Resolves once all wake-ups are sent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWaiting();
    this.#heartbeat.stop();
    this.#subscription?.close();
    await Promise.all(this.#sent);
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
    const sent = this.#notify([[this.#channel, PROBE]], PROBE_MS);
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
