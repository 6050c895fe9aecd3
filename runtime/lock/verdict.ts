import { deadlinePassed, type Loss, type LossOutcome } from "../queue/loss";

/** The facts that this process knows about a lock when the outcome of its release arrives. */
export interface ReleaseFacts {
  /** The loss that the store reports. `undefined`: the lock was held to its end. */
  readonly loss: Loss | undefined;
  /** The loss that the holder learned of before the release. */
  readonly earlierLoss: Loss | undefined;
  /** Whether the lock was certain when its body ended, even if the machine has been suspended since. */
  readonly wasCertain: boolean;
  /** Whether the next waiter in this process holds the lease now. */
  readonly hasHandedOff: boolean;
  /** Whether other callers share the lease. */
  readonly isShared: boolean;
  /**
   * Whether a reply that the key still has our `requestId` proves that the key had it throughout. With `replicas`, it does not, because
   * another master may have replaced this one and granted the key.
   */
  readonly isReplyReliable: boolean;
}

/** Returns the loss that the store reports, if it proves that the lock ended before its body did. */
export function provenLoss({ loss, hasHandedOff, isShared }: ReleaseFacts): Loss | undefined {
  // A handed-off or shared lease outlives this lock. Its loss matters here only if the store lost it before the lock time was over.
  const isProof = hasHandedOff || isShared ? loss?.isEarly === true : loss?.outcome !== "unknown";
  return isProof ? loss : undefined;
}

/** Returns the outcome of a lock that was not handed off, for its event. */
export function outcomeOf({ loss, earlierLoss }: ReleaseFacts): "released" | LossOutcome {
  // If the key is free by now, the store cannot know why. A loss that was reported before explains it better.
  const isExplained = loss?.outcome === "expired" && earlierLoss !== undefined;
  const decisive = isExplained && earlierLoss.outcome !== "unknown" ? earlierLoss : loss;
  return decisive?.outcome ?? "released";
}

/**
 * Returns the loss that the caller must learn of, or `undefined` if the body held the lock to its end. The reply of the store decides. If it
 * proves nothing, the clock of this process decides.
 */
export function lossToReport(facts: ReleaseFacts): Loss | undefined {
  const { loss, earlierLoss, wasCertain, isReplyReliable } = facts;
  const isHoldProven = loss === undefined && isReplyReliable && earlierLoss?.isEarly !== true;
  if (isHoldProven || (wasCertain && provenLoss(facts) === undefined)) return undefined;
  return earlierLoss ?? loss ?? deadlinePassed();
}
