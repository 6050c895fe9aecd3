import type { Clock } from "../base/clock";
import { Suspension } from "../base/suspension";
import type { AcquireCommand } from "../commands/acquire";
import { Batch, InFlight } from "../commands/in-flight";
import type { ReleaseCommand } from "../commands/release";
import {
  MOST_AT_ONCE,
  type AcquireReply,
  type EnqueueRequest,
  type ReleaseReply,
  type Store,
} from "../stores/port";
import { Alarms } from "./alarms";
import { Contended } from "./contended";
import type { Lease } from "./lease";
import { LeaseVerifier } from "./lease-verifier";
import { Refreshes } from "./refreshes";
import { ReleaseRetries } from "./release-retries";
import { Renewals } from "./renewals";
import type { SharedLease } from "./shared-lease";
import type { Waiter } from "./waiter";

/** Receives the wake-ups for a ticket in the store queue. */
export interface WakeUpListener {
  /** The ticket. */
  readonly id: string;
  onWakeUp(): void;
}

/** Everything that the queues of a process share. {@link LockManager} has the queues themselves. */
export abstract class QueueContext {
  readonly clock: Clock;
  readonly store: Store;
  readonly newRequestId: () => string;
  readonly inFlight: InFlight;
  /** Requests of the same kind share a command. */
  readonly acquires: Batch<AcquireCommand, AcquireReply>;
  readonly enqueues: Batch<AcquireCommand, AcquireReply>;
  readonly releases: Batch<ReleaseCommand<unknown>, ReleaseReply>;
  /** Wakes waiters at a given time. */
  readonly alarms: Alarms;
  readonly contended = new Contended();
  readonly suspension: Suspension;
  readonly renewals: Renewals;
  readonly refreshes: Refreshes;
  readonly verifier: LeaseVerifier;
  readonly releaseRetries: ReleaseRetries;
  /** Whether no more locks are granted. */
  isClosed = false;

  /** @param onFault called with each error in handling a reply, which is a bug in Lockweave */
  constructor(
    clock: Clock,
    store: Store,
    commandTimeoutMs: number,
    newRequestId: () => string,
    onFault: (error: unknown) => void,
  ) {
    this.clock = clock;
    this.store = store;
    this.newRequestId = newRequestId;
    this.inFlight = new InFlight(clock, commandTimeoutMs, onFault);
    const { batch } = store;
    const mostAtOnce = batch?.splitsMany === true ? Infinity : MOST_AT_ONCE;
    this.acquires = new Batch(
      this.inFlight,
      batch && ((attempts, timeoutMs) => batch.acquireMany(attempts.map(requestOf), timeoutMs)),
      mostAtOnce,
    );
    const enqueueMany = store.queue === undefined ? undefined : batch?.enqueueMany;
    this.enqueues = new Batch(
      this.inFlight,
      enqueueMany &&
        ((attempts, timeoutMs) => enqueueMany.call(batch, attempts.flatMap(enqueueRequestOf), timeoutMs)),
    );
    this.releases = new Batch(
      this.inFlight,
      batch && ((releases, timeoutMs) => batch.releaseMany(releases.map(requestOf), timeoutMs)),
      mostAtOnce,
    );
    this.alarms = new Alarms(clock);
    this.suspension = new Suspension(clock, () => this.onSuspended());
    this.renewals = new Renewals(clock, store, this.inFlight, this.suspension, () => this.leases());
    this.refreshes = new Refreshes(clock, store, this.inFlight);
    this.verifier = new LeaseVerifier(clock, store, this.inFlight, this.renewals, this.refreshes);
    this.releaseRetries = new ReleaseRetries(clock, store, this.inFlight);
  }

  /** Returns all leases for which this process is still responsible. */
  abstract leases(): Iterable<Lease>;
  /** Returns the holds of this process that callers share on the terms of the waiter. */
  abstract sharedLeasesFor(waiter: Waiter): Iterable<SharedLease>;
  /** Returns the first waiter of this process that wants to hold the key alone. */
  abstract firstExclusive(key: string): Waiter | undefined;

  /** Notes that a lease begins. */
  abstract onBegin(): void;
  /** Notes that a lease has ended. */
  abstract onEnd(): void;
  /** Wakes the next waiters, because the key may be free, or may have room beside its holders. */
  abstract onFree(lease: Lease): void;
  /** Removes a queue that no longer has waiters or leases. */
  abstract onEmpty(queue: { readonly key: string }): void;
  /** Handles a suspension of the machine. */
  protected abstract onSuspended(): void;

  abstract listen(listener: WakeUpListener): void;
  abstract stopListening(listener: WakeUpListener): void;
}

function requestOf<Request>({ request }: { readonly request: Request }): Request {
  return request;
}

/** Returns the request of a command. The batch contains only commands that enqueue. */
function enqueueRequestOf({ request }: AcquireCommand): EnqueueRequest | [] {
  return "ticket" in request ? request : [];
}
