// What a lock's key may hold. The forms are fixed for good, those that nobody writes yet included, so that processes of
// different versions exclude each other: **a value of any other form, too, is somebody else's hold**, and a process acts
// only on a value that is, byte for byte, one that it wrote itself or that was written for it.
//
//   <32 hex characters>            a hold: the requestId of the very command that took the key. The first 12 are its
//                                  process's number
//   reserved:<32 hex characters>   nobody holds the key; it is kept for who stands at that place in its queue
//   shared:readers                 readers hold it; a key beside it has their holds
//   shared:permits:<number>        holders of so many permits hold it; a key beside it has their holds
//   closed:<anything>              nobody holds it, and nobody may until it expires. We write the requestId of its last hold
//   revoked:<24 hex characters>    a hold that is renewed no more, by the last 24 of its requestId: its holder still may drop it

import { UNLIMITED } from "../limits";

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

/** How the value of a key begins that several hold together. */
export const SHARED = "shared:";

/** The value of a key that readers hold together. Their holds are in a key of their own beside it. */
export const SHARED_BY_READERS = `${SHARED}readers`;

const SHARED_BY_PERMITS = `${SHARED}permits:`;

/** The value of a key whose holders have so many permits in all. Their holds, too, are in a key beside it. */
export function sharedByPermits(taken: number | "" = ""): string {
  return SHARED_BY_PERMITS + taken;
}

/** Whether it says that several hold the key. Other forms that begin like it are somebody else's hold. */
export function isShared(value: string): boolean {
  return value === SHARED_BY_READERS || /^shared:permits:\d+$/.test(value);
}

/** Whether the key is held by that command. Of a shared key, only its store can tell. */
export function isHeldBy(requestId: string, value: string | undefined): boolean {
  return value === requestId;
}

/** What a store warns of where two numbers of permits meet on one key. */
export function permitsDiffer(one: number, other: number): string {
  const [fewer, more] = [Math.min(one, other), Math.max(one, other)].map(inWords);
  return `some share a lock with ${fewer} and others with ${more}: the smaller number counts while both are there. Where no deploy is under way, make them the same.`;
}

function inWords(permits: number): string {
  return permits === UNLIMITED ? "mode=read" : `permits=${permits}`;
}
