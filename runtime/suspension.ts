import type { Clock } from "./clock";

/** A look costs about as much as a command: so not at every question. */
const LOOKS_APART_MS = 20;
/** Time since boot may come in steps of a whole second. */
const NOTICED_MS = 1_500;
/** The two clocks may run apart by some parts in a million: over so long a time, that is nothing. */
const BASELINE_FOR_MS = 600_000;
/** Reading two clocks at once took longer: the process was not running in between. */
const SLOW_READ_MS = 100;
const READS = 3;

/**
 * Notices that the machine was suspended, by a time since boot that ran on further than the monotonic clock. Only
 * that clock is known to deadlines: for them the lock in the store did not grow older, though it did.
 *
 * A machine whose host does not tell it of the pause, and one whose clock has no `sinceBoot`, never knows.
 */
export class Suspension {
  readonly #clock: Clock;
  readonly #onSuspended: (suspendedMs: number) => void;
  #trustedSince = -Infinity;
  #lookedAt = -Infinity;
  /** How far the time since boot is ahead of the monotonic clock: the least that was seen since `#baselineAt`. */
  #aheadMs: number | undefined;
  #baselineAt = 0;

  /** @param onSuspended called with how long it took, about, each time that a suspension is found */
  constructor(clock: Clock, onSuspended: (suspendedMs: number) => void = () => {}) {
    this.#clock = clock;
    this.#onSuspended = onSuspended;
    this.#aheadMs = this.#readAhead();
    this.#baselineAt = clock.now();
  }

  /**
   * The monotonic time, in milliseconds, before which nothing that was sent counts, because the machine was suspended
   * since. It looks at most once in 20 ms: a suspension just after a look is noticed by the next one.
   *
   * @param now the monotonic time
   * @returns in whole milliseconds, at most that in which `now` is; `-Infinity` as long as no suspension was seen
   */
  trustedSince(now: number): number {
    if (now - this.#lookedAt >= LOOKS_APART_MS) this.#look(now);
    return this.#trustedSince;
  }

  #look(now: number): void {
    const aheadMs = this.#readAhead();
    if (aheadMs === undefined) return;
    this.#lookedAt = now;
    const suspendedMs = aheadMs - (this.#aheadMs ?? aheadMs);
    const isSuspended = suspendedMs > NOTICED_MS;
    const isNewBaseline = isSuspended || now - this.#baselineAt > BASELINE_FOR_MS;
    if (isNewBaseline) this.#baselineAt = now;
    this.#aheadMs = isNewBaseline ? aheadMs : Math.min(aheadMs, this.#aheadMs ?? aheadMs);
    if (!isSuspended) return;
    this.#trustedSince = Math.ceil(now);
    this.#onSuspended(suspendedMs);
  }

  /** Undefined when the clock cannot tell. */
  #readAhead(): number | undefined {
    if (this.#clock.sinceBoot === undefined) return undefined;
    for (let read = 1; read <= READS; read += 1) {
      const before = this.#clock.now();
      const sinceBootMs = this.#timeSinceBoot();
      if (!Number.isFinite(sinceBootMs)) return undefined;
      if (this.#clock.now() - before < SLOW_READ_MS) return sinceBootMs - before;
    }
    return undefined;
  }

  #timeSinceBoot(): number {
    try {
      return this.#clock.sinceBoot?.() ?? NaN;
    } catch {
      return NaN; // Some sandboxes hide it.
    }
  }
}
