import type { LockRow, Snapshot, Process } from "../snapshot";

// What the page is told. All times are in milliseconds since 1970, by the clock of the machine where `ui` runs.

/** Of one lock that was waited for, how many waited at most in each minute, the last minute at the end. */
export interface HeatRow {
  readonly key: string;
  readonly cells: readonly number[];
}

/** A time in which somebody held a lock, or waited for it, as far as looks saw it. */
export interface Segment {
  readonly what: "holds" | "waits";
  /** Of somebody else's hold, what it wrote. */
  readonly who: Process | string;
  readonly site?: string;
  readonly from: number;
  /** Not there while it lasts. */
  readonly to?: number;
}

export interface State {
  /** Of the last look. */
  readonly at: number;
  /** Since when it looks. */
  readonly since: number;
  /** Without passwords. */
  readonly servers: readonly string[];
  /** Why the last look failed. */
  readonly trouble?: string;
  readonly look?: Omit<Snapshot, "locks">;
  /** How many locks there are, and how many of them are held, and waited for. */
  readonly count: { readonly locks: number; readonly held: number; readonly waiting: number };
  /** Those that were asked for, the most contended first. */
  readonly locks: readonly LockRow[];
  /** How many more there are of those that were asked for. */
  readonly more: number;
  readonly heat: readonly HeatRow[];
  /** Of the lock that is shown by itself. */
  readonly line?: readonly Segment[];
  readonly lock?: LockRow;
}

/** What is asked before a lock is taken from who holds it, to be answered with the same `confirmation`. */
export interface Question {
  readonly question: string;
  readonly confirmation: string;
  readonly lock: LockRow;
}
