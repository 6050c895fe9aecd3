import type { CancelTimer, Clock } from "../../base/clock";

const FIRST_MS = 50;
const LONGEST_MS = 3_000;
/** The longest delay while somebody waits for a lock or holds one. */
export const LONGEST_IN_USE_MS = 500;
/** The smallest bound. More frequent attempts would not save a lease that is about to end. */
const LEAST_BOUND_MS = 50;
/** The smallest bound after that many failures, so that callers with little time do not overload a server that is down. */
const LATER_BOUND_MS = 250;
const EARLY_FAILURES = 8;

/**
 * Returns how long to wait before the next attempt to connect. The delay doubles with each failure, and differs between processes.
 *
 * @param failures the number of attempts that have failed before
 * @param shortestTimeLeftMs the shortest time left of all leases and waiters. The delay is at most a fifth of it, and at most 500 ms. This bound
 *   is never below 50 ms, and later never below 250 ms. `Infinity` if there are none
 * @param random a random number from 0 to below 1
 */
export function backoffMs(failures: number, shortestTimeLeftMs: number, random: number): number {
  const grownMs = Math.min(FIRST_MS * 2 ** failures, LONGEST_MS);
  const boundMs = shortestTimeLeftMs === Infinity ? LONGEST_MS : longestInUseMs(shortestTimeLeftMs, failures);
  return jittered(Math.min(grownMs, boundMs), random);
}

function longestInUseMs(timeLeftMs: number, failures: number): number {
  const leastMs = failures < EARLY_FAILURES ? LEAST_BOUND_MS : LATER_BOUND_MS;
  return Math.max(Math.min(timeLeftMs / 5, LONGEST_IN_USE_MS), leastMs);
}

function jittered(delayMs: number, random: number): number {
  return delayMs * (0.5 + random / 2);
}

/** An attempt that is scheduled. */
interface Pending {
  readonly attempt: () => void;
  readonly dueAt: number;
  readonly cancel: CancelTimer;
}

/** Delays attempts to connect. Each attempt after an event goes through such a timer. */
export class Backoff {
  readonly #clock: Clock;
  readonly #shortestTimeLeftMs: () => number;
  #failures = 0;
  #connectedAt: number | undefined;
  #pending: Pending | undefined;

  /** @param shortestTimeLeftMs returns the shortest time left of all leases and waiters */
  constructor(clock: Clock, shortestTimeLeftMs: () => number) {
    this.#clock = clock;
    this.#shortestTimeLeftMs = shortestTimeLeftMs;
  }

  /** Whether an attempt is scheduled, so that another one would come too early. */
  get isPending(): boolean {
    return this.#pending !== undefined;
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
    const delayMs = backoffMs(this.#failures, this.#shortestTimeLeftMs(), Math.random());
    this.#failures += 1;
    this.#start(attempt, delayMs);
  }

  /**
   * Shortens the current delay, if there is one, for a caller that needs the connection now.
   *
   * @param timeLeftMs the time that it has left. The delay ends within a fifth of it, and within 500 ms
   */
  hurry(timeLeftMs = Infinity): void {
    const pending = this.#pending;
    if (pending === undefined) return;
    const delayMs = jittered(longestInUseMs(timeLeftMs, this.#failures), Math.random());
    if (this.#clock.now() + delayMs >= pending.dueAt) return;
    pending.cancel();
    this.#start(pending.attempt, delayMs);
  }

  #start(attempt: () => void, delayMs: number): void {
    const cancel = this.#clock.after(delayMs, () => {
      this.#pending = undefined;
      attempt();
    });
    this.#pending = { attempt, dueAt: this.#clock.now() + delayMs, cancel };
  }

  /** Records that there is a connection. */
  connected(): void {
    this.#connectedAt = this.#clock.now();
  }

  stop(): void {
    this.#pending?.cancel();
    this.#pending = undefined;
  }
}
