import type { CancelTimer, Clock } from "./clock";
import { DEADLINE_PASSED, type Lease } from "./lease";

/** Tells the body under a lock, by a signal, that the lock is lost: at its deadline at the latest. */
export class Alarm {
  readonly #aborter = new AbortController();
  readonly #cancelDeadline: CancelTimer | undefined;

  /** @param isWatched somebody else watches the deadline: the renewals */
  constructor(clock: Clock, lease: Lease | undefined, isWatched: boolean) {
    const remainingMs = lease?.remaining(clock.now()) ?? 0;
    if (isWatched || remainingMs === 0) return;
    this.#cancelDeadline = clock.afterInBackground(remainingMs, () => lease?.lose(DEADLINE_PASSED));
  }

  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  sound(reason: Error): void {
    this.#aborter.abort(reason);
  }

  /** The lock is over, in good order. */
  disarm(): void {
    this.#cancelDeadline?.();
  }
}
