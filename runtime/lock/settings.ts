import { milliseconds, type Duration } from "../duration";
import { LockOptionError } from "../errors";
import {
  DEFAULT_LOCK_TIME_MS,
  DEFAULT_RETRY_TIMES,
  DEFAULT_STORE,
  DEFAULT_WAIT_TIME_MS,
  MOST_PERMITS,
  MOST_REPLICAS,
  MOST_RETRY_TIMES,
  SHORTEST_LOCK_TIME_MS,
  STORE_NAME,
  UNLIMITED,
} from "../limits";
import { isOptions, readOptions } from "../options";
import { refusedAmong, formatAttribute } from "../conflicts";
import { formatValue } from "../format-value";

/** How a lock behaves. The names and meanings are those of the tag's attributes. */
export interface LockOptions {
  /** Time to live of the key in the store. Default `"30s"`, at least `"100ms"`. */
  readonly lockTime?: Duration;
  /** How many times a waiter checks again before it gives up. Default 3. */
  readonly retryTimes?: number;
  /** The time between two checks. A release wakes the waiter earlier. Default `"5s"`. */
  readonly waitTime?: Duration;
  /** What happens if the lock is not free within the wait budget: `"throw"` (default) a `LockWaitTimeoutError`, or `"skip"` the body. */
  readonly onFailure?: "throw" | "skip";
  /**
   * What happens if the lock ends before the body does. `"throw"` (default): the release throws a `LockLostError`, whatever
   * the body returned. `"warn"`: logs a warning and returns the result.
   */
  readonly onLost?: "throw" | "warn";
  /** Renews the key at a third of `lockTime` while the lock is held. Default `true`. */
  readonly watchdog?: boolean;
  /**
   * Keeps the lock for at least this long, even if the body finishes sooner. For jobs that several machines start by their
   * clocks. At most `lockTime`. By default, the lock is free when the body is done.
   */
  readonly lockAtLeast?: Duration;
  /**
   * Stops renewing this long after the lock was acquired. A body that hangs then loses the lock, and its `signal` aborts.
   * At least `lockTime`. By default, there is no limit.
   */
  readonly holdAtMost?: Duration;
  /** `false` leaves the key to expire instead of releasing it. Default `true`. */
  readonly autoUnlock?: boolean;
  /**
   * `"awaited"` (default): a release waits for the reply of the store. `"background"`: it does not wait if the lock is still
   * sure to be held. If only that reply shows that the lock was lost, it goes to the logger and the events. The key counts as
   * held in this process until the reply arrives.
   */
  readonly release?: "awaited" | "background";
  /** Lets the async context that holds the lock acquire it again. Default `false`. */
  readonly reentrant?: boolean;
  /** Draws a fencing token, which rises with each holder of the key. Default `false`. */
  readonly fencing?: boolean;
  /** The store, by its name in `configure({ stores })`. Default `"default"`, the one of `redis` or `store`. */
  readonly store?: string;
  /** The number of replicas of the Redis master that must confirm the lock and each renewal. Default 0. */
  readonly replicas?: number;
  /**
   * `"write"` (default): one caller holds the lock alone. `"read"`: any number of readers share it. First come, first served,
   * and readers in a row enter together. Inside a reader's body, another read is allowed, and a write is an error.
   */
  readonly mode?: "read" | "write";
  /** How many callers may hold the lock at once. Default 1. If callers use two numbers for a key, the smaller applies. */
  readonly permits?: number;
}

/** The options of one lock, complete and checked. Times are in milliseconds. */
export interface Settings {
  readonly lockTimeMs: number;
  readonly retryTimes: number;
  readonly waitTimeMs: number;
  readonly onFailure: "throw" | "skip";
  readonly onLost: "throw" | "warn";
  readonly watchdog: boolean;
  readonly lockAtLeastMs: number;
  readonly holdAtMostMs: number;
  readonly autoUnlock: boolean;
  readonly release: "awaited" | "background";
  readonly reentrant: boolean;
  readonly fencing: boolean;
  readonly store: string;
  readonly replicas: number;
  readonly mode: "read" | "write";
  /** `UNLIMITED` for readers. */
  readonly permits: number;
}

/** The settings that apply unless the lock or `configure({ defaults })` gives others. */
export const DEFAULTS: Settings = {
  lockTimeMs: DEFAULT_LOCK_TIME_MS,
  retryTimes: DEFAULT_RETRY_TIMES,
  waitTimeMs: DEFAULT_WAIT_TIME_MS,
  onFailure: "throw",
  onLost: "throw",
  watchdog: true,
  lockAtLeastMs: 0,
  holdAtMostMs: Infinity,
  autoUnlock: true,
  release: "awaited",
  reentrant: false,
  fencing: false,
  store: DEFAULT_STORE,
  replicas: 0,
  mode: "write",
  permits: 1,
};

type Check = (name: string, value: unknown) => Partial<Settings>;

