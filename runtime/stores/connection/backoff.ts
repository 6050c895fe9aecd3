import type { CancelTimer, Clock } from "../../base/clock";

const FIRST_MS = 50;
const LONGEST_MS = 3_000;
/** The smallest bound. More frequent attempts would not save a lease that is about to end. */
const LEAST_BOUND_MS = 50;

/**
 * Returns how long to wait before the next attempt to connect. The delay doubles with each failure, and differs between processes.
 *
 * @param failures the number of attempts that have failed before
 * @param shortestLeaseMs the shortest time left of all leases. The delay is at most a third of it, but that bound is never below 50 ms
 * @param random a random number from 0 to below 1
 */
export function backoffMs(failures: number, shortestLeaseMs: number, random: number): number {
  const grownMs = Math.min(FIRST_MS * 2 ** failures, LONGEST_MS);
  const boundMs = Math.max(shortestLeaseMs / 3, LEAST_BOUND_MS);
  return Math.min(grownMs, boundMs) * (0.5 + random / 2);
}

/** Delays attempts to connect. Each attempt after an event goes through such a timer. */
export class Backoff {
  readonly #clock: Clock;
  readonly #shortestLeaseMs: () => number;
  #failures = 0;
  #connectedAt: number | undefined;
  #cancel: CancelTimer | undefined;

  /** @param shortestLeaseMs returns the shortest time left of all leases */
  constructor(clock: Clock, shortestLeaseMs: () => number) {
    this.#clock = clock;
    this.#shortestLeaseMs = shortestLeaseMs;
  }

  /** Whether an attempt is scheduled, so that another one would come too early. */
  get isPending(): boolean {
    return this.#cancel !== undefined;
  }

  /** Whether the connection has lasted for some time, so that the next failure is a new one. */
  get hasLasted(): boolean {
    return this.#clock.now() - (this.#connectedAt ?? Infinity) > LONGEST_MS;
  }

  /** Calls `attempt` after the next delay, unless an attempt is scheduled already. */
  schedule(attempt: () => void): void {
    if (this.isPending) return;
    // A connection that breaks immediately does not reset the delay.
    if (this.hasLasted) this.#failures = 0;
    this.#connectedAt = undefined;
    const delayMs = backoffMs(this.#failures, this.#shortestLeaseMs(), Math.random());
    this.#failures += 1;
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#cancel = undefined;
      attempt();
    });
  }

  /** Records that there is a connection. */
  connected(): void {
    this.#connectedAt = this.#clock.now();
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
