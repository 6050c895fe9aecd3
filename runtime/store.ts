/** One try for a lock. Sent again with the same `requestId` when its reply was lost. */
export interface AcquireRequest {
  readonly key: string;
  /** Who asks: 32 hex characters, and never the same for two stays on the key. */
  readonly requestId: string;
  readonly lockTimeMs: number;
  /** Also draw a fencing token: see {@link FENCING_STRIDE}. */
  readonly fencing: boolean;
}

/**
 * A fencing token stands for this many: the holder may count on from it for those it hands the lock on to,
 * and the next one drawn is larger than all of them.
 */
export const FENCING_STRIDE = 64;

export type AcquireReply = Granted | HeldByAnother;

export interface Granted {
  readonly granted: true;
  /**
   * False when the store found this very request already holding the lock, and left its time to live alone:
   * an earlier try had succeeded and its reply was lost. The time to live then counts from that earlier try.
   */
  readonly fresh: boolean;
  /** Present when the request asked for one. */
  readonly fencingToken?: number;
}

export interface HeldByAnother {
  readonly granted: false;
  /** When the key becomes free for us at the latest, if nobody prolongs it, in milliseconds from now. */
  readonly freeInMs: number | undefined;
}

export type RenewRequest = Omit<AcquireRequest, "fencing">;

/** `expired`: nobody holds the key. `stolen`: somebody else does. `unknown`: the store had no answer for it. */
export type RenewReply = "renewed" | "expired" | "stolen" | "unknown";

export type ReleaseReply = "released" | "expired" | "stolen";

export interface Released {
  readonly outcome: ReleaseReply;
  /** Present when the lock went straight to the `next` of the caller. */
  readonly handedOn?: Granted;
  /** Present when the `next` of the caller has a place in the queue instead, and is to wait for a hint. */
  readonly isQueued?: true;
}

/** One who has a place in the store's queue must be heard of in this time, or loses it. */
export const PLACE_TIME_MS = 3_000;

/** One to whom the queue gave the lock must take it in this time, or loses it. */
export const CLAIM_TIME_MS = 1_500;

/** How many keys go in one command at most, which may hold up everybody else's while it is carried out. */
export const MOST_AT_ONCE = 256;

/** Who gives a key back. */
export type ReleaseRequest = Pick<AcquireRequest, "key" | "requestId">;

/**
 * Where locks live. Each method is one atomic step, and each acts only for the holder that `requestId` names.
 * The holder of a key is the truth; the queue and the hints only say who comes next, and when to look.
 *
 * A method may take as long as it likes: the caller bounds it. It rejects with `LockMisconfiguredError` when
 * trying again cannot help, and with any other error when it can.
 */
export interface Store {
  /** Takes the key if it is free. */
  acquire(request: AcquireRequest): Promise<AcquireReply>;
  /**
   * The same for up to {@link MOST_AT_ONCE} keys, none of them with a fencing token: one reply for each, in their
   * order, or the error that it would have rejected with. A store without it is asked for each by itself.
   */
  readonly acquireMany?:
    ((requests: readonly AcquireRequest[]) => Promise<readonly (AcquireReply | Error)[]>) | undefined;
  /**
   * The same for one who waits. Unless granted, the request gets a place at the end of the key's queue, or
   * keeps the one it has for another {@link PLACE_TIME_MS}. If the queue gave it the lock, this takes it, with the whole
   * lock time.
   */
  wait(request: AcquireRequest): Promise<AcquireReply>;
  /** Gives up the place in the queue, and the lock if the queue gave it meanwhile. */
  leave(key: string, requestId: string): Promise<void>;
  /** Gives each of the holders its whole lock time again: one reply for each, in their order. */
  renew(holders: readonly RenewRequest[]): Promise<RenewReply[]>;
  /**
   * Gives the lock to the first in the queue, for {@link CLAIM_TIME_MS} at first; if there is none, frees it.
   *
   * @param next gets a place at the end of the queue first. If that makes it the first, it has the lock at once.
   */
  release(key: string, requestId: string, next?: AcquireRequest): Promise<Released>;
  /** The same for up to {@link MOST_AT_ONCE} keys without a `next`, as `acquireMany` is for `acquire`. */
  readonly releaseMany?:
    ((requests: readonly ReleaseRequest[]) => Promise<readonly (Released | Error)[]>) | undefined;
  /**
   * Calls `onHint` when somebody who waits should call `wait` again: the one named by `requestId`, or
   * everybody. A hint, never the truth: it may be lost, late or wrong.
   *
   * @returns ends the calls
   */
  listen(onHint: (requestId: string | undefined) => void): () => void;
  /** Closes what the store opened itself, and only that. */
  close(): Promise<void>;
}
