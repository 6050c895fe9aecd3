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

  constructor(truth: Truth, report: (problem: string) => void) {
    this.#truth = truth;
    this.#report = report;
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
    const leftMs = this.#truth.leftMs(key, storeValue);
    const isTooMuch = believedMs / clock.rate > leftMs + ROUNDING_MS;
    if (isTooMuch && !clock.mayNotKnowOfSuspension && this.#truth.hasKeptItsWord(key, storeValue)) {
      const really = leftMs > 0 ? `it has it for ${leftMs.toFixed(1)} ms` : told(this.#truth.value(key));
      this.#report(`${storeValue} is sure to hold ${key} for ${believedMs.toFixed(1)} ms, and ${really}`);
    }
    return true;
  }
}
