import { StoreCommand } from "../commands/in-flight";
import { Fifo } from "../base/fifo";
import { NoReplyError } from "../base/no-reply-error";
import type { ReleaseReply, ReleaseRequest, Store } from "../stores/port";
import { Acquisition } from "./acquisition";
import type { FormerHolder } from "./hand-off-turn";
import type { Holder, Lease, LeavingHolder } from "./lease";
import { lossOf, unconfirmed, type Loss, type Trouble } from "./loss";
import type { QueueContext } from "./queue-context";
import type { Waiter, WaiterQueue } from "./waiter";

/** The reason why a waiter does not hold the key. */
export type Obstacle =
  | { readonly kind: "held here"; readonly holder: Holder }
  /** An earlier waiter of this process is about to acquire it, or to give up. */
  | { readonly kind: "asked for here" }
  | { readonly kind: "held elsewhere"; readonly value: string | undefined }
  | { readonly kind: "store"; readonly trouble: Trouble };

/** A waiter without a first reply does not know whether somebody else holds the key. */
export const NO_REPLY_YET: Trouble = { error: new NoReplyError("no reply from the store yet") };

/** A command that ends a hold after its last caller has left. */
export abstract class EndingCommand<Reply> extends StoreCommand<Reply> {
  readonly lease: Lease;
  /** The last caller that held it. */
  readonly last: FormerHolder | undefined;
  /** Whether it was sent before the deadline of the lease. */
  readonly isBeforeDeadline: boolean;
  /** Whether the callers know how the hold ended. */
  isReported = false;

  constructor(lease: Lease, last: FormerHolder | undefined, now: number) {
    super();
    this.lease = lease;
    this.last = last;
    this.isBeforeDeadline = lease.untilDeadline(now) > 0;
  }
}

/** The command that only ends a hold. Its queue receives the reply or the failure. If the reply handler throws, it also receives a failure. */
class ReleaseCommand extends EndingCommand<ReleaseReply> {
  readonly request: ReleaseRequest;
  readonly #store: Store;
  readonly #queue: KeyQueue;

  constructor(store: Store, queue: KeyQueue, lease: Lease, last: FormerHolder | undefined, now: number) {
    super(lease, last, now);
    this.#store = store;
    this.#queue = queue;
    this.request = lease.releaseRequest(now);
  }

  send(): Promise<ReleaseReply> {
    return this.#store.release(this.request, this.timeoutMs);
  }

  onReply(reply: ReleaseReply): void {
    this.#queue.onReleaseReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#queue.leaveUnconfirmed(this, error);
  }

  onLateReply(): void {}
}

/**
 * The waiters of this process for one key, and the holds that they get: first come, first served. Only the first waiter asks the store, so
 * a crowd costs no more than one caller.
 *
 * This class handles one hold at a time, without a hand-off. An {@link ExclusiveQueue} adds the hand-off to the next waiter. A
 * {@link SharedQueue} has several holds at the same time.
 *
 * Methods are `private` instead of `#`, because each object with `#` methods takes more memory, and there is one object for each lock.
 */
export abstract class KeyQueue implements WaiterQueue {
  readonly key: string;
  first: Waiter | undefined;
  /** The lease on the key, until the store has confirmed its end. A {@link SharedQueue} has a list instead. */
  lease: Lease | undefined;
  /** The number of leases that have not ended. A lease that its body has lost counts until the body ends. */
  #leaseCount = 0;
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

  /** Whether the waiter may start a try now: it is the first one, and this process does not hold the key. */
  mayAsk(waiter: Waiter): boolean {
    return this.first === waiter && this.heldHereForMs === 0;
  }

  /** Starts a try of the waiter. When `onTried` is called, a waiter that got the lock holds it. */
  ask(waiter: Waiter): void {
    this.acquisition ??= new Acquisition(this.context, this);
    this.acquisition.ask(waiter);
  }

  /**
   * The time for which this process will still hold the key, in milliseconds. A lease that is being released counts, because its end wakes the first
   * waiter.
   */
  protected get heldHereForMs(): number {
    if (this.lease === undefined) return 0;
    const { clock, certainty } = this.context;
    return this.lease.isReleased ? this.lease.untilExpiry(clock.now()) : certainty.timeLeft(this.lease);
  }

  /** The time until the waiter should try again if nothing wakes it, in milliseconds. */
  retryInMs(waiter: Waiter): number {
    if (this.first !== waiter) return Infinity;
    return this.heldHereForMs || (this.acquisition?.retryInMs ?? Infinity);
  }

  /**
   * Returns why the waiter does not hold the key, as far as this process knows.
   *
   * @param hasAsked whether it has asked the store itself
   */
  obstacle(waiter: Waiter, hasAsked: boolean): Obstacle {
    const { trouble, hasFoundHolder } = this.acquisition ?? {};
    if (this.heldHereForMs > 0 && this.lease?.holder !== undefined) {
      return { kind: "held here", holder: this.lease.holder };
    }
    if (trouble !== undefined) return { kind: "store", trouble };
    if (hasFoundHolder === true) return { kind: "held elsewhere", value: this.acquisition?.heldBy };
    if (this.first !== waiter || !hasAsked) return { kind: "asked for here" };
    return { kind: "store", trouble: NO_REPLY_YET };
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
    if (this.isEmpty) this.context.onEmpty(this);
  }

