import { reasonOf } from "../errors";
import { isReserved, isRevokedFrom, isShared } from "../stores/value";

/** Why a lease is no longer ours. */
export interface Loss {
  /**
   * What came of its key: it is somebody else's; it was gone before its time; its time was over; it was taken back from
   * its body on purpose; or nobody could be asked.
   */
  readonly outcome: "stolen" | "deleted" | "expired" | "revoked" | "unknown";
  /** For messages: "somebody else holds it". */
  readonly because: string;
  /** Whether the store makes believe that it was lost before its lock time was over. */
  readonly isEarly: boolean;
  /** Whether whoever took it from its body gives it back, too. */
  readonly isGivenBack?: boolean;
  readonly cause?: unknown;
}

/**
 * Of a key that does not hold what it should.
 *
 * @param requestId what it should hold
 * @param holder what it holds instead; `undefined`: nothing
 * @param isBeforeItsTime whether its lock time was not over when the store was asked, as far as we know
 * @param isAnsweredInTime and whether it was not when the store answered
 */
export function lossOf(
  requestId: string,
  holder: string | undefined,
  isBeforeItsTime: boolean,
  isAnsweredInTime = true,
): Loss {
  if (isRevokedFrom(requestId, holder)) return REVOKED;
  // Where several hold the key, it is still there when the time of one is over.
  const isOver = !isBeforeItsTime && holder !== undefined && isShared(holder);
  if (holder !== undefined && !isOver) {
    const because = isReserved(holder) ? "it was passed on to one who waits" : "somebody else holds it";
    return { outcome: "stolen", because, isEarly: isBeforeItsTime };
  }
  if (!isBeforeItsTime) return { outcome: "expired", because: "its key expired", isEarly: false };
  if (!isAnsweredInTime) {
    const because =
      "its key was gone when the store answered, after the lock time: it had expired by then, or before";
    return { outcome: "expired", because, isEarly: true };
  }
  return {
    outcome: "deleted",
    isEarly: true,
    because: "its key disappeared early: it was deleted, evicted, or lost with the data of the store",
  };
}

/** Of a hold that keeps its key, but is renewed no more: whoever drops it in time was alone to the end. */
export const REVOKED: Loss = { outcome: "revoked", because: "forceRelease() revoked it", isEarly: false };

/** Of a hold whose key was freed at once. */
export const FREED: Loss = {
  outcome: "revoked",
  because: "forceRelease() with `now` freed its key",
  isEarly: true,
};

/** Of a hold that could not be renewed. */
export function deadlinePassed(trouble?: Trouble): Loss {
  if (trouble === undefined) return { outcome: "expired", because: "its deadline passed", isEarly: false };
  return {
    isEarly: false,
    outcome: "expired",
    because: `its deadline passed before a renewal succeeded (${reasonOf(trouble.error)})`,
    cause: trouble.error,
  };
}

/** A hold of which the machine's suspension proved the deadline wrong, and that no renewal has confirmed since. */
export const SUSPENDED: Loss = {
  outcome: "expired",
  because: "the machine was suspended, and no renewal has confirmed the lock since",
  isEarly: false,
};

/** Of a hold that was not to last any longer. */
export const HELD_AT_MOST: Loss = {
  outcome: "expired",
  because: "its holdAtMost has passed",
  isEarly: false,
};

/** The body inside a reentrant lock reached its own `holdAtMost`. The bodies around it keep the lock. */
export const HELD_AT_MOST_INSIDE: Loss = {
  outcome: "expired",
  because: "the holdAtMost of the body has passed",
  isEarly: false,
};

/** Of a hold of which the store does not tell what became of it. */
export function unconfirmed(error: unknown): Loss {
  return { outcome: "unknown", because: reasonOf(error), isEarly: false, cause: error };
}

/** What a store failed with. That it failed is told apart from the error, which may be `undefined`. */
export interface Trouble {
  readonly error: unknown;
}
