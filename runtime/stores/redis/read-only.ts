import type { Backoff } from "../connection/backoff";
import { errorOf, isReadOnly } from "./errors";
import { CLIENT_STATES } from "./states";

/** If more new connections than this reach a replica, the cause is not a failover. */
const MOST_NEW_CONNECTIONS = 3;

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
  #isCounted = false;

  constructor(backoff: Backoff, reconnect: () => void) {
    this.#backoff = backoff;
    this.#reconnect = reconnect;
  }

  /** Records that a new connection is ready. */
  connected(): void {
    this.#backoff.connected();
    this.#isCounted = false;
  }

  /** Checks a reply, or the first of several. Returns an error if new connections reach a replica, too. */
  check(reply: unknown): Error | undefined {
    if (!isReadOnly(reply)) return undefined;
    if (!this.#isCounted) {
      if (this.#backoff.hasLasted) this.#readOnlyCount = 0; // The connection was good, so this is another failover.
      this.#readOnlyCount += 1;
      this.#isCounted = true; // Replies to other commands on this connection say nothing new.
    }
    this.#backoff.schedule(this.#reconnect);
    return this.#readOnlyCount > MOST_NEW_CONNECTIONS
      ? errorOf(CLIENT_STATES.staysReadOnly, reply)
      : undefined;
  }

  stop(): void {
    this.#backoff.stop();
  }
}
