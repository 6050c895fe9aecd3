import type { CancelTimer, Clock } from "../clock";
import type { Lease } from "./lease";
import { deadlinePassed, HELD_AT_MOST, type Trouble } from "./loss";

/** Tells at its deadline, and not a moment later, that a lease is lost: for those that may not be renewed in time. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #watched = new Map<Lease, { cancel: CancelTimer; trouble: Trouble | undefined }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param trouble why it may not be renewed, if that is known */
  watch(lease: Lease, trouble?: Trouble): void {
    const watched = this.#watched.get(lease);
    if (watched === undefined) this.#watched.set(lease, { cancel: this.#ring(lease), trouble });
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

  /** Its deadline has passed: whoever holds it is told. */
  expire(lease: Lease): void {
    const { trouble } = this.#watched.get(lease) ?? {};
    this.forget(lease);
    lease.lose(lease.isAtItsLimit(this.#clock.now()) ? HELD_AT_MOST : deadlinePassed(trouble));
  }

  #ring(lease: Lease): CancelTimer {
    return this.#clock.afterInBackground(lease.untilDeadline(this.#clock.now()), () => {
      const watched = this.#watched.get(lease);
      if (watched === undefined) return;
      if (lease.untilDeadline(this.#clock.now()) > 0) watched.cancel = this.#ring(lease);
      else this.expire(lease);
    });
  }
}
