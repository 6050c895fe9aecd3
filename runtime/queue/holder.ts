import type { Loss } from "./loss";

/** The caller of this process that holds a lease, as the lease sees it. */
export interface Holder {
  /** The function that holds it, for messages. */
  readonly site: string | undefined;
  /** The start of its hold, on the monotonic clock, in milliseconds. */
  readonly heldSince: number;
  /** On the monotonic clock: the time until which the key stays closed, even if the hold ends earlier (`lockAtLeast`). */
  readonly staysUntil: number;
  /** On the monotonic clock, in milliseconds: no renewal extends the hold beyond this time (`holdAtMost`). */
  readonly mayHoldUntil: number;
  /** How many callers may hold the key at once, by the options of this one: 1 if it holds the key alone. */
  readonly permits: number;
  /** Whether a body may be running under it. A lock of several keys is in use once all of them are held. */
  readonly isInUse: boolean;
  /** Whether its hold is released at its end, and not left to expire. */
  readonly isAutoUnlocked: boolean;
  /** Notes that the lease was handed off to the next waiter in this process. */
  onHandedOff(): void;
  /** Reports that the lease was renewed. Returns whether anybody listens for renewals in this process. */
  onRenewed(): boolean;
  /** Notes that the lease was lost. */
  onLost(loss: Loss): void;
}
