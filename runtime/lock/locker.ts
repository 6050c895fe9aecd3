import { areInherited } from "../attributes/table";
import type { Clock } from "../base/clock";
import { adviceOnCopies } from "../base/copies";
import { LockMisconfiguredError } from "../base/errors";
import type { SafeLogger } from "../base/logger";
import { assertOwn, readFrom } from "../base/options";
import type { LockManager } from "../queue/lock-manager";
import type { WaitTerms } from "../queue/waiter";
import type { Store } from "../stores/port";
import type { Events } from "./events";
import type { FailureHandler } from "./on-failure";
import type { OpenReleases } from "./open-releases";
import { LOCK_OPTIONS, unknownLockOption, type Settings } from "./settings";

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
  /** The terms of each call site, with the store that its options name. */
  readonly callSites: CallSites<Terms>;
  readonly newRequestId: () => string;
  readonly manager: LockManager;
  /** Finds the holder in another process for the error of a waiter. Set if this process announces itself, so that others do so, too. */
  readonly findHolder?: FindHolder | undefined;
  /** The lockers of all stores of the configuration, including this one, by the names of the stores. */
  readonly all: Lockers;
}

/** What the process of a holder announced. */
export interface AnnouncedHolder {
  readonly host: string;
  readonly pid: number;
  /** Its function, if it had held the lock for longer than a second. */
  readonly site?: string;
}

/**
 * Returns what the process of a hold announced, in the time of one command. Never rejects.
 *
 * @param value the value of the key in the store
 */
export type FindHolder = (key: string, value: string) => Promise<AnnouncedHolder | undefined>;

export interface Lockers {
  get(store: string): Locker | undefined;
  values(): Iterable<Locker>;
  /** Ends the announcements of this process. */
  stopAnnouncing(): void;
}

/** The locker that new locks use, once `configure()` was called. */
let inForce: Locker | undefined;

/** Makes new locks use this locker. */
export function putInForce(next: Locker): void {
  inForce = next;
}

/** Returns the locker in force, if there is one. */
export function lockerIfConfigured(): Locker | undefined {
  return inForce;
}

/**
 * Returns the locker in force, even while it is being shut down.
 *
 * @throws {LockMisconfiguredError} if there is none
 */
export function locker(): Locker {
  if (inForce !== undefined) return inForce;
  const advice = adviceOnCopies();
  if (advice !== "") throw new LockMisconfiguredError(`No lock store is configured here. ${advice}`);
  throw new LockMisconfiguredError(
    'No lock store is configured. Fix: call configure({ redis: "redis://localhost:6379" }) or configure({ postgres: "postgres://user@localhost/database" }) from "lockweave" once at startup. In a unit test, call testLocks() from "lockweave/testing"',
  );
}

/**
 * The terms that all locks of one call site share: all options after defaults and checks, and everything that follows from them. Each call site makes
 * them once. The `Lock` has everything that differs from call to call.
 */
export interface Terms extends Settings, WaitTerms {
  readonly locker: Locker;
  /** The function that acquires the locks, such as `OrderService.pay`. */
  readonly site: string | undefined;
  /**
   * Whether the async context that holds the lock may acquire it again. A reader always may. Otherwise it could wait for a writer that
   * waits for it.
   */
  readonly mayReenter: boolean;
  /** The handler of `configure()`, if the call site sets no `onFailure` of its own. */
  readonly onTimeout: FailureHandler | undefined;
}

/** Returns the terms of a call site with these settings. */
export function termsOf(
  owner: Locker,
  settings: Settings,
  site: string | undefined,
  onTimeout?: FailureHandler,
): Terms {
  const { retryTimes, waitTimeMs, waitMs, watchdog, autoUnlock, reentrant, mode } = settings;
  return Object.freeze({
    ...settings,
    locker: owner,
    site,
    budgetMs: waitMs ?? retryTimes * waitTimeMs,
    isWatched: watchdog,
    mayShareHold: watchdog && autoUnlock === true,
    mayReenter: reentrant || mode === "read",
    onTimeout,
  });
}

/**
 * Makes something from the options of each call site. A call site usually passes the same options each time. So they are checked only once,
 * and `make` is called only once. Of a call site whose values change, it keeps the first and the latest ones.
 */
export class CallSites<Made> {
  readonly #make: (options: object, site: string | undefined, others: readonly string[]) => Made;
  readonly #known = new Map<string | undefined, CallSite<Made>>();

  /** @param make receives the checked options. `others` are the names of the options that are not for the lock */
  constructor(make: (options: object, site: string | undefined, others: readonly string[]) => Made) {
    this.#make = make;
  }

