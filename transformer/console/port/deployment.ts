import type { Configuration } from "../../../runtime/index";
import type { StoredLock } from "./stored-lock";

/** The servers that store the locks, as the live commands see them. */
export interface Deployment {
  /** The addresses of the servers without passwords. */
  readonly names: readonly string[];
  /**
   * Reads the locks that are known by then, and changes nothing. Each scan costs a bounded number of commands and bytes, and continues where
   * the last one stopped.
   *
   * @param maxNames the most names of keys that it looks at to find more locks
   * @throws {UsageError} if too few servers answer
   */
  scan(maxNames: number): Promise<Scan>;
  /**
   * Reads one lock. Returns `undefined` if nobody holds it and nobody waits for it.
   *
   * @throws {UsageError} if too few servers answer
   */
  read(key: string): Promise<FoundLock | undefined>;
  /** Reads the announcements of processes. Omits one that is missing, too long, or forbidden to this user. */
  announcements(numbers: readonly string[]): Promise<Announcements>;
  /** Connects to the same servers for `configure()`. */
  connect(): Promise<Connected>;
  close(): void;
}

/** A lock, and the number of masters of a quorum that have it. */
export type FoundLock = StoredLock & { readonly masters: number };

/** The result of a scan, its cost, and what it left out. */
export interface Scan extends ScanCost {
  readonly locks: readonly FoundLock[];
}

export interface ScanCost {
  /** The number of keys on all servers. */
  readonly keys: number;
  /** The approximate number of names that this snapshot scanned to find more locks. */
  readonly scanned: number;
  /** Whether every key has been scanned since the command started. */
  readonly isWhole: boolean;
  /** The approximate number of locks that are not tracked. */
  readonly leftOut: number;
  readonly masters: number;
  /** The number of masters that did not answer. */
  readonly unanswered: number;
  /** The number of commands that were sent. */
  readonly commands: number;
}

export interface Announcements {
  /** The announcements by the number of the process. */
  readonly found: ReadonlyMap<string, { readonly about: string; readonly leftMs: number }>;
  /** The number of commands that were sent. */
  readonly commands: number;
}

export interface Connected {
  readonly configuration: Pick<Configuration, "redis" | "postgres">;
  close(): void;
}

/** The most waiters of one lock that are read. */
export const MOST_WAITERS = 20;

/** The most holds of a shared lock that are read. */
export const MOST_HOLDS = 100;

/** The most locks that are tracked on one server, and separately the most locks with waiters. */
export const MOST_LOCKS = 10_000;
