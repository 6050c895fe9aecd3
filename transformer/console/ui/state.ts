import type { LockRow, Snapshot, Process } from "../snapshot";

// The data that the server sends to the page. All times are in milliseconds since 1970, on the clock of the machine where `ui` runs.

/** The most waiting calls of one lock in each minute. The latest minute is last. */
export interface HeatRow {
  readonly key: string;
  readonly cells: readonly number[];
}

/** A period in which a process held a lock or waited for it, as far as the snapshots show. */
export interface Segment {
  readonly what: "holds" | "waits";
  /** The process, or the value in the store if Lockweave did not write it. */
  readonly who: Process | string;
  readonly site?: string;
  readonly from: number;
  /** `undefined` until the period ends. */
  readonly to?: number;
}

export interface State {
  /** The time of the last snapshot. */
  readonly at: number;
  /** The time of the first snapshot. */
  readonly since: number;
  /** The addresses of the servers without passwords. */
  readonly servers: readonly string[];
  /** The age of the last snapshot, in milliseconds, if the server has not replied since. Without a snapshot, the time since the start. */
  readonly staleForMs?: number;
  /** The reason why the last attempt to read the locks failed. */
  readonly trouble?: string;
  readonly look?: Omit<Snapshot, "locks">;
  /** The number of all locks, of held locks, and of waiting calls. */
  readonly count: { readonly locks: number; readonly held: number; readonly waiting: number };
  /** The locks that match the search, the most contended first. */
  readonly locks: readonly LockRow[];
  /** The number of further locks that match the search. */
  readonly more: number;
  readonly heat: readonly HeatRow[];
  /** The history of the lock that is shown in detail. */
  readonly line?: readonly Segment[];
  readonly lock?: LockRow;
}

/** The question before a lock is released by force. The answer must repeat its `confirmation`. */
export interface Question {
  readonly question: string;
  readonly confirmation: string;
  readonly lock: LockRow;
}
