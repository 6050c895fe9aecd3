// Limits and names that tags and options at run time share. The limits of one attribute are in attributes/table.ts.

/** The units in which a duration is written, and the milliseconds in each. */
export const MS_PER_UNIT: Readonly<Record<DurationUnit, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** A unit in which a duration is written. */
export type DurationUnit = "ms" | "s" | "m" | "h";

/** The longest `lockTime`, `waitTime`, or other duration, in hours. */
export const LONGEST_DURATION_HOURS = 24;

/** The name of the store that `configure()` gets as `redis` or `store`. */
export const DEFAULT_STORE = "default";
/** The allowed names of stores. */
export const STORE_NAME = /^[\p{L}_][\p{L}\p{N}_-]*$/u;
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

/** The length of an announcement of a process, in characters. A longer one does not come from Lockweave, and is ignored. */
export const LONGEST_ANNOUNCEMENT = 300_000;
