// What a lock's key may hold. The forms are fixed for good, those that nobody writes yet included, so that processes of
// different versions exclude each other: **a value of any other form, too, is somebody else's hold**, and a process acts
// only on a value that is, byte for byte, one that it wrote itself or that was written for it.
//
//   <32 hex characters>            a hold: the requestId of the very command that took the key. The first 12 are its
//                                  process's number
//   reserved:<32 hex characters>   nobody holds the key; it is kept for who stands at that place in its queue
//   shared:<entries>               several hold it, or one beside whom others may: see Share
//   closed:<anything>              nobody holds it, and nobody may until it expires. We write the requestId of its last hold
//   revoked:<24 hex characters>    a hold that is renewed no more, by the last 24 of its requestId: its holder still may drop it

import { MOST_PERMITS } from "../limits";

const RESERVED = "reserved:";
const CLOSED = "closed:";

/** What a key holds while it is kept for who stands at `place`. */
export function reservedFor(place: string): string {
  return RESERVED + place;
}

/** What a key holds while nobody may have it, after the hold of that `requestId`. */
export function closedAfter(requestId: string): string {
  return CLOSED + requestId;
}

/** Whether nobody may have it for a time. */
export function isClosed(value: string): boolean {
  return value.startsWith(CLOSED);
}

const REVOKED = "revoked:";

/** What a key holds of that hold once it is revoked; as long as a `requestId`, to stand in its place among others. */
export function revokedFrom(requestId: string): string {
  return REVOKED + requestId.slice(REVOKED.length);
}

export function isRevoked(value: string): boolean {
  return value.startsWith(REVOKED);
}

/** Whether a process of ours may have written it, as the hold of one, revoked or not. */
export function isHoldOfOurs(value: string): boolean {
  return /^(?:revoked:[\da-f]{24}|[\da-f]{32})$/i.test(value);
}

/** Whether what a key holds instead of that hold is the same, revoked. */
export function isRevokedFrom(requestId: string, value: string | undefined): boolean {
  return isHeldBy(revokedFrom(requestId), value);
}

/** Whether the command that asked with it has taken the key: its hold is there, or was revoked since. */
export function hasTaken(requestId: string, value: string | undefined): boolean {
  return isHeldBy(requestId, value) || isRevokedFrom(requestId, value);
}

/** Whether it is kept for one who waits, whoever that is. */
export function isReserved(value: string): boolean {
  return value.startsWith(RESERVED);
}

const SHARED = "shared:";

/**
 * One of those who hold a key together. Its entry is `<requestId>@<until when>/<permits>`; a blank stands between two. An
 * entry whose time is over counts for nothing. Whoever finds an entry of another form has found somebody else's hold.
 */
export interface Share {
  readonly requestId: string;
  /** In milliseconds on the store's clock. */
  readonly expiresAt: number;
  /** How many may hold the key at once, in its eyes. */
  readonly permits: number;
}

/** What a key holds that these hold together. */
export function sharedBy(shares: readonly Share[]): string {
  return (
    SHARED +
    shares.map(({ requestId, expiresAt, permits }) => `${requestId}@${expiresAt}/${permits}`).join(" ")
  );
}

/** Who holds it together; `undefined` where it is held otherwise. */
export function sharesIn(value: string): Share[] | undefined {
  if (!isShared(value)) return undefined;
  const shares: Share[] = [];
  for (const entry of value.slice(SHARED.length).split(" ")) {
    const [, requestId, expiresAt, permits] = /^([^@]{32})@(-?[\d.]+(?:e-?\d+)?)\/(\d+)$/.exec(entry) ?? [];
    if (requestId === undefined) return undefined;
    shares.push({ requestId, expiresAt: Number(expiresAt), permits: Number(permits) });
  }
  return shares;
}

export function isShared(value: string): boolean {
  return value.startsWith(SHARED);
}

/** Whether it may be held by that command, alone or beside others; among those, its time may be over. */
export function isHeldBy(requestId: string, value: string | undefined): boolean {
  return value === requestId || (value !== undefined && isShared(value) && value.includes(`${requestId}@`));
}

/** What a store warns of where two numbers of permits meet on one key. */
export function permitsDiffer(one: number, other: number): string {
  const [fewer, more] = [Math.min(one, other), Math.max(one, other)].map(inWords);
  return `some share a lock with ${fewer} and others with ${more}: the smaller number counts while both are there. Where no deploy is under way, make them the same.`;
}

function inWords(permits: number): string {
  return permits === MOST_PERMITS ? "mode=read" : `permits=${permits}`;
}
