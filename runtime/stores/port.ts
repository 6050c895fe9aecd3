// What the runtime asks of a place where locks live. It has two halves: *who holds* a key (take, renew, drop, look), and
// *who comes next* (place, leave, next, and the hints). The second never decides the first: what the queue gives is a
// reservation, which is worth nothing until a command of its own takes it.

/** How many tokens one draw stands for: a holder counts on from it for those in its process it hands the lock on to. */
export const FENCING_STRIDE = 64;

/** One who has a place in a key's queue must be heard of in this time, or loses it. */
export const PLACE_TIME_MS = 3_000;

/** One for whom the queue reserved the key must take it in this time, or the next one has its turn. */
export const CLAIM_TIME_MS = 1_500;

/** So many dead waiters, and so many holds whose time is over, one command removes at most. Later ones remove the rest. */
export const MOST_DEAD_AT_ONCE = 100;

/** How many keys go in one command at most: it may hold up everybody else's while it is carried out. */
export const MOST_AT_ONCE = 256;

/** One command that may take a key. */
export interface TakeRequest {
  readonly key: string;
  /**
   * What the key holds from then on: 32 hex characters that no other command has ever asked with. So whoever finds
   * them there knows which command it was.
   */
  readonly requestId: string;
  readonly lockTimeMs: number;
  /** Also draw a fencing token, larger than all that were drawn before: see {@link FENCING_STRIDE}. */
  readonly fencing: boolean;
  /** So many replicas must have the hold before the reply says that it is taken, or renewed. By default none need. */
  readonly replicas?: number;
  /**
   * How many permits the key has in the eyes of the caller; the smallest number of all who hold it counts. Without it, or
   * with 1, the caller holds the key alone. `Infinity` is for readers: any number of them hold the key together, and nobody
   * else beside them. A shared hold has no fencing token.
   */
  readonly permits?: number;
  /** How many of the permits it wants, at least one of them. By default 1. A renewal keeps so many at most. */
  readonly count?: number;
}

/** The same by one who waits. */
export interface PlaceRequest extends TakeRequest {
  /** Who stands in the queue: 32 hex characters, the same each time, and never a `requestId`. */
  readonly place: string;
}

/** The key holds what it did not hold before this very command: its `requestId`, for its lock time. */
export interface Taken {
  readonly taken: true;
  /** Whether the same command may be carried out once more: a client may send it again when its connection breaks. */
  readonly mayComeAgain?: boolean;
  /** Present when one was asked for. */
  readonly fencingToken?: number;
  /** Of one that wanted several permits: how many it has got. By default 1. */
  readonly count?: number;
  /**
   * Of a shared hold: whether somebody has a place in the queue, so that nobody else may join the hold unasked. Readers that
   * wait do not count for a hold of readers.
   */
  readonly somebodyWaits?: boolean;
}

/** What a process says of itself. */
export interface AnnounceRequest {
  /** With which its request ids begin: 12 hex characters. */
  readonly processNumber: string;
  /** JSON. */
  readonly about: string;
  readonly forMs: number;
}

/** One hold of a key, or what else the key holds. */
export interface InspectedHold {
  readonly value: string;
  readonly leftMs: number;
  /** How many permits it has, where the key is shared with permits. */
  readonly permits?: number;
}

/** What a key holds, as {@link Store.inspect} finds it. */
export interface Inspection {
  /** Each of those who hold it, at least as far as 1,000; or what else it holds; none where it is free. */
  readonly holds: readonly InspectedHold[];
  /** How many have a place in its queue, at least as far as 1,000. Those of one process who may share a hold have one together. */
  readonly waiting: number;
}

/** The key was left as it was. */
export interface NotTaken {
  readonly taken: false;
  /**
   * What it holds, whatever that is: a `requestId`, a reservation, that it is shared (never by whom), or what only another
   * version understands. It is the command's own `requestId`, when the command was carried out twice. `undefined` where the
   * store cannot tell.
   */
  readonly holder: string | undefined;
  /**
   * When to ask again: when the key becomes free for the one who asks, at the latest, if nobody prolongs it; or sooner, where
   * more dead waiters stood before it than one command removes. `undefined` if unknown.
   */
  readonly freeInMs: number | undefined;
  /** Of `place`, to share the key: whether nobody stands behind the place. */
  readonly isLast?: boolean;
}

export type TakeReply = Taken | NotTaken;

/** A hold that is to be prolonged. */
export interface RenewRequest extends TakeRequest {
  /** Draw a new token, as `take` would: for a hold that was found again. */
  readonly fencing: boolean;
}

/** The key holds the `requestId`, and goes on to do so for the lock time at least. */
export interface Renewed {
  readonly renewed: true;
  /** Present when one was asked for. */
  readonly fencingToken?: number;
  /** See {@link Taken.somebodyWaits}. */
  readonly somebodyWaits?: boolean;
}

/** The key does not hold the `requestId`, but this; `undefined`: it is free. */
export interface NotHeld {
  readonly renewed: false;
  readonly holder: string | undefined;
}

/** Of one among many, also the error that it alone would have rejected with. */
export type RenewReply = Renewed | NotHeld | Error;

export interface DropRequest {
  readonly key: string;
  readonly requestId: string;
  /** As the command that took the key had it. It only saves the store a look. */
  readonly permits?: number;
  /** For `drop` alone: for so long from now on nobody may have the key yet, in whole milliseconds, though nobody holds it. */
  readonly closedForMs?: number;
}

/** The key held the `requestId`, and does so no more. */
export interface Dropped {
  readonly dropped: true;
}

/** It did not hold it, but this; `undefined`: it was free. */
export interface NotDropped {
  readonly dropped: false;
  readonly holder: string | undefined;
}

