import type { Clock } from "../base/clock";
import { Certainty } from "../base/certainty";
import { CommandBatch, InFlight, type StoreCommand } from "../commands/in-flight";
import {
  MOST_AT_ONCE,
  type AcquireReply,
  type AcquireRequest,
  type EnqueueRequest,
  type ReleaseReply,
  type ReleaseRequest,
  type Store,
} from "../stores/port";
import { Alarms } from "./alarms";
import { Contended } from "./busy-key";
import type { Lease } from "./lease";
import { LeaseVerifier } from "./lease-verifier";
import { EarlyRenewals } from "./early-renewals";
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

/** A command with its request. */
interface Requesting<Request, Reply> extends StoreCommand<Reply> {
  readonly request: Request;
}

/** A queue that a waiter or a lease has left. */
export interface EndingQueue {
  readonly key: string;
  /** Whether it has neither waiters nor leases. */
  readonly isEmpty: boolean;
}

/** Everything that the queues of a process share. {@link LockManager} has the queues themselves. */
export abstract class QueueContext {
  readonly clock: Clock;
  readonly store: Store;
  readonly newRequestId: () => string;
  readonly inFlight: InFlight;
  /** Requests of the same kind share a command. */
  readonly acquires: CommandBatch<Requesting<AcquireRequest, AcquireReply>, AcquireReply>;
  readonly enqueues: CommandBatch<Requesting<AcquireRequest | EnqueueRequest, AcquireReply>, AcquireReply>;
  readonly releases: CommandBatch<Requesting<ReleaseRequest, ReleaseReply>, ReleaseReply>;
  /** Wakes waiters at a given time. */
  readonly alarms: Alarms;
  readonly contended = new Contended();
  readonly certainty: Certainty;
  readonly renewals: Renewals;
  readonly earlyRenewals: EarlyRenewals;
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
    this.acquires = new CommandBatch(
      this.inFlight,
      batch && ((commands, timeoutMs) => batch.acquireMany(commands.map(requestIn), timeoutMs)),
      mostAtOnce,
    );
    const enqueueMany = store.queue === undefined ? undefined : batch?.enqueueMany;
    this.enqueues = new CommandBatch(
      this.inFlight,
      enqueueMany &&
        ((commands, timeoutMs) => enqueueMany.call(batch, commands.flatMap(enqueueRequestIn), timeoutMs)),
    );
    this.releases = new CommandBatch(
      this.inFlight,
      batch && ((releases, timeoutMs) => batch.releaseMany(releases.map(requestIn), timeoutMs)),
      mostAtOnce,
    );
    this.alarms = new Alarms(clock);
    this.certainty = new Certainty(clock, () => this.onSuspended());
    this.renewals = new Renewals(clock, store, this.inFlight, this.certainty, () => this.leases());
    this.earlyRenewals = new EarlyRenewals(clock, store, this.inFlight);
    this.verifier = new LeaseVerifier(clock, store, this.inFlight, this.renewals, this.earlyRenewals);
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
  /** Notes that a lease has ended. Removes its queue if that is empty. */
  abstract onEnd(queue: EndingQueue): void;
  /** Wakes the next waiters, because the key may be free, or may have room for another holder. */
  abstract onFree(lease: Lease): void;
  /** Removes a queue that no longer has waiters or leases. */
  abstract onEmpty(queue: EndingQueue): void;
  /** Handles a suspension of the machine. */
  protected abstract onSuspended(): void;

  abstract listen(listener: WakeUpListener): void;
  abstract stopListening(listener: WakeUpListener): void;
}

function requestIn<Request>({ request }: { readonly request: Request }): Request {
  return request;
}

/** Returns the request of a command. The batch contains only commands that enqueue. */
function enqueueRequestIn({
  request,
}: {
  readonly request: AcquireRequest | EnqueueRequest;
}): EnqueueRequest | [] {
  return "ticket" in request ? request : [];
}
