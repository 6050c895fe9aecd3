import type { Backoff } from "./backoff";
import { errorOf, isReadOnly } from "./errors";
import { CLIENT_STATES } from "./states";

/** If as many new connections reach a replica, then it is no fail-over. */
const MOST_NEW_CONNECTIONS = 3;

/**
 * After a fail-over in place, the address leads to the new master, and the old connection to a server that is now a replica. So a
 * READONLY asks for a new connection, at most once per backoff. The command itself is never sent again.
 */
export class ReadOnlyServer {
  readonly #backoff: Backoff;
  readonly #reconnect: () => void;
  /** How many connections in a row have answered READONLY. */
  #refusing = 0;
  #isCounted = false;

  constructor(backoff: Backoff, reconnect: () => void) {
    this.#backoff = backoff;
    this.#reconnect = reconnect;
  }

  /** A new connection is ready. */
  connected(): void {
    this.#backoff.connected();
    this.#isCounted = false;
  }

  /** Reads a reply, or the first of several. If the server stays read-only, it returns the error that says so. */
  look(reply: unknown): Error | undefined {
    if (!isReadOnly(reply)) return undefined;
    if (!this.#isCounted) {
      if (this.#backoff.hasLasted) this.#refusing = 0; // The connection was good, so this is another fail-over.
      this.#refusing += 1;
      this.#isCounted = true; // Replies to other commands on this connection say nothing new.
    }
    this.#backoff.schedule(this.#reconnect);
    return this.#refusing > MOST_NEW_CONNECTIONS ? errorOf(CLIENT_STATES.staysReadOnly, reply) : undefined;
  }

  stop(): void {
    this.#backoff.stop();
  }
}
