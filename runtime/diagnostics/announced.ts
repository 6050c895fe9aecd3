/** The time for which an announcement of a process is valid. */
export const STANDS_FOR_MS = 60_000;

/** The most long locks in one announcement: this many that are held, and as many that are waited for. */
export const MOST_TOLD = 100;

/** A long lock: the function that acquires it, and for how long it has held it or waited for it. */
export interface AnnouncedLock {
  readonly key: string;
  readonly site?: string;
  readonly forMs: number;
}

export interface Announced {
  readonly host: string;
  readonly pid: number;
  readonly version?: string;
  /** Sorted, the longest first. */
  readonly holds?: readonly AnnouncedLock[];
  readonly waits?: readonly AnnouncedLock[];
}
