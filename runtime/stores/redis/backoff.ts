import type { CancelTimer, Clock } from "../../clock";

const FIRST_MS = 50;
const LONGEST_MS = 3_000;
/** A lease that is nearly over cannot be saved by more attempts than this. */
const LEAST_BOUND_MS = 50;

/**
 * How long to wait before the next attempt to connect: it doubles with each failure, and differs from process to process.
 *
 * @param failures how many attempts have failed before
 * @param shortestLeaseMs the shortest time left of a held lease: no delay is longer than a third of it
 * @param random from 0 to below 1
 */
export function backoffMs(failures: number, shortestLeaseMs: number, random: number): number {
  const grownMs = Math.min(FIRST_MS * 2 ** failures, LONGEST_MS);
  const boundMs = Math.max(shortestLeaseMs / 3, LEAST_BOUND_MS);
  return Math.min(grownMs, boundMs) * (0.5 + random / 2);
}

/** Every path from an event to an attempt to connect goes through such a timer. */
export class Backoff {
  readonly #clock: Clock;
  readonly #shortestLeaseMs: () => number;
  #failures = 0;
  #connectedAt: number | undefined;
  #cancel: CancelTimer | undefined;

  /** @param shortestLeaseMs the shortest time left of a held lease */
  constructor(clock: Clock, shortestLeaseMs: () => number) {
    this.#clock = clock;
    this.#shortestLeaseMs = shortestLeaseMs;
  }

  /** Whether an attempt is due, so that another one would come too early. */
  get isPending(): boolean {
    return this.#cancel !== undefined;
  }

  /** Whether there has been a connection for some time, so that another failure would be a new one. */
  get hasLasted(): boolean {
    return this.#clock.now() - (this.#connectedAt ?? Infinity) > LONGEST_MS;
  }

  /** Calls `attempt` after the next delay, unless an attempt is due already. */
  schedule(attempt: () => void): void {
    if (this.isPending) return;
    // A connection that breaks as soon as it is made is no success.
    if (this.hasLasted) this.#failures = 0;
    this.#connectedAt = undefined;
    const delayMs = backoffMs(this.#failures, this.#shortestLeaseMs(), Math.random());
    this.#failures += 1;
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#cancel = undefined;
      attempt();
    });
  }

  /** There is a connection. */
  connected(): void {
    this.#connectedAt = this.#clock.now();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
