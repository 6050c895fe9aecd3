import type { Lease } from "./lease";

/** What a queue knows of one who waits. */
export interface Waiter {
  readonly key: string;
  readonly lockTimeMs: number;
  readonly fencing: boolean;
  /** How many replicas must have its hold. */
  readonly replicas: number;
  /** How many may hold the key at once, in its eyes: 1 where it is to be alone. */
  readonly permits: number;
  /** Whether its hold is renewed while it lasts. */
  readonly isWatched: boolean;
  /** Whether its hold is dropped at its end, and not left to expire. */
  readonly isAutoUnlocked: boolean;
  /** Whether other callers may have its hold, too: then it is renewed for as long as anybody has it, and dropped at the end. */
  readonly mayShareHold: boolean;
  /** On the monotonic clock: when it came. */
  readonly waitsSince: number;
  /** On the monotonic clock: when it gives up. */
  readonly budgetEndsAt: number;
  /** On the monotonic clock: until when a reply is worth waiting for, however short its patience with the key is. */
  readonly answerBy: number;
  /** Whether it waits at all, for as much as a moment. */
  readonly isPatient: boolean;
  /** A `requestId` for one command: never the same twice. */
  nextRequestId(): string;
  /**
   * From now on it holds the lease, and waits no more. Nobody is told yet.
   *
   * @returns the milliseconds that it waited; `undefined`, and nothing has changed, if the lease is not surely ours any
   *   more
   */
  onGranted(lease: Lease, fencingToken: number | undefined): number | undefined;
  /** All that changes has changed: it may be told that it holds the lock. */
  onEntered(waitedMs: number): void;
  /** Its try is over, without the lease unless `onGranted` was called. */
  onTried(): void;
  /** The store refuses it for good. */
  onRefused(error: unknown): void;
  /** To try again makes sense now. */
  wake(): void;
  /** No lock is given any more. */
  onClosed(): void;
}
