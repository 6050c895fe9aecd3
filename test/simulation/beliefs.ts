import type { Caller } from "./caller";
import { told, type Truth } from "./truth";

/** The two clocks are read as numbers with a fraction. */
const ROUNDING_MS = 0.01;

/**
 * The sentence that everything rests on: a process believes to hold only what the store has for it. It is compared number
 * by number: what `remaining()` says, in the server's time, with what the server has left for the very command that the
 * lock is held by.
 */
export class Beliefs {
  readonly #truth: Truth;
  readonly #report: (problem: string) => void;
  /** What was asked with, and what was given up, by how many commands. */
  readonly #asked = new Set<string>();
  readonly #givenUp = new Map<string, number>();
  /** What was heard to be taken. */
  readonly #heard = new Set<string>();

  constructor(truth: Truth, report: (problem: string) => void) {
    this.#truth = truth;
    this.#report = report;
  }

  /** A process sends a command that may take a key: with an id that no other command has. */
  asks(requestId: string): void {
    if (this.#asked.has(requestId)) this.#report(`${requestId} is asked with by two commands`);
    this.#asked.add(requestId);
  }

  /** A process sends a command that ends a hold: from now on it does not believe in it. */
  givesUp(requestId: string): void {
    this.#givenUp.set(requestId, (this.#givenUp.get(requestId) ?? 0) + 1);
  }

  /** Whether several commands were sent to end one hold: where one of them finds nothing, another may have ended it. */
  isGivenUpAnew(requestId: string): boolean {
    return (this.#givenUp.get(requestId) ?? 0) > 1;
  }

  /** A process hears that its command took the key. */
  hears(requestId: string): void {
    this.#heard.add(requestId);
  }

  /** Whether its process has heard that it has the key: it uses that, or gives it back. */
  isHeard(requestId: string): boolean {
    return this.#heard.has(requestId);
  }

  /** Returns whether the caller's process believes that it holds its key. */
  check({ key, lock, process: { clock } }: Caller): boolean {
    const believedMs = lock.remaining();
    if (believedMs === 0) return false;
    const { storeValue } = lock;
    if (storeValue === undefined) {
      this.#report(`${lock.requestId} is sure to hold ${key}, and does not know by what`);
      return true;
    }
    if (this.#givenUp.has(storeValue)) this.#report(`${storeValue} is sure to hold ${key}, and was given up`);
    const leftMs = this.#truth.leftMs(key, storeValue);
    const isTooMuch = believedMs / clock.rate > leftMs + ROUNDING_MS;
    if (isTooMuch && !clock.mayNotKnowOfSuspension && this.#truth.hasKeptItsWord(key, storeValue)) {
      const really = leftMs > 0 ? `it has it for ${leftMs.toFixed(1)} ms` : told(this.#truth.value(key));
      this.#report(`${storeValue} is sure to hold ${key} for ${believedMs.toFixed(1)} ms, and ${really}`);
    }
    return true;
  }
}
