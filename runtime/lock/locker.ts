import type { Clock } from "../clock";
import type { SafeLogger } from "../logger";
import type { LockManager } from "../queue/lock-manager";
import type { Store } from "../stores/port";
import type { Asked } from "./call-sites";
import type { Events } from "./events";
import type { OpenReleases } from "./open-releases";
import type { Settings } from "./settings";

/** Everything that the locks of one store share. */
export interface Locker {
  /** By which tags ask for the store. */
  readonly name: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: SafeLogger;
  readonly events: Events;
  readonly openReleases: OpenReleases;
  readonly defaults: Settings;
  /**
   * Returns what a call site asks for, in whichever store its options name.
   *
   * @param others names of options that are not for the lock
   */
  readonly callSite: (
    options: object,
    site: string | undefined,
    others: readonly string[],
  ) => Asked<CallSite>;
  readonly newRequestId: () => string;
  readonly queues: LockManager;
  /** The lockers of all stores of the configuration, its own too, by the names of the stores. */
  readonly all: Lockers;
}

export interface Lockers {
  get(store: string): Locker | undefined;
  values(): Iterable<Locker>;
  /** Ends what the process says of itself. */
  fallSilent(): void;
}

/** What all locks that one place in the code asks for have in common. */
export interface CallSite {
  readonly locker: Locker;
  readonly settings: Settings;
  /** The function that asks: `OrderService.pay`. */
  readonly site: string | undefined;
  /** On the monotonic clock: since when its locks wait, where that is not when each is first asked for. */
  readonly waitsSince?: number | undefined;
  /** On the monotonic clock: now, where they ask once, whatever the settings say, and stand in no queue of the store. */
  readonly asksOnceAt?: number;
  /** Of locks that are acquired together. */
  readonly together?: Together;
}

/** What each of the locks that are acquired together knows of them all. */
export interface Together {
  /** Whether anybody works under them. */
  readonly isInUse: boolean;
  /** On the monotonic clock: since when all are held. Until then each of them is renewed, whatever its options say. */
  readonly heldSince: number | undefined;
  /** One of them is lost. */
  onLost(): void;
}
