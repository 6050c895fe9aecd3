import type { Caller } from "./caller";
import { describeHolder, type Truth } from "./truth";

/** Both clocks return fractions. */
const ROUNDING_MS = 0.01;

/**
 * Checks that a process never believes it holds a lock that the store has not granted to it. Compares `remaining()`, in the
 * server's time, with the time that the server has left for the command that holds the lock.
 */
export class Beliefs {
  readonly #truth: Truth;
  readonly #report: (problem: string) => void;
  /** The request IDs that were sent, and the number of commands that ended each hold. */
  readonly #sent = new Set<string>();
  readonly #releases = new Map<string, number>();
  /** The request IDs whose grants have arrived. */
  readonly #received = new Set<string>();

  constructor(truth: Truth, report: (problem: string) => void) {
    this.#truth = truth;
    this.#report = report;
  }

  /** A process sends a command that may acquire a key, with an ID that no other command has. */
  acquireSent(requestId: string): void {
    if (this.#sent.has(requestId)) this.#report(`${requestId} is the request ID of two commands`);
    this.#sent.add(requestId);
  }

  /** A process sends a command that ends a hold, and no longer trusts it. */
  releaseSent(requestId: string): void {
    this.#releases.set(requestId, (this.#releases.get(requestId) ?? 0) + 1);
  }

  /** Returns whether several commands were sent to end one hold. If one of them finds nothing, another may have ended it. */
  wasReleasedTwice(requestId: string): boolean {
    return (this.#releases.get(requestId) ?? 0) > 1;
  }

  /** A process receives the reply that its command acquired the key. */
  grantReceived(requestId: string): void {
    this.#received.add(requestId);
  }

  /** Returns whether its process has received the grant, which it then uses or releases. */
  hasReceivedGrant(requestId: string): boolean {
    return this.#received.has(requestId);
  }

  /** Returns whether the caller's process believes that it holds its key. */
  check({ key, lock, process: { clock } }: Caller): boolean {
    const believedMs = lock.remaining();
    if (believedMs === 0) return false;
    const { storeValue } = lock;
    if (storeValue === undefined) {
      this.#report(`${lock.requestId} believes it holds ${key}, and does not know its value`);
      return true;
    }
    if (this.#releases.has(storeValue))
      this.#report(`${storeValue} believes it holds ${key}, and has released it`);
    const leftMs = this.#truth.leftMs(key, storeValue);
    const isTooMuch = believedMs / clock.rate > leftMs + ROUNDING_MS;
    if (isTooMuch && !clock.mayNotKnowOfSuspension && this.#truth.hasKeptPromise(key, storeValue)) {
      const really =
        leftMs > 0 ? `it holds it for ${leftMs.toFixed(1)} ms` : describeHolder(this.#truth.value(key));
      this.#report(`${storeValue} believes it holds ${key} for ${believedMs.toFixed(1)} ms, and ${really}`);
    }
    return true;
  }
}
