import type { ScanCost } from "./port/deployment";
import type { StoredHold, StoredLock } from "./port/stored-lock";

/** A process, as far as it is known. */
export interface Process {
  /** The number with which its request IDs begin. */
  readonly number: string;
  /** Known only if the process was configured with `announce: true`. */
  readonly host?: string;
  readonly pid?: number;
  readonly version?: string;
}

/** Details that a process announced about a lock that it has held, or waited for, longer than a second. */
export interface Announcement {
  /** The tagged function. */
  readonly site?: string;
  readonly forMs?: number;
}

export interface HolderRow extends Omit<StoredHold, "process">, Announcement {
  /** `undefined` if Lockweave did not write the value, or if the hold is revoked. */
  readonly process: Process | undefined;
}

/** A process with waiting calls. `site` and `forMs` are those of the call that has waited longest. */
export interface WaiterRow extends Process, Announcement {
  /** The number of its waiting calls, as far as it is known. */
  readonly calls: number;
}

export interface LockRow {
  readonly key: string;
  readonly state: StoredLock["state"];
  readonly holders: readonly HolderRow[];
  /**
   * The number of waiting calls. A process that announced no number counts once for each of its tickets in the store queue. Its calls of the
   * same terms share a ticket, and have none while it holds the lock itself.
   */
  readonly waiting: number;
  /** The number of tickets in the store queue. */
  readonly queued: number;
  /** The processes of the first tickets in the store queue, and then the holders whose own calls wait. */
  readonly waiters: readonly WaiterRow[];
  /** How long this state has been seen. The server does not record when it began. */
  readonly seenForMs: number;
  /** The number of masters of a quorum that have the lock. */
  readonly masters: number;
}

export interface Snapshot extends ScanCost {
  readonly locks: readonly LockRow[];
  readonly tookMs: number;
  /** The number of processes whose waiting calls are not known, because no announcement of theirs was read. */
  readonly unknownProcesses: number;
  /** The number of waiting calls that processes announced without the keys, because they listed others. */
  readonly unlistedCalls: number;
}

const REVOKED = "revoked:";

/** Returns an ID that stays the same if the hold is revoked: the end of its request ID. */
export function holdId({ storeValue }: Pick<HolderRow, "storeValue">): string {
  const isOurs = /^(?:[0-9a-f]{32}|revoked:[0-9a-f]{24})$/.test(storeValue);
  return isOurs ? storeValue.slice(REVOKED.length) : storeValue;
}
