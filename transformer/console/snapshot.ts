/** A process, as far as it is known. */
export interface Process {
  /** The number with which its request IDs begin. */
  readonly number: string;
  /** Known only if the process was configured with `announce: true`. */
  readonly host?: string;
  readonly pid?: number;
  readonly version?: string;
}

/** Details that a process announced about a lock that it has held or waited for longer than a second. */
export interface Announcement {
  /** The tagged function. */
  readonly site?: string;
  readonly forMs?: number;
}

export interface HolderRow extends Announcement {
  /** The value in the store. */
  readonly storeValue: string;
  /** `undefined` if Lockweave did not write the value, or if the hold is revoked. */
  readonly process: Process | undefined;
  readonly leftMs: number;
  readonly isRevoked: boolean;
}

interface WaiterRow extends Process, Announcement {}

export interface LockRow {
  readonly key: string;
  readonly state: "held" | "free" | "next" | "closed";
  readonly holders: readonly HolderRow[];
  /** The number of tickets in the queue. Callers of one process that wait on the same terms share one ticket. */
  readonly waiting: number;
  /** The first waiters. */
  readonly waiters: readonly WaiterRow[];
  /** How long this state has been seen. The server does not record when it began. */
  readonly seenForMs: number;
  /** The number of masters of a quorum that have the lock. */
  readonly masters: number;
}

export interface Snapshot {
  readonly locks: readonly LockRow[];
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
  readonly tookMs: number;
}

const REVOKED = "revoked:";

/** Returns an ID that stays the same if the hold is revoked: the end of its request ID. */
export function holdId({ storeValue }: Pick<HolderRow, "storeValue">): string {
  const isOurs = /^(?:[0-9a-f]{32}|revoked:[0-9a-f]{24})$/.test(storeValue);
  return isOurs ? storeValue.slice(REVOKED.length) : storeValue;
}
