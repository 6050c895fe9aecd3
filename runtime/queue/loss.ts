import { errorMessage } from "../base/errors";
import { guardedAfter, isReserved, isRevokedFrom, isShared } from "../stores/value";

/** The way in which a lock was lost: see `Outcome`. */
export type LossOutcome = "stolen" | "deleted" | "expired" | "revoked" | "unknown";

/** The reason why a lease is lost. */
export interface Loss {
  readonly outcome: LossOutcome;
  /** For messages: "another caller holds it". */
  readonly because: string;
  /** Whether the lock was lost before its lock time was over, as far as the store shows. */
  readonly isEarly: boolean;
  /** Whether the caller that revoked the lock also releases it. */
  readonly isReleased?: boolean;
  readonly cause?: unknown;
}

/**
 * The loss of a lock whose key does not have the expected value.
 *
 * @param requestId the expected value
 * @param holder the value of the key, `undefined` if there is none
 * @param isBeforeDeadline whether the lock time was still running when the command was sent, as far as this process knows
 * @param isAnsweredInTime whether it was still running when the store replied
 */
export function lossOf(
  requestId: string,
  holder: string | undefined,
  isBeforeDeadline: boolean,
  isAnsweredInTime = true,
): Loss {
  if (isRevokedFrom(requestId, holder)) return REVOKED;
  if (holder === guardedAfter(requestId)) {
    const because =
      "its lock time is over, and its key stays closed until the transaction that guards it ends";
    return { outcome: "expired", because, isEarly: isBeforeDeadline };
  }
  // A shared key still exists when the lock time of one holder is over.
  const isOver = !isBeforeDeadline && holder !== undefined && isShared(holder);
  if (holder !== undefined && !isOver) {
    const because = isReserved(holder)
      ? "the store reserved its key for a waiter"
      : "another caller holds it";
    return { outcome: "stolen", because, isEarly: isBeforeDeadline };
  }
  if (!isBeforeDeadline) return { outcome: "expired", because: "its key expired", isEarly: false };
  if (!isAnsweredInTime) {
    const because = "the reply came after the lock time, and its key was gone";
    return { outcome: "expired", because, isEarly: true };
  }
  return {
    outcome: "deleted",
    isEarly: true,
    because: "its key disappeared early: it was deleted, evicted, or lost with the data of the store",
  };
}

/** The hold keeps its key, but no renewal extends it. A body that releases it in time held it alone to the end. */
export const REVOKED: Loss = { outcome: "revoked", because: "forceRelease() revoked it", isEarly: false };

/** `forceRelease()` deleted the key immediately, so another caller may hold it now. */
export const FREED: Loss = {
  outcome: "revoked",
  because: "forceRelease() with `now` freed its key",
  isEarly: true,
};

/** The lock could not be renewed in time. */
export function deadlinePassed(trouble?: Trouble): Loss {
  if (trouble === undefined) return { outcome: "expired", because: "its deadline passed", isEarly: false };
  return {
    isEarly: false,
    outcome: "expired",
    because: `its deadline passed before a renewal succeeded (${errorMessage(trouble.error)})`,
    cause: trouble.error,
  };
}

/** The machine was suspended, so the deadline may have passed unnoticed. No renewal has confirmed the lock since. */
export const SUSPENDED: Loss = {
  outcome: "expired",
  because: "the machine was suspended, and no renewal has confirmed the lock since",
  isEarly: false,
};

/** The lock reached its `holdAtMost`. */
export const HELD_AT_MOST: Loss = {
  outcome: "expired",
  because: "its holdAtMost has passed",
  isEarly: false,
};

/** The body inside a reentrant lock reached its own `holdAtMost`. The bodies around it keep the lock. */
export const HELD_AT_MOST_INSIDE: Loss = {
  outcome: "expired",
  because: "holdAtMost of the reentrant call has passed",
  isEarly: false,
};

/** The store did not report what became of the lock. */
export function unconfirmed(error: unknown): Loss {
  return { outcome: "unknown", because: errorMessage(error), isEarly: false, cause: error };
}

/** The error of a store. It has its own object, because the error itself may be `undefined`. */
export interface Trouble {
  readonly error: unknown;
}
