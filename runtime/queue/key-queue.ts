import { ReleaseCommand, type ReleaseListener } from "../commands/release";
import { NoReplyError } from "../commands/in-flight";
import { Fifo } from "../base/fifo";
import type { ReleaseReply, ReleaseRequest } from "../stores/port";
import { Acquisition, type WaiterQueue } from "./acquisition";
import type { Ended } from "./hand-off-turn";
import type { Grant, Holder, Lease } from "./lease";
import { lossOf, unconfirmed, type Loss, type Trouble } from "./loss";
import type { QueueContext } from "./queue-context";
import type { Waiter } from "./waiter";

/** Why a waiter does not hold the key. */
export type Obstacle =
  | { readonly kind: "held here"; readonly holder: Holder }
  /** An earlier waiter of this process is about to acquire it, or to give up. */
  | { readonly kind: "asked for here" }
  | { readonly kind: "held elsewhere"; readonly value: string | undefined }
  | { readonly kind: "store"; readonly trouble: Trouble };

/** A waiter without a first reply does not know whether somebody else holds the key. */
export const NO_REPLY_YET: Trouble = { error: new NoReplyError("no reply from the store yet") };

/** A lease that is being released. */
export interface Ending {
  readonly lease: Lease;
  /** Whether the release was sent before the deadline of the lease. */
  readonly isBeforeDeadline: boolean;
  readonly ended: Ended;
  isOver: boolean;
}

/**
 * The waiters of this process for one key, and the holds that they get: first come, first served. Only the first waiter asks the store, so
 * a crowd costs no more than one caller. An {@link ExclusiveQueue} has one hold for one caller at a time. A {@link SharedQueue} has holds
 * with room for several callers. They differ in how a waiter gets a hold that this process already has.
 *
 * Methods are `private` instead of `#`, because each object with `#` methods takes more memory, and there is one object for each lock.
 */
export abstract class KeyQueue implements WaiterQueue, ReleaseListener<Ending> {
  readonly key: string;
  first: Waiter | undefined;
  protected readonly context: QueueContext;
  protected acquisition: Acquisition | undefined;
  #others: Fifo<Waiter> | undefined;

  constructor(context: QueueContext, key: string) {
    this.context = context;
    this.key = key;
  }

  // ---- waiting ----------------------------------------------------------------------------------------

