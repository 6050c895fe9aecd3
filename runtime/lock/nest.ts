import type { CancelTimer } from "../base/clock";
import {
  LockError,
  LockMisconfiguredError,
  LockUnreachableError,
  errorMessage,
  type LockLostError,
} from "../base/errors";
import type { Lease } from "../queue/lease";
import { HELD_AT_MOST_INSIDE, type Loss } from "../queue/loss";
import { lockOf, nameOf, namedError } from "./events";
import { isReasonOf, reasonOf, unlessAborted } from "./on-abort";
import { findAround } from "./reentrancy";
import { reportLoss, type ReleasedLock } from "./release";
import { sharingOf } from "./settings";

// A body may call a function that acquires the same reentrant lock again. That call enters the lock, instead of waiting for itself.

/** A lock, as the locks around it and inside it see it. */
export interface NestedLock extends ReleasedLock {
  /** The nest that it has begun or entered. */
  nest: Nest | undefined;
  heldSince: number;
  readonly isHeld: boolean;
  readonly lease: Lease | undefined;
  readonly fencingToken: number | undefined;
  readonly signal: AbortSignal;
  /** The reason why it is not held, or is no longer held. */
  readonly loss: Loss;
  /** Whether it was released meanwhile. */
  readonly isSpent: boolean;
  remaining(): number;
  /** Makes it held, if the lease is certain. Returns whether it did. */
  startIfCertain(lease: Lease): boolean;
  noteToken(token: number | undefined): void;
  onGaveUp(): void;
  onLeft(): void;
  abort(): void;
  notHeld(): LockLostError;
  /** Ends the hold of the outermost lock. `last` is the lock whose body left last. */
  end(last: ReleasedLock, hasFailed: boolean): Promise<void>;
}

/**
 * Enters the lock around the running code that holds the key, if there is one.
 *
 * @param isEntered whether the lock around the code holds the key
 * @returns `undefined` if the caller has to wait for the key like everybody else
 */
export function enterAround<Lock extends NestedLock>(
  lock: Lock,
  isEntered: (outer: object, by: Lock) => outer is Lock,
  signal: AbortSignal | undefined,
): Promise<boolean> | undefined {
  const outer = findAround(isEntered, lock);
  if (outer === undefined) return undefined;
  const root: NestedLock = outer.nest?.root ?? outer;
  if (lock.terms.permits < root.terms.permits) {
    lock.onGaveUp();
    return Promise.reject(wouldWaitForItself(lock, root));
  }
  if (!lock.terms.mayReenter) return undefined;
  if (root.lease === undefined || root.nest === undefined) return Promise.reject(root.notHeld());
  return root.nest.enter(lock, root.lease, signal);
}

/** The error for a caller that shares a key and acquires it again with fewer permits. It would wait for the others and for itself. */
function wouldWaitForItself(lock: NestedLock, root: NestedLock): LockMisconfiguredError {
  const [outerMode, innerMode] = [root, lock].map(({ terms }) => sharingOf(terms));
  return new LockMisconfiguredError(
    `${nameOf(lock)} is acquired with ${innerMode} inside a body that holds it with ${outerMode}, so it would wait for that body to end. Fix: acquire it with ${innerMode} around that body, or after it`,
    lockOf(lock),
  );
}

/** A reentrant lock and the locks inside it. It is released when the last of their bodies has left. */
export class Nest {
  /** The outermost lock, which holds the key. */
  readonly root: NestedLock;
  /** Whether the body of the outermost lock has failed. */
  hasRootFailed = false;
  /** The number of bodies inside. */
  #bodies = 1;
  /** The locks inside that have their own `holdAtMost`, each with the function that cancels its timer. */
  #ownEnds: Map<NestedLock, CancelTimer> | undefined;

  constructor(root: NestedLock) {
    this.root = root;
  }

