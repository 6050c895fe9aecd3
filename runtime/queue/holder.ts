import type { Loss } from "./loss";

/** What a lease knows of the one in this process that holds it. */
export interface Holder {
  /** The function that holds it, for messages. */
  readonly site: string | undefined;
  /** On the monotonic clock, in milliseconds. */
  readonly heldSince: number;
  /** On the monotonic clock: until when nobody may have the key after it, however early it ends. */
  readonly staysUntil: number;
  /** On the monotonic clock, in milliseconds: it is not renewed for any longer than that. */
  readonly mayHoldUntil: number;
  /** How many may hold the key at once, in its eyes: 1 where it is alone. */
  readonly permits: number;
  /** Whether anybody works under it: of several that are had together, not before all are. */
  readonly isInUse: boolean;
  /** Whether it is dropped at its end, and not left to expire. */
  readonly isAutoUnlocked: boolean;
  /** The lease goes to the next one in this process. */
  onHandedOff(): void;
  /** Reports that the lease was renewed. Returns whether anybody listens for renewals in this process. */
  onRenewed(): boolean;
  /** The lease is lost under it. */
  onLost(loss: Loss): void;
}
