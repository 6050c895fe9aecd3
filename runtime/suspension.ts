import type { Clock } from "./clock";

/** Reading the time since boot costs about as much as a command to the store. */
const LOOKS_APART_MS = 20;
/** The time since boot may advance in steps of a whole second. */
const NOTICED_MS = 1_500;
/** The two clocks may drift apart by some parts in a million. In this time, that is negligible. */
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
 * Decides for how long a belief is certain. It also notices when the machine was suspended: the time since boot then
 * advances, and the monotonic clock does not. A lock in the store grows older meanwhile.
 *
 * A virtual machine whose host does not report the pause cannot know, nor can a clock without `sinceBoot`.
 */
export class Suspension {
  readonly #clock: Clock;
  readonly #onSuspended: (suspendedMs: number) => void;
  #trustedSince = -Infinity;
  #lookedAt = -Infinity;
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
    if (clock.sinceBoot === undefined) this.#lookedAt = Infinity; // There is nothing to look at.
  }

  /**
   * The milliseconds for which a belief is certain, or 0. Every check of a belief ends here, and no caller passes the
   * time: the monotonic clock is read after everything else. So a process that was stopped on the way sees the time
   * that it lost.
   */
  timeLeft(belief: Belief): number {
    const leftMs = this.#timeLeft(belief);
    if (this.readAt - this.#lookedAt < LOOKS_APART_MS) return leftMs;
    this.#look();
    return this.#timeLeft(belief);
  }

  /**
   * The monotonic time before which no sent command counts, because the machine was suspended since. It looks at most
   * once in 20 ms, so a suspension right after a look is noticed by the next one.
   *
   * @returns whole milliseconds, or `-Infinity` if no suspension was noticed
   */
  trustedSince(): number {
    this.readAt = this.#clock.now();
    if (this.readAt - this.#lookedAt >= LOOKS_APART_MS) this.#look();
    return this.#trustedSince;
  }

  #timeLeft(belief: Belief): number {
    const until = belief.sureUntil(this.#trustedSince);
    this.readAt = this.#clock.now();
    return Math.max(until - this.readAt, 0);
  }

  #look(): void {
    const aheadMs = this.#readAhead();
    if (aheadMs === undefined) return;
    const now = this.readAt;
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

  /** Returns undefined if the clock cannot tell. */
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
