/** What a process says of itself stands for so long after it was said last. */
export const STANDS_FOR_MS = 60_000;

/** Of the locks that last, so many that are held, and as many that are waited for. */
export const MOST_TOLD = 100;

/** What is said of a lock: the function that asked for it, and for how long it has held it or waited. */
export interface AnnouncedLock {
  readonly key: string;
  readonly site?: string;
  readonly forMs: number;
}

export interface Announced {
  readonly host: string;
  readonly pid: number;
  readonly version?: string;
  /** The longest first. */
  readonly holds?: readonly AnnouncedLock[];
  readonly waits?: readonly AnnouncedLock[];
}
