import type { Duration } from "../base/duration";
import { DEFAULT_STORE, STORE_NAME, type DurationUnit } from "../base/limits";

// The options of a lock, in tags and in code. The tag reader, the checks of options, the defaults, the editor, and docs/attributes.md read
// this table. tag-attributes.ts adds the attributes that only tags have, and documentation.ts has the documentation.

/** The options of a lock. The names and meanings are those of the tag's attributes. */
export interface LockOptions {
  /** Time to live of the key in the store. Default `"30s"`, at least `"100ms"`. */
  readonly lockTime?: Duration;
  /** The number of times a waiter checks again before it gives up. Default 3. */
  readonly retryTimes?: number;
  /** The time between two checks. A release wakes the waiter earlier. Default `"5s"`. */
  readonly waitTime?: Duration;
  /**
   * The whole wait budget, instead of `retryTimes` and `waitTime`: a time, 0 to try once, or `"forever"`. Waiters still check every
   * `waitTime` that applies by default. `"forever"` ends by `signal`, by `shutdown()`, or if a retry cannot help.
   */
  readonly wait?: Duration | 0 | "forever";
  /** The outcome if the lock is not free within the wait budget. `"throw"` (default): throws a `LockWaitTimeoutError`. `"skip"`: skips the body. */
  readonly onFailure?: "throw" | "skip";
  /**
   * The outcome if the store does not reply within the wait budget. `"throw"` (default): throws a `LockUnreachableError`. `"skip"`: skips the
   * body, which never runs without the lock. A `LockMisconfiguredError` is always thrown.
   */
  readonly onUnreachable?: "throw" | "skip";
  /**
   * The outcome if the lock ends before the body does. `"throw"` (default): the release throws a `LockLostError`, whatever the body returned.
   * `"warn"`: logs a warning and returns the result.
   */
  readonly onLost?: "throw" | "warn";
  /** Renews the key at a third of `lockTime` while the lock is held. Default `true`. */
  readonly watchdog?: boolean;
  /**
   * Keeps the lock for at least this long, even if the body finishes sooner. Use it for jobs that several machines start at the same time.
   * At most `lockTime`. By default, the lock is free when the body ends.
   */
  readonly lockAtLeast?: Duration;
  /**
   * Stops renewing this long after the lock was acquired. A body that hangs then loses the lock, and its `signal` aborts.
   * At least `lockTime`. By default, there is no limit.
   */
  readonly holdAtMost?: Duration;
  /**
   * `false` leaves the key to expire instead of releasing it. `"onError"` releases it if the body throws, and otherwise leaves it for one
   * `lockTime` after the body. Default `true`.
   */
  readonly autoUnlock?: boolean | "onError";
  /**
   * `"awaited"` (default): the caller waits for the store's reply to the release. `"background"`: it does not wait if the lock is certainly
   * still held. If only the reply shows that the lock was lost, Lockweave reports the loss in the log and the events.
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
   * `"write"` (default): one caller holds the lock alone. `"read"`: any number of readers share it. Readers and writers wait in one queue,
   * and consecutive readers enter together. A reader's body may read again, but a write inside it is an error.
   */
  readonly mode?: "read" | "write";
  /** The number of callers that may hold the lock at once. Default 1. If callers use different numbers for a key, the smallest one applies. */
  readonly permits?: number;
}

/** The place where a project can set another default. Without it: the `defaults` of the plugin and of `configure()`. */
interface Preset {
  /** `"plugin"`: only the plugin's `defaults`, because the attribute changes the woven code. `"nowhere"`: the attribute is about one lock. */
  readonly preset?: "plugin" | "nowhere";
}

/** `true` or `false`, or one other word. */
export interface Switch extends Preset {
  readonly kind: "switch";
  readonly default: boolean;
  readonly or?: string;
}

/** One of a few words. */
export interface Choice<Value extends string = string> extends Preset {
  readonly kind: "choice";
  readonly values: readonly Value[];
  readonly default: Value;
  /** Whether a tag may name an error class instead. */
  readonly orClass?: boolean;
}

