import { isClosed, isReserved, isRevoked } from "../../../runtime/stores/value";
import type { HolderRow, LockRow } from "./snapshot";
import { shortened } from "./shortened";

/** The most bytes that are read of one key: it may contain another program's data. */
export const MOST_BYTES = 1_000_000;

/** What the server answered for one key. */
export interface LockReply {
  readonly key: string;
  /** Its beginning. `undefined` if the key is free, or contains no text. */
  readonly value: string | undefined;
  /** Of the whole value, where more is known than its beginning. */
  readonly bytes: number | undefined;
  readonly hasOtherData: boolean;
  readonly leftMs: number;
  readonly waiting: number;
  /** The first places in its queue. */
  readonly waiters: readonly unknown[];
  /** If the key is shared: its last holds, and their deadlines. */
  readonly shares: readonly Share[];
}

export interface Share {
  readonly requestId: string;
  /** In milliseconds on the server's clock. */
  readonly expiresAt: number;
}

/** What a server has of one lock. */
export interface Found {
  readonly key: string;
  readonly state: LockRow["state"];
  readonly holders: readonly (Pick<HolderRow, "storeValue" | "leftMs" | "isRevoked"> & {
    /** The number of the process. */
    readonly process: string | undefined;
  })[];
  readonly waiting: number;
  /** The numbers of the processes of the first. */
  readonly waiters: readonly string[];
  /**
   * The full text of each hold, reservation or closing that the key contains: the condition for taking it. Not there if
   * the key contains other data than text, or if its value was cut.
   */
  readonly values: readonly string[] | undefined;
}

const OTHER_DATA = "(no text)";

export function foundOf(reply: LockReply): Found {
  const { key, value, bytes, hasOtherData, leftMs, waiting, waiters } = reply;
  const text = hasOtherData ? OTHER_DATA : value;
  const alone = text === undefined ? [] : [{ value: text, leftMs }];
  const holds = reply.shares.length > 0 ? holdsOf(reply.shares, leftMs) : alone;
  const holders = holds.filter((hold) => !isReserved(hold.value) && !isClosed(hold.value));
  const [other] = holds;
  const otherwise = other === undefined ? "free" : isReserved(other.value) ? "next" : "closed";
  return {
    key,
    state: holders.length > 0 ? "held" : otherwise,
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
  // Decoding replaced the bytes that are not UTF-8.
  return !hasOtherData && bytes < MOST_BYTES && !text.includes("\uFFFD");
}

interface Hold {
  readonly value: string;
  readonly leftMs: number;
}

/** Each share has a time of its own. The key expires with the last of them, which tells the server's clock. */
function holdsOf(shares: readonly Share[], leftMs: number): readonly Hold[] {
  const last = Math.max(...shares.map(({ expiresAt }) => expiresAt));
  return shares
    .map(({ requestId, expiresAt }) => ({ value: requestId, leftMs: leftMs - (last - expiresAt) }))
    .filter((share) => share.leftMs >= 0);
}

/** The number of the process that made this request ID. */
function processIn(id: string): string | undefined {
  return /^[0-9a-f]{32}$/.test(id) ? id.slice(0, 12) : undefined;
}
