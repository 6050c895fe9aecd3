import type { Backoff } from "./backoff";
import { errorOf, isReadOnly } from "./errors";
import { CLIENT_STATES } from "./states";

/** After so many attempts it is no fail-over any more. */
const MOST_ATTEMPTS = 3;

/**
 * After a fail-over in place the address leads to the new master, and the old connection to what is a replica now. So a
 * READONLY asks for a new connection, at most once per backoff. The command itself is never sent again.
 */
export class ReadOnlyServer {
  readonly #backoff: Backoff;
  readonly #reconnect: () => void;
  #attempts = 0;

  constructor(backoff: Backoff, reconnect: () => void) {
    this.#backoff = backoff;
    this.#reconnect = reconnect;
  }

  /**
   * Looks at a reply, or at the first of several. Where the server is read-only it returns why trying again is in vain, if it is.
   */
  look(reply: unknown): Error | undefined {
    if (!isReadOnly(reply)) return undefined;
    if (this.#backoff.hasLasted) this.#attempts = 0;
    this.#backoff.schedule(() => {
      this.#attempts += 1;
      this.#backoff.connected();
      this.#reconnect();
    });
    return this.#attempts < MOST_ATTEMPTS ? undefined : errorOf(CLIENT_STATES.staysReadOnly, reply);
  }

  stop(): void {
    this.#backoff.stop();
  }
}
