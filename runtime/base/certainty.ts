import type { Clock } from "./clock";

/** Reading the time since boot costs about as much as a command to the store. */
const CHECK_INTERVAL_MS = 20;
/** The time since boot may advance in steps of a whole second. */
const NOTICED_MS = 1_500;
/** The two clocks may drift apart by a few parts per million, which is negligible in this time. */
const BASELINE_FOR_MS = 600_000;
/** If two reads take longer, the process was stopped between them. */
const SLOW_READ_MS = 100;
const READS = 3;

/** Something that this process believes until a deadline, such as that it holds a key. */
export interface Belief {
  /**
   * The deadline on the monotonic clock, or `-Infinity` if nothing proves the belief.
   *
   * @param trustedSince a command that was sent before this time proves nothing
   */
  sureUntil(trustedSince: number): number;
}

/**
 * Decides for how long a belief is certain. It also notices when the machine was suspended: the time since boot then advances, and the
 * monotonic clock does not. Meanwhile, the lock in the store gets older.
 *
 * It cannot notice a pause of a virtual machine whose host does not report it. It notices no suspension with a clock without `sinceBoot`.
 */
export class Certainty {
  readonly #clock: Clock;
  readonly #onSuspended: (suspendedMs: number) => void;
  #trustedSince = -Infinity;
  #checkedAt = -Infinity;
  /** The smallest lead of the time since boot over the monotonic clock since `#baselineAt`. */
  #aheadMs: number | undefined;
  #baselineAt = 0;
  /** The last reading of the monotonic clock, for bookkeeping. No check of a belief may use it. */
  readAt: number;

  /** @param onSuspended called with the approximate duration each time a suspension is noticed */
  constructor(clock: Clock, onSuspended: (suspendedMs: number) => void = () => {}) {
    this.#clock = clock;
    this.#onSuspended = onSuspended;
    this.#aheadMs = this.#readAhead();
    this.readAt = clock.now();
    this.#baselineAt = this.readAt;
    if (clock.sinceBoot === undefined) this.#checkedAt = Infinity; // There is nothing to read.
  }

  /**
   * Returns the milliseconds for which a belief is certain, or 0. Every check of a belief ends here, and no caller passes the time: the
   * monotonic clock is read after everything else. So if the process was stopped during the check, the result includes the time that it
   * lost.
   */
  timeLeft(belief: Belief): number {
    const leftMs = this.#timeLeft(belief);
    if (this.readAt - this.#checkedAt < CHECK_INTERVAL_MS) return leftMs;
    this.#check();
    return this.#timeLeft(belief);
  }

  /**
   * Returns the monotonic time before which no sent command counts, because the machine was suspended since. It reads the time since boot
   * at most once in 20 ms. So it may notice a suspension only 20 ms later.
   *
   * @returns whole milliseconds, or `-Infinity` if no suspension was noticed
   */
  trustedSince(): number {
    this.readAt = this.#clock.now();
    if (this.readAt - this.#checkedAt >= CHECK_INTERVAL_MS) this.#check();
    return this.#trustedSince;
  }

  #timeLeft(belief: Belief): number {
    const until = belief.sureUntil(this.#trustedSince);
    this.readAt = this.#clock.now();
    return Math.max(until - this.readAt, 0);
  }

  #check(): void {
    const aheadMs = this.#readAhead();
    if (aheadMs === undefined) return;
    const now = this.readAt;
    this.#checkedAt = now;
    const suspendedMs = aheadMs - (this.#aheadMs ?? aheadMs);
    const isSuspended = suspendedMs > NOTICED_MS;
    const isNewBaseline = isSuspended || now - this.#baselineAt > BASELINE_FOR_MS;
    if (isNewBaseline) this.#baselineAt = now;
    this.#aheadMs = isNewBaseline ? aheadMs : Math.min(aheadMs, this.#aheadMs ?? aheadMs);
    if (!isSuspended) return;
    this.#trustedSince = Math.ceil(now);
    this.#onSuspended(suspendedMs);
  }

  /** Returns the lead of the time since boot over the monotonic clock, or `undefined` if it cannot be read. */
  #readAhead(): number | undefined {
    for (let read = 1; read <= READS; read += 1) {
      const before = this.#clock.now();
      const aheadMs = this.#timeSinceBoot() - before;
      this.readAt = this.#clock.now();
      if (Number.isFinite(aheadMs) && this.readAt - before < SLOW_READ_MS) return aheadMs;
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
