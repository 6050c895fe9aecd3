// The limits of attributes in tags and of options at run time. Both use the same ones.

/** The shortest `lockTime`. With a shorter one, renewals at a third of it are a busy loop, and one network hiccup loses the lock. */
export const SHORTEST_LOCK_TIME_MS = 100;

/** The units in which a duration is written, and the milliseconds in each. */
export const MS_PER_UNIT = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** A unit in which a duration is written. */
export type DurationUnit = keyof typeof MS_PER_UNIT;

/** The defaults of tags and options, the same as in the libraries from which the attributes come. */
export const DEFAULT_LOCK_TIME_MS = 30_000;
export const DEFAULT_RETRY_TIMES = 3;
export const DEFAULT_WAIT_TIME_MS = 5_000;

/** The longest `lockTime`, `waitTime`, or other duration, in hours. */
export const LONGEST_DURATION_HOURS = 24;

/** The largest `replicas`. */
export const MOST_REPLICAS = 100;

/** The largest `retryTimes`. */
export const MOST_RETRY_TIMES = 1_000_000;

/** The name of the store that `configure()` gets as `redis` or `store`. */
export const DEFAULT_STORE = "default";
/** The allowed names of stores. */
export const STORE_NAME = /^[\p{L}_][\p{L}\p{N}_-]*$/u;
/** The largest `permits`. */
export const MOST_PERMITS = 1_000;
/** The number of permits of a lock with `mode=read`: any number of readers may hold it together. */
export const UNLIMITED = Infinity;

/** The largest number of keys of one lock with `each`. */
export const MOST_KEYS = 256;

/**
 * The prefix of the keys that Lockweave uses itself, for queues, fencing counters, and inboxes. The key of a lock must not begin with it.
 */
export const RESERVED_NAMESPACE = "lockweave:";

/** The default number of releases that may be under way while nobody waits for them, and the largest number that `openReleases` allows. */
export const OPEN_RELEASES = 1_000;
export const MOST_OPEN_RELEASES = 1_000_000;