  /** Whether it has neither waiters nor leases. */
  get isEmpty(): boolean {
    return this.first === undefined && this.#leaseCount === 0;
  }

  // ---- holding ----------------------------------------------------------------------------------------

  /** The leases for which this process is still responsible. */
  *leases(): Iterable<Lease> {
    if (this.lease !== undefined) yield this.lease;
  }

  begin(lease: Lease, first: Waiter, waitedMs: number): void {
    const before = this.lease;
    this.remove(first);
    this.acquisition = undefined;
    this.add(lease);
    this.#leaseCount += 1;
    const { context } = this;
    context.onBegin();
    if (first.terms.isWatched) context.renewals.keep(lease, context.certainty.readAt);
    if (before !== undefined) context.renewals.supersede(before);
    // No message reports the end of a lease that is not renewed. The next waiter plans its own try for that time.
    if (!first.terms.isWatched) this.first?.wake();
    first.onEntered(waitedMs);
  }

  /** Adds a lease that begins. */
  protected add(lease: Lease): void {
    this.lease = lease;
  }

  /** Whether the lease is as good for another caller as a new grant. It does not consider the waiters of other processes. */
  protected isAsGoodAsNew(lease: Lease): boolean {
    const { renewals, certainty } = this.context;
    // This may notice a suspension, and run code that changes the waiters and the lease. So it comes first.
    const leftMs = certainty.timeLeft(lease);
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

  release(leaving: LeavingHolder, now: number): void {
    if (this.first !== undefined && this.passOn?.(this.first, leaving, now) === true) return;
    this.sendRelease(leaving.lease, leaving, now);
  }

  /** Passes the hold to the first waiter of this process, or to the store queue. Returns whether it did. */
  protected passOn?(first: Waiter, leaving: LeavingHolder, now: number): boolean;

  leaveToExpire(lease: Lease): void {
    lease.end("left to expire");
    this.context.renewals.stop(lease);
    this.finish(lease);
  }

  /**
   * Ends the lease for good. The command must be sent next.
   *
   * @returns false if a shutdown has sent such a command before
   */
  protected end({ lease, last }: EndingCommand<unknown>): boolean {
    if (this.context.isClosed && lease.loss?.isReleased === true) {
      last?.onEnded(lease.loss);
      this.finish(lease);
      return false;
    }
    lease.end("released");
    this.context.renewals.stop(lease);
    return true;
  }

  /** Releases the hold in the store. */
  protected sendRelease(lease: Lease, last: FormerHolder | undefined, now: number): void {
    const { store, inFlight, releases } = this.context;
    const command = new ReleaseCommand(store, this, lease, last, now);
    if (!this.end(command)) return;
    if (command.request.cooldownMs === undefined) releases.send(command, Infinity, now);
    else inFlight.send(command, Infinity, now);
  }

  /**
   * Reports to all holders of the lease whether they held it to its end, according to the reply of the store.
   *
   * @param afterwards called after the holders know, for example to grant the lock to the next waiter
   */
  onReleaseReply(ending: EndingCommand<unknown>, reply: ReleaseReply, afterwards?: () => void): void {
    if (reply.released) return this.report(ending, undefined, afterwards);
    const { lease, isBeforeDeadline } = ending;
    const isAnsweredInTime = lease.untilExpiry(this.context.clock.now()) > 0;
    this.report(
      ending,
      lossOf(lease.requestId, reply.holder, isBeforeDeadline, isAnsweredInTime),
      afterwards,
    );
  }

  /** Reports an unknown outcome, and retries the release until the store replies, because the key may still be held. */
  leaveUnconfirmed(ending: EndingCommand<unknown>, error: unknown): void {
    const { clock, renewals, releaseRetries } = this.context;
    const { lease } = ending;
    this.report(ending, unconfirmed(error), () => {
      const request = lease.releaseRequest(clock.now());
      releaseRetries.release(request, renewals.maxLockTimeMs(lease), () => this.first?.wake());
    });
  }

  /** Ends the hold exactly once, even if a callback throws. */
  private report(ending: EndingCommand<unknown>, loss: Loss | undefined, afterwards?: () => void): void {
    if (ending.isReported) return;
    ending.isReported = true;
    try {
      ending.lease.turn?.reportAll(loss);
      ending.last?.onEnded(loss);
      afterwards?.();
    } finally {
      this.finish(ending.lease);
    }
  }

  /** Forgets the lease, because its hold has ended as far as this process knows. */
  private finish(lease: Lease): void {
    this.context.verifier.forget(lease);
    this.#leaseCount -= 1;
    this.drop(lease);
    this.context.onEnd(this);
  }

  /** Removes a lease that has ended. */
  protected drop(lease: Lease): void {
    if (this.lease === lease) this.lease = undefined;
    if (this.lease === undefined) this.first?.wake();
  }
}
