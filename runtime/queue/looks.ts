import type { Clock, Timer } from "../clock";
import type { InFlight } from "../commands/in-flight";
import { lookMany } from "../commands/look";
import { MOST_AT_ONCE, type Store } from "../stores/port";
import { isHeldBy } from "../stores/value";
import type { Lease } from "./lease";
import { lossOf, unconfirmed } from "./loss";
import type { Refreshes } from "./refreshes";
import type { Renewals } from "./renewals";
import { SharedLease } from "./shared-lease";

/**
 * For so long the first of those who handed on waits for a look, in milliseconds: it is for all who do so meanwhile. A
 * look for each would be as many commands as if the store had handed on; and where the work takes next to no time, the
 * turn ends before, whose end tells all.
 */
const LONGEST_WAIT_MS = 4;

/** How soon to look again, in milliseconds, where a look at what the store may have lost had no answer. */
const LOOK_AGAIN_MS = 200;

/**
 * Asks the store whether the keys hold what this process believes, between renewals: when the store may have lost its
 * data, and for those who handed a lease on, who are told that they had held it once the store has said so since.
 */
export class Looks {
  readonly #clock: Clock;
  readonly #store: Store;
  readonly #inFlight: InFlight;
  readonly #renewals: Renewals;
  readonly #refreshes: Refreshes;
  /** Those that were handed on since the last look. */
  #handedOn = new Set<Lease>();
  readonly #timer: Timer;
  /** Those that the store may have lost, until it has answered. */
  #inDoubt = new Set<Lease>();
  readonly #again: Timer;

  constructor(clock: Clock, store: Store, inFlight: InFlight, renewals: Renewals, refreshes: Refreshes) {
    this.#clock = clock;
    this.#store = store;
    this.#inFlight = inFlight;
    this.#renewals = renewals;
    this.#refreshes = refreshes;
    this.#timer = clock.timer(() => this.#lookAtHandedOn());
    this.#again = clock.timerInBackground(() => this.#lookAt(this.#inDoubt));
  }

  /** The store may have lost all of them. Whoever holds one that it has not is told, as soon as it answers. */
  doubt(leases: Iterable<Lease>): void {
    this.#inDoubt = new Set(leases);
    // A key that is shared does not tell by whom: a renewal does.
    for (const lease of this.#inDoubt) {
      if (!(lease instanceof SharedLease)) continue;
      this.#inDoubt.delete(lease);
      if (!lease.isOver) this.#refreshes.doubt(lease);
    }
    this.#lookAt(this.#inDoubt);
  }

  /** Whoever has just handed the lease on is to be told soon. */
  onHandedOn(lease: Lease, now: number): void {
    if (this.#handedOn.size === 0) this.#timer.set(now + LONGEST_WAIT_MS);
    this.#handedOn.add(lease);
  }

  /** It has ended, and all who had it were told. */
  forget(lease: Lease): void {
    if (this.#handedOn.delete(lease) && this.#handedOn.size === 0) this.#timer.clear();
    if (this.#inDoubt.delete(lease) && this.#inDoubt.size === 0) this.#again.clear();
  }

  #lookAtHandedOn(): void {
    const leases = this.#handedOn;
    this.#handedOn = new Set();
    this.#lookAt(leases);
  }

  #lookAt(leases: Iterable<Lease>): void {
    const held = [...leases].filter((lease) => !lease.isOver);
    for (let from = 0; from < held.length; from += MOST_AT_ONCE) {
      void this.#look(held.slice(from, from + MOST_AT_ONCE));
    }
  }

  async #look(leases: readonly Lease[]): Promise<void> {
    const keys = leases.map(({ key }) => key);
    const handOns = leases.map(({ turn }) => turn?.handOns ?? 0);
    const inDoubt = this.#inDoubt; // A doubt that comes up from here on is not cleared by this look.
    const values = await lookMany(this.#store, this.#inFlight, keys);
    const now = this.#clock.now();
    for (const [index, lease] of leases.entries()) {
      const value = values[index];
      if (!(value instanceof Error)) inDoubt.delete(lease);
      this.#inFlight.handle(() => this.#conclude(lease, value, handOns[index] ?? 0, now));
    }
    if (leases.some((lease) => inDoubt.has(lease))) this.#again.set(now + LOOK_AGAIN_MS);
  }

  #conclude(lease: Lease, value: string | Error | undefined, handOns: number, now: number): void {
    if (lease.isOver) return; // What is said at its end is said to all.
    if (value instanceof Error) lease.turn?.tell(handOns, unconfirmed(value));
    else if (isHeldBy(lease.requestId, value)) lease.turn?.tell(handOns, undefined);
    else this.#renewals.lose(lease, lossOf(lease.requestId, value, lease.untilDeadline(now) > 0));
  }
}
