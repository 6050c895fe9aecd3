import type { Clock, Timer } from "../base/clock";
import type { InFlight } from "../commands/in-flight";
import { MOST_AT_ONCE, type Store } from "../stores/port";
import { isHeldBy } from "../stores/value";
import type { Lease } from "./lease";
import { lossOf, unconfirmed } from "./loss";
import type { EarlyRenewals } from "./early-renewals";
import type { Renewals } from "./renewals";
import { SharedLease } from "./shared-lease";

/**
 * How long the first holder that hands off waits for a `peek`, in milliseconds. That `peek` serves all holders that hand off meanwhile. With a
 * `peek` for each, a hand-off would cost as many commands as a release. If bodies take almost no time, the turn ends earlier, and the reply to its
 * release serves all of them.
 */
const LONGEST_WAIT_MS = 4;

/** The pause before the next `peek`, in milliseconds, if the store did not reply about leases in doubt. */
const RETRY_PAUSE_MS = 200;

/**
 * Asks the store, between renewals, whether it still has the leases of this process. It asks when the store may have lost its data. It also
 * asks after hand-offs, because the reply shows whether the previous holder held the lock to its end.
 */
export class LeaseVerifier {
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #inFlight: InFlight;
  readonly #renewals: Renewals;
  readonly #earlyRenewals: EarlyRenewals;
  /** Leases that were handed off since the last `peek`. */
  #handedOff = new Set<Lease>();
  readonly #timer: Timer;
  /** Leases that the store may have lost and has not yet confirmed. */
  #inDoubt = new Set<Lease>();
  readonly #retryTimer: Timer;

  constructor(
    clock: Clock,
    store: Store,
    inFlight: InFlight,
    renewals: Renewals,
    earlyRenewals: EarlyRenewals,
  ) {
    this.#clock = clock;
    this.#store = store;
    this.#inFlight = inFlight;
    this.#renewals = renewals;
    this.#earlyRenewals = earlyRenewals;
    this.#timer = clock.timer(() => this.#peekAtHandedOff());
    this.#retryTimer = clock.timerInBackground(() => this.#peekAt(this.#inDoubt));
  }

  /** Checks leases that the store may have lost. Reports each lost one to its holder as soon as the store replies. */
  doubt(leases: Iterable<Lease>): void {
    this.#inDoubt = new Set(leases);
    // The value of a shared key does not name its holders. Only a renewal shows whether the hold is there.
    for (const lease of this.#inDoubt) {
      if (!(lease instanceof SharedLease)) continue;
      this.#inDoubt.delete(lease);
      if (!lease.isOver) this.#earlyRenewals.doubt(lease);
    }
    this.#peekAt(this.#inDoubt);
  }

  /** Schedules a `peek` for a holder that has just handed off the lease. */
  onHandedOff(lease: Lease, now: number): void {
    if (this.#handedOff.size === 0) this.#timer.set(now + LONGEST_WAIT_MS);
    this.#handedOff.add(lease);
  }

  /** Stops checking a lease that has ended. All its holders know the outcome. */
  forget(lease: Lease): void {
    if (this.#handedOff.delete(lease) && this.#handedOff.size === 0) this.#timer.clear();
    if (this.#inDoubt.delete(lease) && this.#inDoubt.size === 0) this.#retryTimer.clear();
  }

  #peekAtHandedOff(): void {
    const leases = this.#handedOff;
    this.#handedOff = new Set();
    this.#peekAt(leases);
  }

  #peekAt(leases: Iterable<Lease>): void {
    const held = [...leases].filter((lease) => !lease.isOver);
    for (let from = 0; from < held.length; from += MOST_AT_ONCE) {
      void this.#peek(held.slice(from, from + MOST_AT_ONCE));
    }
  }

  async #peek(leases: readonly Lease[]): Promise<void> {
    const keys = leases.map(({ key }) => key);
    const handOffs = leases.map(({ turn }) => turn?.handOffs ?? 0);
    const inDoubt = this.#inDoubt; // The reply does not clear doubts that arise later.
    const values = await this.#inFlight.askForEach(keys, (timeoutMs) => this.#store.peek(keys, timeoutMs));
    const now = this.#clock.now();
    for (const [index, lease] of leases.entries()) {
      const value = values[index];
      if (!(value instanceof Error)) inDoubt.delete(lease);
      this.#inFlight.handle(() => this.#handleValue(lease, value, handOffs[index] ?? 0, now));
    }
    if (leases.some((lease) => inDoubt.has(lease))) this.#retryTimer.set(now + RETRY_PAUSE_MS);
  }

  #handleValue(lease: Lease, value: string | Error | undefined, handOffs: number, now: number): void {
    if (lease.isOver) return; // All holders know the outcome.
    if (value instanceof Error) lease.turn?.report(handOffs, unconfirmed(value));
    else if (isHeldBy(lease.requestId, value)) lease.turn?.report(handOffs, undefined);
    else this.#renewals.lose(lease, lossOf(lease.requestId, value, lease.untilDeadline(now) > 0));
  }
}
