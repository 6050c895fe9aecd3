import type { CancelTimer, Clock } from "../base/clock";
import type { Lease } from "./lease";
import { deadlinePassed, HELD_AT_MOST, type Trouble } from "./loss";

/** Reports a lease as lost exactly at its deadline, if it may not be renewed in time. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #watched = new Map<Lease, { cancel: CancelTimer; trouble: Trouble | undefined }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param trouble why it may not be renewed in time, if that is known */
  watch(lease: Lease, trouble?: Trouble): void {
    const watched = this.#watched.get(lease);
    if (watched === undefined) this.#watched.set(lease, { cancel: this.#startTimer(lease), trouble });
    else if (trouble !== undefined) watched.trouble = trouble;
  }

  isWatched(lease: Lease): boolean {
    return this.#watched.has(lease);
  }

  forget(lease: Lease): void {
    if (this.#watched.size === 0) return;
    this.#watched.get(lease)?.cancel();
    this.#watched.delete(lease);
  }

  /** Reports to the holder that the lease is lost, because its deadline has passed. */
  expire(lease: Lease): void {
    const { trouble } = this.#watched.get(lease) ?? {};
    this.forget(lease);
    lease.lose(lease.isAtItsLimit(this.#clock.now()) ? HELD_AT_MOST : deadlinePassed(trouble));
  }

  #startTimer(lease: Lease): CancelTimer {
    return this.#clock.afterInBackground(lease.untilDeadline(this.#clock.now()), () => {
      const watched = this.#watched.get(lease);
      if (watched === undefined) return;
      if (lease.untilDeadline(this.#clock.now()) > 0) watched.cancel = this.#startTimer(lease);
      else this.expire(lease);
    });
  }
}