/** A whole number from `from` to `to`. */
export interface Count extends Preset {
  readonly kind: "count";
  readonly from: number;
  readonly to: number;
  readonly default: number;
}

/** A time of at least `from`. Its limits are in milliseconds. */
export interface Time extends Preset {
  readonly kind: "time";
  /** The unit of a number without a unit in a tag. `undefined`: a tag needs a unit, except for 0. */
  readonly unit: DurationUnit | undefined;
  readonly from: number;
  /** `undefined`: other attributes say what applies by default. */
  readonly default: number | undefined;
  /** Whether it may also be 0 or `"forever"` in code, which have no unit. */
  readonly orForever?: boolean;
}

/** The name of a store. */
interface StoreName extends Preset {
  readonly kind: "store";
  readonly pattern: RegExp;
  readonly default: string;
}

/** The kinds of values that woven code passes to the runtime. */
export type OptionRow = Switch | Choice | Count | Time | StoreName;

type RowFor<Value> = [true] extends [Value]
  ? Switch
  : [Value] extends [number]
    ? Count
    : [Value] extends [Duration | 0 | "forever"]
      ? Time
      : string extends Value
        ? StoreName
        : Choice<Value & string>;

/** The options of a lock. Messages and the documentation list them in this order. */
export const LOCK_ATTRIBUTES = {
  // With a shorter time, renewals at a third of it are a busy loop, and one network hiccup loses the lock.
  lockTime: { kind: "time", unit: "s", from: 100, default: 30_000 },
  retryTimes: { kind: "count", from: 0, to: 1_000_000, default: 3 },
  waitTime: { kind: "time", unit: "ms", from: 0, default: 5_000 },
  wait: { kind: "time", unit: undefined, from: 0, default: undefined, orForever: true },
  onFailure: { kind: "choice", values: ["throw", "skip"], orClass: true, default: "throw", preset: "plugin" },
  onUnreachable: { kind: "choice", values: ["throw", "skip"], default: "throw", preset: "plugin" },
  onLost: { kind: "choice", values: ["throw", "warn"], default: "throw" },
  watchdog: { kind: "switch", default: true },
  lockAtLeast: { kind: "time", unit: "s", from: 0, default: 0 },
  holdAtMost: { kind: "time", unit: "s", from: 100, default: Infinity },
  autoUnlock: { kind: "switch", default: true, or: "onError" },
  release: { kind: "choice", values: ["awaited", "background"], default: "awaited" },
  reentrant: { kind: "switch", default: false, preset: "plugin" },
  fencing: { kind: "switch", default: false },
  store: { kind: "store", pattern: STORE_NAME, default: DEFAULT_STORE },
  replicas: { kind: "count", from: 0, to: 100, default: 0 },
  mode: { kind: "choice", values: ["read", "write"], default: "write", preset: "nowhere" },
  permits: { kind: "count", from: 1, to: 1_000, default: 1, preset: "nowhere" },
} as const satisfies { readonly [Option in keyof LockOptions]-?: RowFor<NonNullable<LockOptions[Option]>> };

/** The names of the rows of a kind. */
export type NamesOf<
  Table extends Readonly<Record<string, { readonly kind: string }>>,
  Kind extends string,
> = {
  [Row in keyof Table]: Table[Row]["kind"] extends Kind ? Row : never;
}[keyof Table];

/** An empty object, to see what all objects inherit. */
const PLAIN: object = {};

/**
 * Whether plain objects inherit an option, of a lock or of a call. The names are constants, because the engine answers such questions about one
 * object from a cache. A loop over a list of names takes 50 times as long, and each acquisition calls this.
 */
export function areInherited(): boolean {
  return (
    "lockTime" in PLAIN ||
    "retryTimes" in PLAIN ||
    "waitTime" in PLAIN ||
    "wait" in PLAIN ||
    "onFailure" in PLAIN ||
    "onUnreachable" in PLAIN ||
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
    "skipValue" in PLAIN ||
    "when" in PLAIN ||
    "site" in PLAIN ||
    "businessFlag" in PLAIN ||
    "each" in PLAIN ||
    "key" in PLAIN
  );
}
