/** The time for which an announcement of a process is valid. */
export const VALID_FOR_MS = 60_000;

/** The most long locks in one announcement: this many that are held, and as many that are waited for. */
export const MOST_ANNOUNCED = 100;

/** A lock that a call has held for longer than a second: its function, and for how long. */
export interface AnnouncedLock {
  readonly key: string;
  readonly site?: string;
  readonly forMs: number;
}

/** A lock for which a call has waited for longer than a second. `site` and `forMs` are those of the call that has waited longest. */
export interface AnnouncedWait extends AnnouncedLock {
  /** The number of calls that wait for this key. */
  readonly calls: number;
}

export interface Announced {
  readonly host: string;
  readonly pid: number;
  readonly version?: string;
  /** Sorted, the longest first. */
  readonly holds?: readonly AnnouncedLock[];
  readonly waits?: readonly AnnouncedWait[];
  /** The numbers of held locks, and of waiting calls, that the lists leave out. */
  readonly unlisted?: { readonly holds: number; readonly calls: number };
}
