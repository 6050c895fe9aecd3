/** One process, as far as it is known. */
export interface Process {
  /** With which its request ids begin. */
  readonly number: string;
  /** Of one that was configured with `announce: true`. */
  readonly host?: string;
  readonly pid?: number;
  readonly version?: string;
}

/** What a process says of a lock that it has held or waited for longer than a second. */
export interface Announcement {
  /** The function with the tag. */
  readonly site?: string;
  readonly forMs?: number;
}

export interface HolderRow extends Announcement {
  /** What the key holds of it. */
  readonly storeValue: string;
  /** Of a lock of ours. */
  readonly process: Process | undefined;
  readonly leftMs: number;
  readonly isRevoked: boolean;
}

interface WaiterRow extends Process, Announcement {}

export interface LockRow {
  readonly key: string;
  readonly state: "held" | "free" | "next" | "closed";
  readonly holders: readonly HolderRow[];
  /** How many have a place in its queue: one for all of a process that wait to be alone. */
  readonly waiting: number;
  /** The first of them. */
  readonly waiters: readonly WaiterRow[];
  /** Since it was first seen held by these, or waited for; the server does not know since when it is. */
  readonly seenForMs: number;
  /** By how many masters of a quorum. */
  readonly masters: number;
}

export interface Snapshot {
  readonly locks: readonly LockRow[];
  /** How many keys the servers have in all. */
  readonly keys: number;
  /** How many of them were looked at for it, of those whose names were not known yet. */
  readonly scanned: number;
  /** Whether all keys have been looked at since the survey began. */
  readonly isWhole: boolean;
  /** About how many more locks there are than are followed. */
  readonly leftOut: number;
  readonly masters: number;
  /** How many of them did not answer. */
  readonly unanswered: number;
  /** What it has cost the servers, and how long it waited for them. */
  readonly commands: number;
  readonly tookMs: number;
}

const REVOKED = "revoked:";

/** A hold that was revoked meanwhile is the same one, known by the end of its id. */
export function holdId({ storeValue }: Pick<HolderRow, "storeValue">): string {
  const isOurs = /^(?:[0-9a-f]{32}|revoked:[0-9a-f]{24})$/.test(storeValue);
  return isOurs ? storeValue.slice(REVOKED.length) : storeValue;
}
