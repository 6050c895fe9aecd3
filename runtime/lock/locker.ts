import type { Clock } from "../base/clock";
import type { SafeLogger } from "../base/logger";
import type { LockManager } from "../queue/lock-manager";
import type { Store } from "../stores/port";
import type { Asked } from "./call-sites";
import type { Events } from "./events";
import type { OpenReleases } from "./open-releases";
import type { Settings } from "./settings";

/** Everything that the locks of one store share. */
export interface Locker {
  /** The name of the store, as tags use it. */
  readonly name: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: SafeLogger;
  readonly events: Events;
  readonly openReleases: OpenReleases;
  readonly defaults: Settings;
  /**
   * Returns the checked options of a call, for the store that they name.
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
  /** The lockers of all stores of the configuration, including this one, by the names of the stores. */
  readonly all: Lockers;
}

export interface Lockers {
  get(store: string): Locker | undefined;
  values(): Iterable<Locker>;
  /** Ends the announcements of this process. */
  fallSilent(): void;
}

/** What all locks of one call site have in common. */
export interface CallSite {
  readonly locker: Locker;
  readonly settings: Settings;
  /** The function that acquires the locks, such as `OrderService.pay`. */
  readonly site: string | undefined;
  /** On the monotonic clock: when the wait of its locks began. By default, the wait of each lock begins with its first try. */
  readonly waitsSince?: number | undefined;
  /** On the monotonic clock: the time of the try, for locks that try only once and take no ticket, whatever the settings say. */
  readonly asksOnceAt?: number;
  /** Set for locks that are acquired together. */
  readonly group?: LockGroup;
}

/** What each lock of a `MultiLock` knows about all of them. */
export interface LockGroup {
  /** Whether a body may be running under them. */
  readonly isInUse: boolean;
  /**
   * On the monotonic clock: the time since which all of them have been held. Until then, each lock is renewed, whatever its options say.
   */
  readonly heldSince: number | undefined;
  /** Notes that one of them was lost. */
  onLost(): void;
}