  /**
   * Returns what was made from these options, and their other values. Reads each option once, because a getter might return another value the
   * next time.
   *
   * @param others names of options that are not for the lock. Their values may differ from call to call
   */
  find<Options extends object>(
    options: Options,
    site: string | undefined,
    others: readonly string[],
  ): Asked<Made, Options> {
    const names = readFrom("The options", () => Object.keys(options));
    const values = valuesOf(options, names, others);
    const known = this.#known.get(site);
    if (inheritsNone(options)) {
      if (known?.areEqualTo(names, values) === true) return new Asked(known.made, names, values);
      const latest = known?.latest;
      if (latest?.areEqualTo(names, values) === true) return new Asked(latest.made, names, values);
    }
    const all = [...others, ...LOCK_OPTIONS];
    const own = Object.create(null) as Record<string, unknown>;
    for (const [index, name] of names.entries()) {
      if (!all.includes(name)) throw unknownLockOption(name, others);
      own[name] = values[index];
    }
    assertOwn(options, own, all);
    const found = new CallSite(names, values, others, this.#make(own, site, others));
    // If only values differ, they come from expressions, such as `lockTime: config.lockTime`, and may change with each call.
    if (known?.hasNames(names) === true) known.latest = found;
    else this.#known.set(site, found);
    return new Asked(found.made, names, values);
  }
}

/** Returns the value of each option. */
function valuesOf(options: object, names: readonly string[], others: readonly string[]): readonly unknown[] {
  const values: unknown[] = [];
  try {
    for (const name of names) values.push(options[name as keyof typeof options]);
    return values;
  } catch (error) {
    const name = names[values.length] ?? "";
    if (!others.includes(name) && !LOCK_OPTIONS.includes(name)) throw unknownLockOption(name, others);
    return readFrom(`The option \`${name}\``, () => {
      throw error;
    });
  }
}

/** Whether the options inherit none. A prototype may have changed since the last call. */
function inheritsNone(options: object): boolean {
  try {
    const prototype: unknown = Object.getPrototypeOf(options);
    return prototype === null || (prototype === Object.prototype && !areInherited());
  } catch {
    return false; // `assertOwn` reports options that cannot be read.
  }
}

/** The options of one call. */
export class Asked<Made, Options extends object> {
  /** What was made from the options of the lock. */
  readonly made: Made;
  readonly #names: readonly string[];
  readonly #values: readonly unknown[];

  constructor(made: Made, names: readonly string[], values: readonly unknown[]) {
    this.made = made;
    this.#names = names;
    this.#values = values;
  }

  /** Returns the value of an option of this call. */
  value<Name extends keyof Options & string>(name: Name): Options[Name] | undefined {
    const index = this.#names.indexOf(name);
    return index === -1 ? undefined : (this.#values[index] as Options[Name]);
  }
}

/** The checked options of a call site, and what was made from them. */
class CallSite<Made> {
  /** The result of `make` for these options. */
  readonly made: Made;
  /** The same call site with the latest other values. */
  latest: CallSite<Made> | undefined;
  readonly #names: readonly string[];
  /** The value of each option in `#names`, or `DIFFERS`. */
  readonly #values: readonly unknown[];

  constructor(names: readonly string[], values: readonly unknown[], others: readonly string[], made: Made) {
    this.made = made;
    this.#names = names;
    this.#values = values.map((value, index) => (others.includes(names[index] ?? "") ? DIFFERS : value));
  }

  /** Whether these options equal the checked ones. */
  areEqualTo(names: readonly string[], values: readonly unknown[]): boolean {
    if (names.length !== this.#names.length) return false;
    for (let index = 0; index < names.length; index += 1) {
      const value = this.#values[index];
      if (names[index] !== this.#names[index] || (value !== DIFFERS && values[index] !== value)) return false;
    }
    return true;
  }

  /** Whether these options have the same names in the same order. */
  hasNames(names: readonly string[]): boolean {
    return names.length === this.#names.length && names.every((name, index) => name === this.#names[index]);
  }
}

const DIFFERS = Symbol("differs from call to call");

/**
 * Returns the terms of each lock of a `MultiLock`. While its caller waits for the other keys, it is renewed whatever the options say. A lock
 * with `holdAtMost` does not share its hold, because that time begins only once all keys are held.
 */
export function termsOfPart(terms: Terms): Terms {
  const mayShareHold = terms.mayShareHold && terms.holdAtMostMs === Infinity;
  return Object.freeze({ ...terms, isWatched: true, mayShareHold });
}

/** The view that one lock has of its `MultiLock`. */
export interface LockPart {
  readonly group: LockGroup;
  /** On the monotonic clock: when the wait for all keys began. */
  readonly waitsSince: number | undefined;
  /** On the monotonic clock: the time of the try. Set for a lock that tries only once and takes no ticket, whatever its terms say. */
  readonly asksOnceAt?: number;
}

/** The view that each lock has of all locks of its `MultiLock`. */
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
