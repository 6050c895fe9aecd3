import type {
  EnqueueRequest,
  NotReleased,
  ReleaseAndEnqueueReply,
  ReleaseRequest,
  StoreQueue,
} from "../stores/port";
import { hasAcquired } from "../stores/value";
import { Acquisition } from "./acquisition";
import { HandOffTurn } from "./hand-off-turn";
import { EndingCommand, KeyQueue } from "./key-queue";
import type { Lease, LeavingHolder } from "./lease";
import type { Sent } from "./sent-commands";
import { fits, type WaitTerms, type Waiter } from "./waiter";

/** The command that ends a hold, and acquires or enqueues for the next waiter of this process, with its own `requestId`. */
class ReleaseAndEnqueueCommand extends EndingCommand<ReleaseAndEnqueueReply | NotReleased> implements Sent {
  readonly release: ReleaseRequest;
  /** Acquires the key for the next waiter. */
  readonly acquisition: Acquisition;
  readonly request: EnqueueRequest;
  /** On the monotonic clock: a time before the command was sent. A grant counts from here. */
  readonly sentAt: number;
  readonly #storeQueue: StoreQueue;
  readonly #queue: ExclusiveQueue;

  constructor(
    storeQueue: StoreQueue,
    queue: ExclusiveQueue,
    leaving: LeavingHolder,
    acquisition: Acquisition,
    request: EnqueueRequest,
    now: number,
  ) {
    super(leaving.lease, leaving, now);
    this.#storeQueue = storeQueue;
    this.#queue = queue;
    this.release = leaving.lease.releaseRequest(now);
    this.acquisition = acquisition;
    this.request = request;
    this.sentAt = now;
  }

  send(): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.#storeQueue.releaseAndEnqueue(this.release, this.request, this.timeoutMs);
  }

  onReply(reply: ReleaseAndEnqueueReply | NotReleased): void {
    this.#queue.onReleaseAndEnqueueReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#queue.onReleaseAndEnqueueFailure(this, error);
  }

  onLateReply(reply: ReleaseAndEnqueueReply | NotReleased): void {
    this.acquisition.onLateNextReply(this, reply);
  }
}

/**
 * The callers of this process that want to hold one key alone. It adds to a {@link KeyQueue} how a hold passes to the next waiter: a release
 * hands the lease off. From time to time, it goes through the store queue to another process instead.
 */
export class ExclusiveQueue extends KeyQueue {
  // ---- the end of a hold ------------------------------------------------------------------------------

  protected override passOn(first: Waiter, leaving: LeavingHolder, now: number): boolean {
    const { lease } = leaving;
    const isFreed = lease.releaseRequest(now).cooldownMs === undefined;
    if (this.lease !== lease || lease.isOver || !isFreed) return false;
    if (leaving.mayHandOff && this.handOff(leaving, now)) return true;
    const { store, inFlight, isClosed } = this.context;
    if (isClosed) return false;
    const { queue } = store;
    if (queue === undefined) {
      this.letOthersTry();
      return false;
    }
    const acquisition = (this.acquisition ??= new Acquisition(this.context, this));
    const request = acquisition.requestFor(first);
    const command = new ReleaseAndEnqueueCommand(queue, this, leaving, acquisition, request, now);
    if (!this.end(command)) return true;
    acquisition.sent(command);
    inFlight.send(command);
    return true;
  }

  /** Without a store queue, other processes could only try between this release and the next try of this process. */
  private letOthersTry(): void {
    (this.acquisition ??= new Acquisition(this.context, this)).pause();
  }

  onReleaseAndEnqueueReply(
    next: ReleaseAndEnqueueCommand,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void {
    const { acquisition, request } = next;
    // If the key has the value that this command writes, the store has run the command.
    const isDone = !reply.released && hasAcquired(request.requestId, reply.holder);
    this.onReleaseReply(next, isDone ? { released: true } : reply, () =>
      acquisition.onNextReply(next, reply),
    );
  }

  onReleaseAndEnqueueFailure(next: ReleaseAndEnqueueCommand, error: unknown): void {
    next.acquisition.onNextFailure(next, error);
    this.leaveUnconfirmed(next, error);
  }

  // ---- hand-off ---------------------------------------------------------------------------------------

  /** Hands the lease off to the next waiter of this process, if the lease is as good as a new grant. Returns whether it did. */
  private handOff(leaving: LeavingHolder, now: number): boolean {
    const { lease, holder } = leaving;
    const since = holder.heldSince;
    const isInBudget =
      lease.turn === undefined ? HandOffTurn.mayBegin(since, now) : lease.turn.mayContinue(now);
    if (!isInBudget || !this.isAsGoodAsNew(lease)) return false;
    const { first: next } = this;
    if (next === undefined || !meets(lease, next.terms)) return false;
    const turn = (lease.turn ??= new HandOffTurn(since));
    const previous = lease.holder;
    const waitedMs = next.onGranted(lease, next.terms.fencing ? lease.tokenOfNext : undefined);
    if (waitedMs === undefined) return false;
    turn.add(leaving);
    this.remove(next);
    if (this.first === undefined) this.onNoWaiters();
    previous?.onHandedOff();
    next.onEntered(waitedMs);
    this.context.verifier.onHandedOff(lease, now);
    return true;
  }
}

/** Whether a lease that is renewed, and released at its end, has the terms of the waiter. */
function meets({ lockTimeMs, fencingToken, replicas }: Lease, next: WaitTerms): boolean {
  return (
    fits({ lockTimeMs, fencing: fencingToken !== undefined, replicas }, next) &&
    replicas === next.replicas && // A waiter without replicas must not lose the lock because replicas are away.
    next.isWatched &&
    next.autoUnlock === true
  );
}