const CHECKS: Record<keyof LockOptions, Check> = {
  lockTime: (name, value) => ({ lockTimeMs: milliseconds(name, value, SHORTEST_LOCK_TIME_MS) }),
  retryTimes: (_, value) => ({ retryTimes: wholeNumber("retryTimes", value, MOST_RETRY_TIMES) }),
  waitTime: (name, value) => ({ waitTimeMs: milliseconds(name, value) }),
  onFailure: (name, value) => ({ onFailure: oneOf(name, value, "throw", "skip") }),
  onLost: (name, value) => ({ onLost: oneOf(name, value, "throw", "warn") }),
  watchdog: (name, value) => ({ watchdog: boolean(name, value) }),
  lockAtLeast: (name, value) => ({ lockAtLeastMs: milliseconds(name, value) }),
  holdAtMost: (name, value) => ({ holdAtMostMs: milliseconds(name, value, SHORTEST_LOCK_TIME_MS) }),
  autoUnlock: (name, value) => ({ autoUnlock: boolean(name, value) }),
  release: (name, value) => ({ release: oneOf(name, value, "awaited", "background") }),
  reentrant: (name, value) => ({ reentrant: boolean(name, value) }),
  fencing: (name, value) => ({ fencing: boolean(name, value) }),
  store: (_, value) => ({ store: storeName(value) }),
  replicas: (_, value) => ({ replicas: wholeNumber("replicas", value, MOST_REPLICAS) }),
  mode: (name, value) => ({ mode: oneOf(name, value, "read", "write") }),
  permits: (_, value) => ({ permits: permits(value) }),
};

/**
 * Whether the async context that holds the lock may acquire it again. A reader always may. Otherwise it could wait for a writer that waits
 * for it.
 */
export function mayBeEnteredAgain({ reentrant, mode }: Settings): boolean {
  return reentrant || mode === "read";
}

/** The wait budget in milliseconds. */
export function budgetMsOf({ retryTimes, waitTimeMs }: Settings): number {
  return retryTimes * waitTimeMs;
}

/** Returns how the lock is shared, in the notation of options, for messages. */
export function sharingOf({ mode, permits: most }: Settings): string {
  if (mode === "read") return "mode=read";
  return most === 1 ? "mode=write" : `permits=${most}`;
}

/** The names of all options of a lock. */
export const LOCK_OPTIONS: readonly string[] = Object.keys(CHECKS);

/** A plain object, which has what every other one inherits. */
const PLAIN: object = {};

/**
 * Whether plain objects inherit an option, of a lock or of a call. The names are constants, because the engine answers such questions
 * about one object from a cache. A loop over a list of names takes 50 times as long, and each acquisition asks.
 */
export function areInherited(): boolean {
  return (
    "lockTime" in PLAIN ||
    "retryTimes" in PLAIN ||
    "waitTime" in PLAIN ||
    "onFailure" in PLAIN ||
    "onLost" in PLAIN ||
    "watchdog" in PLAIN ||
    "lockAtLeast" in PLAIN ||
    "holdAtMost" in PLAIN ||
    "autoUnlock" in PLAIN ||
    "release" in PLAIN ||
    "reentrant" in PLAIN ||
    "fencing" in PLAIN ||
    "store" in PLAIN ||
    "replicas" in PLAIN ||
    "mode" in PLAIN ||
    "permits" in PLAIN ||
    "signal" in PLAIN ||
    "when" in PLAIN ||
    "site" in PLAIN ||
    "businessFlag" in PLAIN ||
    "each" in PLAIN ||
    "key" in PLAIN
  );
}

/** Attributes of tags that make the key. `withLock()` gets the key as an argument instead. */
const KEY_ATTRIBUTES: ReadonlySet<string> = new Set(["businessFlag", "keyName", "key", "each"]);
const FIX_OF_KEYS =
  ' withLock() takes the key, or a list of keys, before the options: withLock(lockKey("payOrder", orderNo), options, body).';

/**
 * Returns the error for an unknown option.
 *
 * @param others names of options that are not for the lock
 */
export function unknownLockOption(name: string, others: readonly string[]): LockOptionError {
  const known = [...others, ...LOCK_OPTIONS].join(", ");
  const fix = KEY_ATTRIBUTES.has(name) ? FIX_OF_KEYS : "";
  return new LockOptionError(`There is no option \`${name}\`. The options are ${known}.${fix}`);
}

/**
 * Returns `defaults`, overridden by the options.
 *
 * @param others names of options that the caller reads itself
 * @throws {LockOptionError} if an option is unknown, or has an invalid value
 */
export function settle(options: object, defaults: Settings, others: readonly string[] = []): Settings {
  const own = readOptions(options, [...others, ...LOCK_OPTIONS], (name) => unknownLockOption(name, others));
  const settings = { ...defaults };
  for (const [name, value] of Object.entries(own)) {
    if (others.includes(name) || value === undefined) continue;
    Object.assign(settings, CHECKS[name as keyof LockOptions](name, value));
  }
  const { mode, permits: most } = own as LockOptions;
  if (mode !== undefined && most !== undefined) {
    throw new LockOptionError(
      `Expected either \`mode\` or \`permits\`, got ${formatValue(mode)} and ${formatValue(most)}`,
    );
  }
  const complete = withSharing(settings);
  assertCompatible(complete);
  return complete;
}

