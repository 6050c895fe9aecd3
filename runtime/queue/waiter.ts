import type { Lease } from "./lease";

/** The terms on which a caller wants a key. */
export interface LockTerms {
  readonly key: string;
  readonly lockTimeMs: number;
  readonly fencing: boolean;
  /** The number of replicas that must confirm its hold. */
  readonly replicas: number;
  /** How many callers may hold the key at once, by its options: 1 if it wants to hold the key alone. */
  readonly permits: number;
  /** Whether the watchdog renews its hold. */
  readonly isWatched: boolean;
  /** Whether its hold is released at its end, and not left to expire. */
  readonly isAutoUnlocked: boolean;
  /** Whether other callers may share its hold. Such a hold is renewed while any caller holds it, and released at the end. */
  readonly mayShareHold: boolean;
}

/** A caller that waits for a key, as its queue sees it. */
export interface Waiter extends LockTerms {
  /** On the monotonic clock: when its wait began. */
  readonly waitsSince: number;
  /** On the monotonic clock: when it joined its queue. */
  readonly joinedAt: number;
  /** On the monotonic clock: when its wait budget ends. */
  readonly budgetEndsAt: number;
  /** On the monotonic clock: the latest time at which a reply is useful. A waiter with no wait budget still waits for one reply. */
  readonly answerBy: number;
  /** Whether it waits for a busy key at all. */
  readonly isPatient: boolean;
  /** Returns a `requestId` for one command, and never the same one twice. */
  nextRequestId(): string;
  /**
   * Makes it the holder of the lease, and ends its wait. No event is published yet.
   *
   * @returns the milliseconds that it waited, or `undefined` if the lease is no longer certain. Then nothing has changed
   */
  onGranted(lease: Lease, fencingToken: number | undefined): number | undefined;
  /** Publishes that it holds the lock. Called when all state is up to date, because listeners run in this call. */
  onEntered(waitedMs: number): void;
  /** Ends its try. It holds no lease unless `onGranted` was called. */
  onTried(): void;
  /** Ends its wait with an error, because a retry cannot help. */
  onRefused(error: unknown): void;
  /** Makes it try again now. */
  wake(): void;
  /** Ends its wait, because no more locks are granted. */
  onClosed(): void;
}