  join(waiter: Waiter): void {
    if (this.first === undefined) this.first = waiter;
    else (this.#others ??= new Fifo()).set(waiter, undefined);
  }

  get waitingCount(): number {
    return (this.first === undefined ? 0 : 1) + (this.#others?.size ?? 0);
  }

  *waiters(): Iterable<Waiter> {
    if (this.first !== undefined) yield this.first;
    yield* this.#others?.keys() ?? [];
  }

  /** Removes a waiter that gives up. A command that was sent for it now serves the first waiter. */
  giveUp(waiter: Waiter): void {
    const wasFirst = this.first === waiter;
    this.remove(waiter);
    if (this.first === undefined) this.onNoWaiters();
    else if (wasFirst) this.first.wake();
    this.prune();
  }

  /** Whether the waiter may start a try now. */
  abstract mayAsk(waiter: Waiter): boolean;

  /** Starts a try of the waiter. When `onTried` is called, a waiter that got the lock holds it. */
  abstract ask(waiter: Waiter): void;

  /** When the waiter should try again if nothing wakes it, in milliseconds from now. */
  abstract retryInMs(waiter: Waiter): number;

  /**
   * Why the waiter does not hold the key, as far as this process knows.
   *
   * @param hasAsked whether it has asked the store itself
   */
  abstract obstacle(waiter: Waiter, hasAsked: boolean): Obstacle;

  protected askStore(waiter: Waiter): void {
    this.acquisition ??= new Acquisition(this.context, this);
    this.acquisition.ask(waiter);
  }

  /** Handles the departure of the last waiter. */
  protected onNoWaiters(): void {
    this.acquisition?.abandon();
    this.acquisition = undefined;
  }

  protected remove(waiter: Waiter): void {
    if (this.first !== waiter) {
      this.#others?.delete(waiter);
      return;
    }
    this.first = this.#others?.first;
    if (this.first !== undefined) this.#others?.delete(this.first);
  }

  protected prune(): void {
    if (this.first === undefined && !this.hasLeases) this.context.onEmpty(this);
  }

  // ---- holding ----------------------------------------------------------------------------------------

  /** The leases for which this process is still responsible. */
  abstract leases(): Iterable<Lease>;

  /** Whether any lease has not ended. A lease that its body has lost counts until the body ends. */
  protected abstract get hasLeases(): boolean;

  /** Adds a lease that begins. */
  protected abstract add(lease: Lease): void;

  begin(lease: Lease, first: Waiter, _grant: Grant): number | undefined {
    const waitedMs = first.onGranted(lease, first.fencing ? lease.tokenOfHolder : undefined);
    if (waitedMs === undefined) return undefined;
    this.remove(first);
    this.acquisition = undefined;
    this.add(lease);
    const { context } = this;
    context.onBegin();
    if (first.isWatched) context.renewals.keep(lease, context.suspension.readAt);
    return waitedMs;
  }

  /** Whether the lease is as good for another caller as a new grant. It does not consider the waiters of other processes. */
  protected isAsGoodAsNew(lease: Lease): boolean {
    const { renewals, suspension } = this.context;
    // This may notice a suspension, and run code that changes the waiters and the lease. So it comes first.
    const leftMs = suspension.timeLeft(lease);
    const { lockTimeMs } = lease;
    return (
      leftMs > lockTimeMs / 2 &&
      // `extend()` may have extended it for its holder alone, or may be about to.
      renewals.maxLockTimeMs(lease) <= lockTimeMs &&
      renewals.isKept(lease) && // A lease at its limit would end under the next holder.
      !this.context.isClosed
    );
  }

  // ---- the end of a hold ------------------------------------------------------------------------------

  /** Removes a lease that has ended. */
  protected abstract drop(lease: Lease): void;

  /** Ends the lease without a release. The key expires by itself. */
  leaveToExpire(lease: Lease): void {
    lease.end("left to expire");
    this.finish(lease);
  }

  /**
   * Ends the lease for good. A command that ends the hold in the store must follow.
   *
   * @returns `undefined` if such a command was sent before, by a shutdown
   */
  protected end(lease: Lease, now: number, ended: Ended): Ending | undefined {
    const isBeforeDeadline = lease.untilDeadline(now) > 0;
    if (this.context.isClosed && lease.loss?.isReleased === true) {
      ended(lease.loss);
      this.finish(lease);
      return undefined;
    }
    lease.end("released");
    this.context.renewals.stop(lease);
    return { lease, isBeforeDeadline, ended, isOver: false };
  }

  protected sendRelease(ending: Ending, request: ReleaseRequest): void {
    const { store, inFlight, releases } = this.context;
    const command = new ReleaseCommand(store, this, request, ending);
    if (request.cooldownMs === undefined) releases.send(command);
    else inFlight.send(command);
  }

  onReleaseReply({ held }: ReleaseCommand<Ending>, reply: ReleaseReply): void {
    this.conclude(held, reply);
  }

  onReleaseFailure({ held }: ReleaseCommand<Ending>, error: unknown): void {
    this.leaveUnconfirmed(held, error);
  }

  /**
   * Reports to all holders of the lease whether they held it to its end, according to the reply of the store.
   *
   * @param afterwards called after the holders know, for example to grant the lock to the next waiter
   */
  protected conclude(ending: Ending, reply: ReleaseReply, afterwards = (): void => {}): void {
    const { lease, isBeforeDeadline } = ending;
    const isAnsweredInTime = lease.untilExpiry(this.context.clock.now()) > 0;
    const loss = reply.released
      ? undefined
      : lossOf(lease.requestId, reply.holder, isBeforeDeadline, isAnsweredInTime);
    this.report(ending, loss, afterwards);
  }

  /** Reports an unknown outcome, and retries the release until the store replies, because the key may still be held. */
  protected leaveUnconfirmed(ending: Ending, error: unknown): void {
    const { clock, renewals, releaseRetries } = this.context;
    const { lease } = ending;
    this.report(ending, unconfirmed(error), () => {
      const request = lease.releaseRequest(clock.now());
      releaseRetries.release(request, renewals.maxLockTimeMs(lease), () => this.first?.wake());
    });
  }

  /** Ends the hold exactly once, even if a callback throws. */
  private report(ending: Ending, loss: Loss | undefined, afterwards: () => void): void {
    if (ending.isOver) return;
    ending.isOver = true;
    try {
      ending.lease.turn?.reportAll(loss);
      ending.ended(loss);
      afterwards();
    } finally {
      this.finish(ending.lease);
    }
  }

  /** Forgets the lease, because its hold has ended as far as this process knows. */
  private finish(lease: Lease): void {
    this.context.renewals.stop(lease);
    this.context.verifier.forget(lease);
    this.drop(lease);
    this.prune();
    this.context.onEnd();
  }
}
