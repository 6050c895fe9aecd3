// What a lock's key may hold. The forms are fixed for good, those that nobody writes yet included, so that processes of
// different versions exclude each other: **a value of any other form, too, is somebody else's hold**, and a process acts
// only on a value that is, byte for byte, one that it wrote itself or that was written for it.
//
//   <32 hex characters>            a hold: the requestId of the very command that took the key. The first 12 are its
//                                  process's number
//   reserved:<32 hex characters>   nobody holds the key; it is kept for who stands at that place in its queue
//   shared:<entries>               several hold it, each entry with its expiry (not written yet)
//   closed:<anything>              nobody holds it, and nobody may until it expires. We write the requestId of its last hold

const RESERVED = "reserved:";

/** What a key holds while it is kept for who stands at `place`. */
export function reservedFor(place: string): string {
  return RESERVED + place;
}

/** What a key holds while nobody may have it, after the hold of that `requestId`. */
export function closedAfter(requestId: string): string {
  return `closed:${requestId}`;
}

/** Whether it is kept for one who waits, whoever that is. */
export function isReserved(value: string): boolean {
  return value.startsWith(RESERVED);
}

/**
 * How the names begin that Lockweave keeps for itself, for queues, fencing counters and inboxes. No lock may have such a
 * key.
 */
export const RESERVED_NAMESPACE = "lockweave:";
