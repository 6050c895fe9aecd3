// What a tag and the runtime's options may ask for: the same, whichever of the two reads it.

/** The shortest `lockTime`: below it, renewing at a third is a hot loop, and one network hiccup loses the lock. */
export const SHORTEST_LOCK_TIME_MS = 100;

/** The units in which a duration is written, and the milliseconds in each. */
export const MS_PER_UNIT = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** A unit in which a duration is written. */
export type DurationUnit = keyof typeof MS_PER_UNIT;

/** What holds where nobody says otherwise: the ancestors' numbers. */
export const DEFAULT_LOCK_TIME_MS = 30_000;
export const DEFAULT_RETRY_TIMES = 3;
export const DEFAULT_WAIT_TIME_MS = 5_000;

/** The longest `lockTime`, `waitTime` or other duration, in hours. */
export const LONGEST_DURATION_HOURS = 24;

/** The largest `replicas`. */
export const MOST_REPLICAS = 100;

/** The largest `retryTimes`. */
export const MOST_RETRY_TIMES = 1_000_000;

/** By this name a lock asks for the store that `configure()` is given as `redis` or `store`. */
export const DEFAULT_STORE = "default";
/** What a store may be called. */
export const STORE_NAME = /^[\p{L}_][\p{L}\p{N}_-]*$/u;
/** The largest `permits`. */
export const MOST_PERMITS = 1_000;
/** The number of permits of a lock with `mode=read`: any number of readers may hold it together. */
export const UNLIMITED = Infinity;

/** The most keys of one lock with `each`. */
export const MOST_KEYS = 256;

/**
 * How the names begin that Lockweave keeps for itself, for queues, fencing counters and inboxes. No lock may have such a
 * key.
 */
export const RESERVED_NAMESPACE = "lockweave:";

/** How many releases may be under way that nobody waits for, and the most that one may allow. */
export const OPEN_RELEASES = 1_000;
export const MOST_OPEN_RELEASES = 1_000_000;
