import { isClosed, isReserved, isRevoked } from "../../runtime/stores/value";
import type { HolderRow, LockRow } from "./snapshot";
import { shortened } from "./shortened";

/** The most bytes that are read from one key, because it may contain another program's data. */
export const MOST_BYTES = 1_000_000;

/** The reply of a server for one key. */
export interface LockReply {
  readonly key: string;
  /** The beginning of the value. `undefined` if the key is free or contains no text. */
  readonly value: string | undefined;
  /** The length of the whole value, if only its beginning was read. */
  readonly bytes: number | undefined;
  readonly hasOtherData: boolean;
  readonly leftMs: number;
  readonly waiting: number;
  /** The first entries of the lock's queue. */
  readonly waiters: readonly unknown[];
  /** The last holds of a shared lock, with their deadlines. */
  readonly shares: readonly Share[];
}

export interface Share {
  readonly requestId: string;
  /** The deadline in milliseconds on the server's clock. */
  readonly expiresAt: number;
}

/** The data that one server stores for a lock. */
export interface StoredLock {
  readonly key: string;
  readonly state: LockRow["state"];
  readonly holders: readonly (Pick<HolderRow, "storeValue" | "leftMs" | "isRevoked"> & {
    /** The number of the process that holds the lock. */
    readonly process: string | undefined;
  })[];
  readonly waiting: number;
  /** The numbers of the processes of the first waiters. */
  readonly waiters: readonly string[];
  /**
   * The complete value of each hold, reservation, or closed key. A forced release requires that these have not changed. `undefined` if the
   * key contains other data than text, or if the value was cut.
   */
  readonly values: readonly string[] | undefined;
}

const OTHER_DATA = "(no text)";

export function storedLockOf(reply: LockReply): StoredLock {
  const { key, value, bytes, hasOtherData, leftMs, waiting, waiters } = reply;
  const text = hasOtherData ? OTHER_DATA : value;
  const single = text === undefined ? [] : [{ value: text, leftMs }];
  const holds = reply.shares.length > 0 ? holdsOf(reply.shares, leftMs) : single;
  const holders = holds.filter((hold) => !isReserved(hold.value) && !isClosed(hold.value));
  const [other] = holds;
  const unheldState = other === undefined ? "free" : isReserved(other.value) ? "next" : "closed";
  return {
    key,
    state: holders.length > 0 ? "held" : unheldState,
    holders: holders.map((hold) => ({
      storeValue: shortened(hold.value, bytes),
      process: isRevoked(hold.value) ? undefined : processIn(hold.value),
      leftMs: hold.leftMs,
      isRevoked: isRevoked(hold.value),
    })),
    waiting,
    waiters: waiters
      .map((entry) => processIn(String(entry).slice(0, 32)))
      .filter((number) => number !== undefined),
    values: canBeCompared(text ?? "", hasOtherData, bytes) ? holds.map((hold) => hold.value) : undefined,
  };
}

function canBeCompared(text: string, hasOtherData: boolean, bytes = Buffer.byteLength(text)): boolean {
  // U+FFFD shows that decoding replaced bytes that are not UTF-8.
  return !hasOtherData && bytes < MOST_BYTES && !text.includes("\uFFFD");
}

interface Hold {
  readonly value: string;
  readonly leftMs: number;
}

/**
 * Returns the holds of a shared lock. Each has its own deadline. The key expires with the last hold, so its remaining lifetime reveals the
 * server's clock.
 */
function holdsOf(shares: readonly Share[], leftMs: number): readonly Hold[] {
  const last = Math.max(...shares.map(({ expiresAt }) => expiresAt));
  return shares
    .map(({ requestId, expiresAt }) => ({ value: requestId, leftMs: leftMs - (last - expiresAt) }))
    .filter((share) => share.leftMs >= 0);
}

/** Returns the number of the process that created the request ID. */
function processIn(id: string): string | undefined {
  return /^[0-9a-f]{32}$/.test(id) ? id.slice(0, 12) : undefined;
}