/**
 * Returns the settings that locks use by default.
 *
 * @param defaults the `defaults` of `configure()`
 * @throws {LockOptionError} as {@link settle} does, and if an option cannot be a default
 */
export function settleDefaults(defaults: unknown): Settings {
  if (!isOptions(defaults)) {
    throw new LockOptionError(
      `Expected \`defaults\` to be an object such as { lockTime: "30s" }, got ${formatValue(defaults)}`,
    );
  }
  const own = readOptions(defaults, LOCK_OPTIONS, (name) => unknownLockOption(name, []));
  for (const [name, why] of Object.entries(NO_DEFAULTS)) {
    if (name in own)
      throw new LockOptionError(`\`${name}\` cannot be a default of configure(), because ${why}`);
  }
  return settle(own, DEFAULTS);
}

const SHAPES_CODE =
  "it shapes the woven code. Write it in the tag, in the options of withLock(), or in the plugin's `defaults` in tsconfig.json.";
const OF_ONE_LOCK =
  "it is about one lock: who may hold it beside whom. Write it in the tag, or in the options of withLock().";
const NO_DEFAULTS = {
  onFailure: SHAPES_CODE,
  reentrant: SHAPES_CODE,
  mode: OF_ONE_LOCK,
  permits: OF_ONE_LOCK,
} satisfies Partial<Record<keyof LockOptions, string>>;

/** Sets the permits of readers. */
function withSharing(settings: Settings): Settings {
  const { mode, permits: most, fencing } = settings;
  if (fencing && (mode === "read" || most > 1)) {
    throw new LockOptionError(
      `Expected \`fencing\` with an exclusive lock, got it with ${sharingOf(settings)}. Fencing tokens order holders, but here several hold the lock at once`,
    );
  }
  return mode === "read" ? { ...settings, permits: UNLIMITED } : settings;
}

function permits(value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MOST_PERMITS)
    return value;
  throw new LockOptionError(
    `Expected \`permits\` to be a whole number from 1 to ${MOST_PERMITS}, got ${formatValue(value)}`,
  );
}

/** @throws {LockOptionError} if a lock of several keys cannot have these settings */
export function assertForEach(settings: Settings): void {
  assertCompatible(settings, true);
}

/** Checks that options which are valid alone can be combined. */
function assertCompatible(settings: Settings, each = false): void {
  const { lockTimeMs, lockAtLeastMs, holdAtMostMs } = settings;
  if (holdAtMostMs < lockTimeMs) {
    throw new LockOptionError(
      `Expected \`holdAtMost\` to be at least \`lockTime\`, got ${holdAtMostMs} ms for a lock time of ${lockTimeMs} ms`,
    );
  }
  if (lockAtLeastMs > lockTimeMs) {
    throw new LockOptionError(
      `Expected \`lockAtLeast\` to be at most \`lockTime\`, because the lock of a dead process expires after that time, got ${lockAtLeastMs} ms and ${lockTimeMs} ms`,
    );
  }
  const given = {
    ...settings,
    each,
    lockAtLeast: lockAtLeastMs > 0,
    holdAtMost: holdAtMostMs < Infinity,
    permits: settings.permits > 1,
    replicas: settings.replicas > 0,
  };
  const isGiven = ({ name, value = "true" }: { readonly name: string; readonly value?: string }): boolean =>
    String(given[name as keyof typeof given]) === value;
  const [pair] = refusedAmong(isGiven);
  if (pair === undefined) return;
  const { one, other, because } = pair;
  throw new LockOptionError(
    `\`${formatAttribute(one)}\` and \`${formatAttribute(other)}\` cannot be combined: ${because}`,
  );
}

/** @throws {LockOptionError} if the value is not a whole number from 0 to `most` */
export function wholeNumber(name: string, value: unknown, most: number): number {
  const isInRange = (number: number): boolean => number >= 0 && number <= most;
  if (typeof value === "number" && Number.isInteger(value) && isInRange(value)) return value;
  throw new LockOptionError(
    `Expected \`${name}\` to be a whole number from 0 to ${most}, got ${formatValue(value)}`,
  );
}

function boolean(name: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new LockOptionError(`Expected \`${name}\` to be true or false, got ${formatValue(value)}`);
}

function storeName(value: unknown): string {
  if (typeof value === "string" && STORE_NAME.test(value)) return value;
  throw new LockOptionError(
    `Expected \`store\` to be the name of a store: letters, digits, "-", and "_", got ${formatValue(value)}`,
  );
}

function oneOf<Value extends string>(name: string, value: unknown, ...values: [Value, Value]): Value {
  const found = values.find((each) => each === value);
  if (found !== undefined) return found;
  throw new LockOptionError(
    `Expected \`${name}\` to be "${values[0]}" or "${values[1]}", got ${formatValue(value)}`,
  );
}
