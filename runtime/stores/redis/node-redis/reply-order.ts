import { systemClock, type CancelTimer } from "../../../base/clock";
import { loadUuid } from "../../../base/uuid";
import { errorOf } from "../errors";
import { passing } from "../states";
import { PLAIN, type NodeRedis } from "./client";

/** The time after which a check without a reply is repeated. */
const CHECK_AGAIN_MS = 1_000;

/** A script, because the Redis user may have no permission for PING and ECHO. */
const ECHO = "return ARGV[1]";

/**
 * Checks that each command gets its own reply. While node-redis reads replies, it calls listeners of the user, such as that of
 * `subscribe()`. If one throws, node-redis emits "error" and drops the other replies that it has just received. Then every command gets the
 * reply of an earlier or a later one until the client reconnects, and a lock that is refused could look granted.
 */
export class ReplyOrder {
  /** Set if commands may get the replies of others, and no check has shown that they do not. */
  fault: Error | undefined;
  readonly #client: NodeRedis;
  /** Resolves if all earlier replies belong to their commands. Undefined if there is no doubt. */
  #checked: Promise<void> | undefined;
  #expected: string | undefined;
  #cancel: CancelTimer | undefined;

  constructor(client: NodeRedis) {
    this.#client = client;
  }

  /** Returns the reply, or waits until it is certain that replies are in order. Rejects if they are not. */
  verify(reply: unknown): unknown {
    return this.#checked === undefined ? reply : this.#checked.then(() => reply);
  }

  /** Records that an error occurred while the client was connected, possibly while it was reading replies. */
  doubt(cause: Error): void {
    this.#cancel?.();
    const expected = loadUuid()();
    const fault = errorOf(MIXED_UP, cause);
    this.#expected = expected;
    this.#checked = this.#client.sendCommand(["EVAL", ECHO, "0", expected], PLAIN).then(
      (reply) => {
        if (reply === expected) return this.#isLatest(expected) ? this.reset() : undefined;
        if (this.#isLatest(expected)) this.fault = fault;
        throw fault;
      },
      () => Promise.reject(fault), // The check is repeated.
    );
    this.#checked.catch(() => {});
    this.#cancel = systemClock.afterInBackground(CHECK_AGAIN_MS, () => {
      this.fault = fault;
      this.doubt(cause);
    });
  }

  /** Forgets the doubt, because there is another connection or none. */
  reset(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#expected = undefined;
    this.#checked = undefined;
    this.fault = undefined;
  }

  #isLatest(expected: string): boolean {
    return this.#expected === expected;
  }
}

const MIXED_UP = passing(
  "an error occurred while the Redis client read replies, so commands may get the replies of other commands",
  "catch all errors in your own listeners of this client, such as those of subscribe(), and connect the client again",
);
