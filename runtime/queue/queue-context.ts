import type { Clock } from "../base/clock";
import type { AcquireCommand } from "../commands/acquire";
import type { ReleaseCommand } from "../commands/release";
import type { Batch, InFlight } from "../commands/in-flight";
import type { ReleaseReply, Store, AcquireReply } from "../stores/port";
import type { Suspension } from "../base/suspension";
import type { Contended } from "./contended";
import type { Deadlines } from "./deadlines";
import type { ReleaseRetries } from "./release-retries";
import type { Lease } from "./lease";
import type { LeaseVerifier } from "./lease-verifier";
import type { Renewals } from "./renewals";
import type { Refreshes } from "./refreshes";
import type { SharedLease } from "./shared-lease";
import type { Waiter } from "./waiter";

/** Receives the wake-ups for a ticket in the store queue. */
export interface WakeUpListener {
  /** The ticket. */
  readonly id: string;
  onWakeUp(): void;
}

/** Everything that the queues of a process share. */
export interface QueueContext {
  readonly clock: Clock;
  readonly store: Store;
  readonly inFlight: InFlight;
  /** Requests of the same kind share a command. */
  readonly acquires: Batch<AcquireCommand, AcquireReply>;
  readonly enqueues: Batch<AcquireCommand, AcquireReply>;
  readonly releases: Batch<ReleaseCommand<unknown>, ReleaseReply>;
  readonly contended: Contended;
  readonly renewals: Renewals;
  readonly verifier: LeaseVerifier;
  readonly deadlines: Deadlines;
  readonly releaseRetries: ReleaseRetries;
  readonly suspension: Suspension;
  readonly refreshes: Refreshes;
  readonly newRequestId: () => string;
  /** Whether no more locks are granted. */
  readonly isClosed: boolean;
  /** Notes that a lease begins. */
  onBegin(): void;
  /** Notes that a lease has ended. */
  onEnd(): void;
  /** Returns the holds of this process that callers share on the terms of the waiter. */
  sharedLeasesFor(waiter: Waiter): Iterable<SharedLease>;
  /** Returns the first waiter of this process that wants to hold the key alone. */
  firstExclusive(key: string): Waiter | undefined;
  /** Wakes the next waiters, because the key may be free, or may have room beside its holders. */
  onFree(lease: Lease): void;
  /** Removes a queue that has no waiters and no leases any more. */
  onEmpty(queue: { readonly key: string }): void;
  listen(listener: WakeUpListener): void;
  stopListening(listener: WakeUpListener): void;
}