  /** Enters the lock that the async context already holds. The lease then meets the terms of both, or the entry fails. */
  async enter(inner: NestedLock, lease: Lease, signal: AbortSignal | undefined): Promise<boolean> {
    const { root } = this;
    const { manager } = inner.terms.locker;
    if (signal?.aborted === true) {
      inner.onGaveUp();
      throw reasonOf(signal);
    }
    this.#bodies += 1;
    inner.nest = this;
    try {
      const { lockTimeMs, fencing, replicas, watchdog } = inner.terms;
      const wanted = { lockTimeMs, fencing, replicas, isWatched: watchdog };
      if (root.remaining() > 0) await unlessAborted(manager.strengthen(lease, wanted, signal), signal);
      if (inner.isSpent) return await this.#leave(inner);
      if (root.remaining() === 0 || !inner.startIfCertain(lease)) throw root.notHeld();
      inner.heldSince = Math.floor(manager.certainty.readAt);
      this.limit(inner);
    } catch (error) {
      inner.onGaveUp();
      await this.#leave(inner);
      if (error instanceof LockError || isReasonOf(signal, error)) throw namedError(inner, error);
      const message = `${nameOf(inner)}: the store could not apply the options of this call to the lock that it reenters: ${errorMessage(error)}`;
      throw new LockUnreachableError(message, { ...lockOf(inner), cause: error });
    }
    root.noteToken(lease.tokenOfHolder);
    return true;
  }

  /** Leaves with the body of one of the locks. If all other bodies have left, releases the hold, because they relied on this one to do so. */
  async #leave(inner: NestedLock): Promise<false> {
    if (this.#isLast()) await this.root.end(inner, true);
    return false;
  }

  /** Counts a body that has left. Returns whether it was the last one. */
  #isLast(): boolean {
    return (this.#bodies -= 1) === 0;
  }

  /** Releases one of the locks. The last one releases the hold. */
  release(lock: NestedLock, hasFailed: boolean): Promise<void> {
    const { root } = this;
    if (lock === root) this.hasRootFailed = hasFailed;
    const lost = lock.remaining() > 0 ? undefined : lock.loss;
    const isLast = !this.hasEndedEarly(lock) && this.#isLast();
    this.#clearOwnEnd(lock);
    lock.onLeft();
    if (isLast && lost !== HELD_AT_MOST_INSIDE) return root.end(lock, hasFailed);
    const ended = isLast ? root.end(lock, true) : IS_DONE;
    return lost === undefined ? ended : ended.then(() => reportLoss(lock, lost, hasFailed));
  }

  // ---- the `holdAtMost` of a lock inside --------------------------------------------------------------

  /** Whether its own `holdAtMost` may end the lock for this body alone. The `holdAtMost` of the outermost lock ends the lease instead. */
  hasOwnEnd(lock: NestedLock): boolean {
    return this.root !== lock && lock.terms.holdAtMostMs < Infinity;
  }

  /** On the monotonic clock: when the body of the lock loses it, although the bodies around it keep it. */
  ownEndOf(lock: NestedLock): number {
    return this.hasOwnEnd(lock) ? lock.mayHoldUntil : Infinity;
  }

  /** Whether the lock's own `holdAtMost` has ended it. Another caller may hold the lease by now. */
  hasEndedEarly(lock: NestedLock): boolean {
    return this.hasOwnEnd(lock) && this.#ownEnds?.has(lock) !== true;
  }

  /** Sets the timer for the lock's own `holdAtMost`, if it has one. */
  limit(lock: NestedLock): void {
    if (!this.hasOwnEnd(lock)) return;
    const { clock } = lock.terms.locker;
    const leftMs = Math.max(this.ownEndOf(lock) - clock.now(), 0);
    // If several keys are acquired together, this time is unknown until all of them are held.
    const isTimeKnown = leftMs < Infinity;
    const cancel = isTimeKnown
      ? clock.afterInBackground(leftMs, () => void this.#endEarly(lock))
      : NOTHING_SET;
    this.#ownEnds?.get(lock)?.();
    (this.#ownEnds ??= new Map()).set(lock, cancel);
  }

  /** Ends the lock for its body at its own `holdAtMost`. The body counts as having left. So if it hangs, it does not keep the lock of the bodies around it. */
  #endEarly(lock: NestedLock): Promise<unknown> {
    this.#clearOwnEnd(lock);
    lock.abort();
    return this.#leave(lock);
  }

  #clearOwnEnd(lock: NestedLock): void {
    this.#ownEnds?.get(lock)?.();
    this.#ownEnds?.delete(lock);
  }

  /** Aborts the locks inside that have their own `holdAtMost`. The others share the signal of the outermost lock. */
  abortInside(): void {
    for (const inner of this.#ownEnds?.keys() ?? []) inner.abort();
  }
}

const IS_DONE = Promise.resolve();
const NOTHING_SET: CancelTimer = () => {};