export type DropReply = Dropped | NotDropped;

export interface NextReply extends Dropped {
  /** What came of the request: it took the key at once, or has a place; `undefined` where no place can be had. */
  readonly next: Taken | "placed" | undefined;
}

/** What a store tells without having been asked. */
export interface StoreListener {
  /**
   * Somebody who waits should ask again with `place`: the one who stands there, or, if `undefined`, everybody. A hint,
   * never the truth: it may be lost, late or wrong.
   */
  onHint(place: string | undefined): void;
  /** A connection is new: whatever the store had may be gone. */
  onReconnect(): void;
  /** What somebody should look at. Each is told once. */
  onWarning(message: string): void;
  /**
   * The shortest time left of a lease that is held, in milliseconds; `Infinity` if none is. The store asks for it before
   * it waits with the next attempt to connect.
   */
  shortestLeaseMs?(): number;
}

/**
 * Where locks live. Each method is one atomic step; even if it is carried out twice, late, or in another order than it
 * was sent in, it changes nothing but what its own `requestId` holds, or its own `place`.
 *
 * The caller bounds each call: `withinMs` is how long it listens for the reply. Later than that nothing need be sent.
 * A method rejects with `LockMisconfiguredError` when trying again cannot help, and with any other error when it can.
 */
export interface Store {
  /** Whether it heeds a request's `replicas`, or need not: one without it is never asked with them. */
  readonly confirmsReplicas?: boolean;
  /** Whether `takeMany` and `dropMany` may be asked for any number of keys: it makes several commands of them itself. */
  readonly splitsMany?: boolean;

  // ---- who holds --------------------------------------------------------------------------------------

  /** Takes the key if it is free, or if it is shared with room while nobody waits. Readers may pass other readers that wait. */
  take(request: TakeRequest, withinMs: number): Promise<TakeReply>;
  /**
   * The same for up to {@link MOST_AT_ONCE} keys, without a fencing token or replicas: one reply for each, in their order, or
   * the error that it would have rejected with. A store without it is asked for each by itself.
   */
  readonly takeMany?:
    | ((requests: readonly TakeRequest[], withinMs: number) => Promise<readonly (TakeReply | Error)[]>)
    | undefined;
  /**
   * Gives each of the holds its lock time again, from now; one that has more left keeps what it has. A shared hold with a
   * `count` keeps so many of its permits, and gives the others back. One reply for each, in their order.
   */
  renew(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]>;
  /**
   * Ends the hold, a revoked one too: reserves the key for the first in its queue, or frees it if nobody waits. Where others share the key,
   * the first in its queue is told. Where it is to be closed, which is for one who holds it alone, it stays as it is for
   * everybody, the queue too, until that time is over; carried out twice, the second tells the same.
   */
  drop(request: DropRequest, withinMs: number): Promise<DropReply>;
  /** The same for up to {@link MOST_AT_ONCE} keys, as `takeMany` is for `take`. */
  readonly dropMany?:
    | ((requests: readonly DropRequest[], withinMs: number) => Promise<readonly (DropReply | Error)[]>)
    | undefined;
  /**
   * Ends the hold for who has it, and not yet for others: it is renewed no more, and keeps the key until it is dropped by
   * the same `requestId`, or its time is over. Carried out twice, the second tells the same. A store without it cannot be
   * asked to.
   *
   * @returns false where the key does not hold it, and nothing has changed
   */
  readonly revoke?: ((request: DropRequest, withinMs: number) => Promise<boolean>) | undefined;
  /** What each of the keys holds, in their order; `undefined`: it is free. Changes nothing. */
  look(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]>;
  /**
   * The same of one key, for people: with the time that is left, and how many have a place in its queue. Changes nothing, and may be of a
   * moment ago. Of a store without it, these are not known.
   */
  readonly inspect?: ((key: string, withinMs: number) => Promise<Inspection>) | undefined;

  /** Keeps for a time what a process says of itself, for people who look at its locks. Of a store without it, nothing is known. */
  readonly announce?: ((request: AnnounceRequest, withinMs: number) => Promise<void>) | undefined;

  // ---- who comes next ---------------------------------------------------------------------------------

  /**
   * Takes the key if it is free, or shared with room for one more, and nobody stands before `place` in its
   * queue; or if it is reserved for `place`. The place is then left, and if more may hold it, the next is told. (A store that knows that nobody would hear a hint to a place passes it over, here and wherever the key
   * is reserved; the place stays.) Otherwise `place` is put at the end of the queue, or kept where it is for another
   * {@link PLACE_TIME_MS}.
   */
  place(request: PlaceRequest, withinMs: number): Promise<TakeReply>;
  /** The same for up to {@link MOST_AT_ONCE} keys, as `takeMany` is for `take`. */
  readonly placeMany?:
    | ((requests: readonly PlaceRequest[], withinMs: number) => Promise<readonly (TakeReply | Error)[]>)
    | undefined;
  /**
   * Gives up the place. If the key is reserved for it, the next one has its turn, or the key is free; if it is shared, the
   * first in its queue is told.
   */
  leave(key: string, place: string, withinMs: number): Promise<void>;
  /**
   * `drop`, and `place` at once: the request is put at the end of the queue, and if that makes it the first, it takes the
   * key; otherwise the key is reserved for the first. Where the hold is not there any more, nothing is done. Both are of
   * one who holds the key alone.
   */
  next(held: DropRequest, request: PlaceRequest, withinMs: number): Promise<NextReply | NotDropped>;
  /** @returns ends the listening */
  listen(listener: StoreListener): () => void;

  /** Closes what the store opened itself, and only that. */
  close(): Promise<void>;
}
