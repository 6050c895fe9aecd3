import { systemClock, type Clock } from "../../base/clock";
import type { Backoff } from "../connection/backoff";
import { errorOf, isReadOnly } from "./errors";
import { CLIENT_STATES } from "./states";

/** If more new connections than this reach a replica, the cause is not a failover. */
const MOST_NEW_CONNECTIONS = 3;
/** A failover may take as long, however soon new connections follow each other: of a server that was a master before, and of any other. */
const FAILOVER_MS = { known: 10_000, unknown: 500 };

/**
 * Replaces a connection to a server that has become a replica. After a failover, the same address may lead to the new master, while the
 * old connection still leads to the old master. So a READONLY error asks for a new connection, at most once per backoff. The command itself
 * is never sent again.
 */
export class ReadOnlyServer {
  readonly #backoff: Backoff;
  readonly #reconnect: () => void;
  /** The number of connections in a row that have replied READONLY. */
  #readOnlyCount = 0;
  /** When the first of them did. */
  #readOnlySince = 0;
  #isCounted = false;
  /** Whether the server has carried out a command. Then its address is right. */
  #hasWorked = false;
  readonly #clock: Pick<Clock, "now">;

  constructor(backoff: Backoff, reconnect: () => void, clock: Pick<Clock, "now"> = systemClock) {
    this.#backoff = backoff;
    this.#reconnect = reconnect;
    this.#clock = clock;
  }

  /** Records that a new connection is ready. */
  connected(): void {
    this.#backoff.connected();
    this.#isCounted = false;
  }

  /** Checks a reply, or the first of several. Returns an error if new connections reach a replica, too. */
  check(reply: unknown): Error | undefined {
    if (!isReadOnly(reply)) {
      this.#hasWorked ||= !(reply instanceof Error);
      return undefined;
    }
    if (!this.#isCounted) {
      if (this.#backoff.hasLasted) this.#readOnlyCount = 0; // The connection was good, so this is another failover.
      this.#readOnlyCount += 1;
      if (this.#readOnlyCount === 1) this.#readOnlySince = this.#clock.now();
      this.#isCounted = true; // Replies to other commands on this connection say nothing new.
    }
    this.#backoff.schedule(this.#reconnect);
    const failoverMs = this.#hasWorked ? FAILOVER_MS.known : FAILOVER_MS.unknown;
    const hasLasted = this.#clock.now() - this.#readOnlySince >= failoverMs;
    return this.#readOnlyCount > MOST_NEW_CONNECTIONS && hasLasted
      ? errorOf(CLIENT_STATES.staysReadOnly, reply)
      : undefined;
  }

  stop(): void {
    this.#backoff.stop();
  }
}
