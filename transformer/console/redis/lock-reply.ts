import { storedLockOf, type StoredLock, type StoredValue } from "../port/stored-lock";

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

const OTHER_DATA = "(no text)";
const REFUSAL = `contains data that is not text, or more than ${MOST_BYTES} bytes. Lockweave did not write that. Fix: delete the key with redis-cli.`;

export function lockIn(reply: LockReply): StoredLock {
  const { key, value, bytes, hasOtherData, leftMs, waiting, waiters, shares } = reply;
  const text = hasOtherData ? OTHER_DATA : value;
  const single = text === undefined ? [] : [{ value: text, bytes, leftMs }];
  return storedLockOf(key, shares.length > 0 ? holdsOf(shares, leftMs) : single, {
    waiting,
    waiters,
    refusal: canBeCompared(text ?? "", hasOtherData, bytes) ? undefined : REFUSAL,
  });
}

function canBeCompared(text: string, hasOtherData: boolean, bytes = Buffer.byteLength(text)): boolean {
  // U+FFFD shows that decoding replaced bytes that are not UTF-8.
  return !hasOtherData && bytes < MOST_BYTES && !text.includes("\uFFFD");
}

/**
 * Returns the holds of a shared lock. Each has its own deadline. The key expires with the last hold, so its remaining lifetime reveals the
 * server's clock.
 */
function holdsOf(shares: readonly Share[], leftMs: number): readonly StoredValue[] {
  const last = Math.max(...shares.map(({ expiresAt }) => expiresAt));
  return shares
    .map(({ requestId, expiresAt }) => ({ value: requestId, leftMs: leftMs - (last - expiresAt) }))
    .filter((share) => share.leftMs >= 0);
}
