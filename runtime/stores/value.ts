// The possible values of a lock's key. The forms never change, not even those that nobody writes yet, so that processes of different
// versions exclude each other. **A value of any other form is somebody else's hold.** A process acts only on a value that equals, byte for
// byte, one that it wrote itself or that was written for it.
//
//   <32 hex characters>            a hold: the requestId of the command that acquired the key. Its first 12 are the process number
//   reserved:<32 hex characters>   nobody holds the key; it is reserved for the waiter with that ticket
//   shared:readers                 readers hold it; another key has their holds
//   shared:permits:<number>        holders of this number of permits hold it; another key has their holds
//   closed:<anything>              nobody holds it, and nobody may acquire it until it expires. We write the requestId of its last hold
//   guarded:<32 hex characters>    nobody holds it, but a transaction guards its last hold, and nobody may acquire it until that ends
//   revoked:<24 hex characters>    a revoked hold, by the last 24 characters of its requestId. Nobody renews it; its holder may release it

import { UNLIMITED } from "../base/limits";

const RESERVED = "reserved:";
const CLOSED = "closed:";

/** Returns the value of a key that is reserved for the waiter with the ticket. */
export function reservedFor(ticket: string): string {
  return RESERVED + ticket;
}

/** Returns the value of a key that stays closed after the hold with that `requestId`. */
export function closedAfter(requestId: string): string {
  return CLOSED + requestId;
}

/** Whether the key is closed: nobody may acquire it until it expires. */
export function isClosed(value: string): boolean {
  return value.startsWith(CLOSED);
}

const GUARDED = "guarded:";

/** Returns the value of a key whose hold is over, while a transaction still guards that hold. */
export function guardedAfter(requestId: string): string {
  return GUARDED + requestId;
}

/** Whether the hold of the key is over, and a transaction still guards it: nobody may acquire the key until that transaction ends. */
export function isGuarded(value: string): boolean {
  return value.startsWith(GUARDED);
}

const REVOKED = "revoked:";

/** Returns the value of a hold after it was revoked. It is as long as a `requestId`, so it can replace one in a list of holds. */
export function revokedFrom(requestId: string): string {
  return REVOKED + requestId.slice(REVOKED.length);
}

export function isRevoked(value: string): boolean {
  return value.startsWith(REVOKED);
}

/** Whether Lockweave may have written the value as an exclusive hold, revoked or not. */
export function isLockweaveHold(value: string): boolean {
  return /^(?:revoked:[\da-f]{24}|[\da-f]{32})$/i.test(value);
}

/** Whether the value is the revoked form of that hold. */
export function isRevokedFrom(requestId: string, value: string | undefined): boolean {
  return isHeldBy(revokedFrom(requestId), value);
}

/** Whether the command with that `requestId` acquired the key. Its hold may have been revoked since. */
export function hasAcquired(requestId: string, value: string | undefined): boolean {
  return isHeldBy(requestId, value) || isRevokedFrom(requestId, value);
}

/** Whether the key is reserved for a waiter, whichever it is. */
export function isReserved(value: string): boolean {
  return value.startsWith(RESERVED);
}

/** The prefix of the value of a shared key. */
export const SHARED = "shared:";

/** The value of a key that readers hold together. Their holds are in another key. */
export const SHARED_BY_READERS = `${SHARED}readers`;

const SHARED_BY_PERMITS = `${SHARED}permits:`;

/** Returns the value of a key whose holders have this number of permits in all. Their holds are in another key. */
export function sharedByPermits(taken: number | "" = ""): string {
  return SHARED_BY_PERMITS + taken;
}

/** Whether the value marks a shared key. Other values with the same prefix are somebody else's hold. */
export function isShared(value: string): boolean {
  return value === SHARED_BY_READERS || /^shared:permits:\d+$/.test(value);
}

/** Whether the command with that `requestId` holds the key exclusively. Only the store knows the holders of a shared key. */
export function isHeldBy(requestId: string, value: string | undefined): boolean {
  return value === requestId;
}

/** Returns the warning of a store about callers that share this key with different numbers of permits. */
export function permitsDiffer(key: string, one: number, other: number): string {
  const [fewer, more] = [Math.min(one, other), Math.max(one, other)].map(attributeOf);
  return `${key}: callers use ${fewer} and ${more}. The smaller number applies. Fix: use the same number everywhere. During a deployment that changes it, this is expected`;
}

function attributeOf(permits: number): string {
  return permits === UNLIMITED ? "mode=read" : `permits=${permits}`;
}
