import type { AcquireRequest } from "../stores/port";
import type { Grant, Lease, LeaseQueue } from "./lease";

/** The shortest time that a command gets, even if less is left of a wait budget or of a lock time. */
export const LEAST_COMMAND_TIME_MS = 200;

/** The pause before the next try while the store does not reply in time. */
export const UNREACHABLE_PAUSE_MS = 100;

/** The terms on which a caller waits for a key. They follow from its options. */
export interface WaitTerms {
  readonly lockTimeMs: number;
  readonly fencing: boolean;
  /** The number of replicas that must confirm its hold. */
  readonly replicas: number;
  /** The number of callers that may hold the key at once: 1 if it wants to hold the key alone. */
  readonly permits: number;
  /** The wait budget. With 0, it does not wait for a busy key. */
  readonly budgetMs: number;
  /** Whether the watchdog renews its hold. */
  readonly isWatched: boolean;
  /** Whether its hold is released at its end, and not left to expire. */
  readonly autoUnlock: boolean | "onError";
  /** Whether other callers may share its hold. Such a hold is renewed while any caller holds it, and released at the end. */
  readonly mayShareHold: boolean;
}

/** A caller that waits for a key, as its queue sees it. */
export interface Waiter {
  readonly key: string;
  readonly terms: WaitTerms;
  /** On the monotonic clock: when its wait began. */
  readonly waitsSince: number;
  /** On the monotonic clock: when it joined its queue. */
  readonly joinedAt: number;
  /** Whether it waits for a busy key at all. */
  readonly isPatient: boolean;
  /** Whether it has time for another try after this one. */
  mayTryAgain(now: number): boolean;
  /**
   * Returns the milliseconds that one command for it may take. A waiter with no wait budget still waits for one reply.
   *
   * @param usualTimeoutMs the longest time that any command may take
   */
  timeoutMs(now: number, usualTimeoutMs: number): number;
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
  /** Ends its try, unless `onGranted` has ended it. */
  onTried(): void;
  /** Ends its wait with an error, because a retry cannot help. */
  onRefused(error: unknown): void;
  /** Makes it try again now. */
  wake(): void;
  /** Ends its wait, because no more locks are granted. */
  onClosed(): void;
}

/** The waiters of this process for one key, as their acquisition sees them. */
export interface WaiterQueue extends LeaseQueue {
  readonly first: Waiter | undefined;
  /** The number of permits that a request for the first waiter of a shared lock asks for. */
  readonly wanted?: number | undefined;
  /** Returns the lease in the form that this queue uses. Without this method, the queue uses it as it is. */
  makeLease?(lease: Lease, first: Waiter, grant: Grant): Lease;
  /**
   * Removes the first waiter, adds the lease that it now holds, and reports that to it.
   *
   * @param waitedMs the result of its `onGranted`
   */
  begin(lease: Lease, first: Waiter, waitedMs: number): void;
}

/** Whether a hold from this request meets the terms of a waiter. */
export function fits(
  { lockTimeMs, fencing, replicas = 0 }: Pick<AcquireRequest, "lockTimeMs" | "fencing" | "replicas">,
  terms: WaitTerms,
): boolean {
  return lockTimeMs === terms.lockTimeMs && (fencing || !terms.fencing) && replicas >= terms.replicas;
}
