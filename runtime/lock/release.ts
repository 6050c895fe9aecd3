import { LockLostError, type LockErrorOptions } from "../base/errors";
import type { Holder, Lease, LeavingHolder } from "../queue/lease";
import { deadlinePassed, type Loss } from "../queue/loss";
import { fieldsOf, lockOf, nameOf, type LockEvent } from "./events";
import type { Terms } from "./locker";
import { lossToReport, outcomeOf, provenLoss, type ReleaseFacts } from "./verdict";

/** A lock, as its release sees it. */
export interface ReleasedLock extends LockEvent, Holder {
  readonly terms: Terms;
  /** Whether the watchdog renews it. */
  readonly isWatched: boolean;
}

/** The state of a hold when its last body has left, as far as this process knows. */
interface HoldAtEnd {
  readonly lease: Lease;
  /** Whether the lock was certainly held. */
  readonly wasSure: boolean;
  /** The loss that the holder has learned of, if there was one. */
  readonly earlierLoss: Loss | undefined;
  /** Whether its key stays until it expires. */
  readonly isKept: boolean;
}

/**
 * Ends the hold of a lock, after its last body has left. With `release: "background"`, it does not wait for the reply of the store if the
 * lock is certain.
 *
 * @param now the time, on the monotonic clock
 * @param last the lock whose body left last. Its caller learns of a loss
 * @throws {LockLostError} see {@link reportLoss}
 */
export function endHold(
  lock: ReleasedLock,
  hold: HoldAtEnd,
  now: number,
  last: ReleasedLock,
  hasFailed: boolean,
): Promise<void> {
  const { locker, release } = lock.terms;
  const { lease, wasSure, earlierLoss, isKept } = hold;
  if (wasSure && release === "background" && locker.openReleases.begin()) {
    lease.queue.release(new BackgroundRelease(lock, hold, last), now);
    return IS_DONE;
  }
  if (isKept) {
    locker.events.ends(lock, "left to expire", now - lock.heldSince, undefined);
    lease.queue.leaveToExpire(lease);
    if (wasSure) return IS_DONE;
    if (earlierLoss === undefined) locker.events.countLoss(lock);
    return reportLoss(last, earlierLoss ?? deadlinePassed(), hasFailed);
  }
  return new Promise((resolve) =>
    lease.queue.release(new AwaitedRelease(lock, hold, last, hasFailed, resolve), now),
  );
}

/** The release of a lock, from the end of its last body to the reply of the store. */
abstract class Release implements LeavingHolder {
  readonly lease: Lease;
  readonly holder: ReleasedLock;
  protected readonly last: ReleasedLock;
  readonly #wasSure: boolean;
  readonly #earlierLoss: Loss | undefined;

  constructor(holder: ReleasedLock, { lease, wasSure, earlierLoss }: HoldAtEnd, last: ReleasedLock) {
    this.lease = lease;
    this.holder = holder;
    this.last = last;
    this.#wasSure = wasSure;
    this.#earlierLoss = earlierLoss;
  }

  get mayHandOff(): boolean {
    return this.holder.isWatched;
  }

  abstract onEnded(loss: Loss | undefined): void;

  /**
   * Publishes the outcome of the lock.
   *
   * @param loss the loss that the store reports, if there was one
   * @returns why the lock was lost, if it was
   */
  protected publishOutcome(loss: Loss | undefined): Loss | undefined {
    const { holder: lock, lease } = this;
    const earlierLoss = this.#earlierLoss;
    const { events, manager } = lock.terms.locker;
    // A suspension during the body may be noticed only now.
    const wasCertain = this.#wasSure && lease.isTrusted(manager.certainty.trustedSince());
    const heldMs = manager.certainty.readAt - lock.heldSince;
    const { isShared } = lease;
    const hasHandedOff = !isShared && !lease.isHeldBy(lock); // The hand-off published its outcome.
    if (wasCertain && loss === undefined && earlierLoss === undefined) {
      if (!hasHandedOff) events.ends(lock, "released", heldMs, undefined);
      return undefined;
    }
    const isReplyReliable = lease.isOnlyGrant && lease.replicas === 0;
    const facts: ReleaseFacts = { loss, earlierLoss, wasCertain, hasHandedOff, isShared, isReplyReliable };
    const proven = provenLoss(facts);
    if (!hasHandedOff) events.ends(lock, outcomeOf(facts), heldMs, loss?.cause);
    else if (proven !== undefined) events.lost(lock, proven);
    const lost = lossToReport(facts);
    const isCounted = earlierLoss !== undefined || (hasHandedOff && proven !== undefined);
    if (lost !== undefined && !isCounted) events.countLoss(lock);
    return lost;
  }
}

/** A release for which the caller waits. It reports a loss to that caller. */
class AwaitedRelease extends Release {
  readonly #hasFailed: boolean;
  readonly #resolve: (how: void | Promise<void>) => void;

  constructor(
    holder: ReleasedLock,
    hold: HoldAtEnd,
    last: ReleasedLock,
    hasFailed: boolean,
    resolve: (how: void | Promise<void>) => void,
  ) {
    super(holder, hold, last);
    this.#hasFailed = hasFailed;
    this.#resolve = resolve;
  }

  onEnded(loss: Loss | undefined): void {
    const lost = this.publishOutcome(loss);
    this.#resolve(lost === undefined ? undefined : reportLoss(this.last, lost, this.#hasFailed));
  }
}

/** A release while the caller continues. It reports a loss in the log and the events. */
class BackgroundRelease extends Release {
  onEnded(loss: Loss | undefined): void {
    this.holder.terms.locker.openReleases.end();
    const lost = this.publishOutcome(loss);
    if (lost !== undefined) warnOfLoss(this.last, lost);
  }
}

/**
 * Reports a loss to the caller in the way that `onLost` asks for.
 *
 * @throws {LockLostError} unless the body failed, or `onLost` is `"warn"`
 */
export function reportLoss(lock: ReleasedLock, loss: Loss, hasFailed: boolean): Promise<void> {
  if (!hasFailed)
    return reportLostError(
      lock,
      new LockLostError(wasLost(lock, loss), { ...lockOf(lock), ...causeOf(loss) }),
    );
  warnOfLoss(lock, loss);
  return IS_DONE;
}

/** Rejects with the error, or logs it if `onLost` is `"warn"`. */
export function reportLostError(lock: ReleasedLock, error: LockLostError): Promise<void> {
  if (lock.terms.onLost === "throw") return Promise.reject(error);
  lock.terms.locker.logger.warn(error.message, { ...fieldsOf(lock), code: "LOCK_LOST" });
  return IS_DONE;
}

function warnOfLoss(lock: ReleasedLock, loss: Loss): void {
  lock.terms.locker.logger.warn(wasLost(lock, loss), { ...fieldsOf(lock), code: "LOCK_LOST" });
}

function wasLost(lock: ReleasedLock, { because }: Loss): string {
  return `${nameOf(lock)}: the lock was lost before the body ended (${because}). Another body may have run at the same time`;
}

/** Returns the options of the error that reports the loss. */
export function causeOf({ cause }: Loss): LockErrorOptions {
  return cause === undefined ? {} : { cause };
}

const IS_DONE = Promise.resolve();
