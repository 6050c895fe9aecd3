import {
  ReleaseCommand,
  ReleaseAndEnqueueCommand,
  type ReleaseListener,
  type ReleaseAndEnqueueListener,
} from "../commands/release";
import { NoReplyError } from "../commands/in-flight";
import { Fifo } from "../base/fifo";
import type { ReleaseReply, ReleaseAndEnqueueReply, NotReleased } from "../stores/port";
import { hasTaken } from "../stores/value";
import { Acquisition, fits, type WaiterQueue } from "./acquisition";
import { concludeEnd, leaveUnconfirmed, type Ending } from "./ending";
import type { Holder } from "./holder";
import type { Lease } from "./lease";
import type { Trouble } from "./loss";
import type { QueueContext } from "./queue-context";
import { HandOffTurn, type Ended } from "./hand-off-turn";
import type { Waiter } from "./waiter";

interface NextEnding extends Ending {
  /** Acquires the key for the next waiter, if there is one. */
  readonly acquisition: Acquisition | undefined;
}

/** Why a waiter does not hold the key. */
export type Obstacle =
  | { readonly kind: "held here"; readonly holder: Holder }
  /** An earlier waiter of this process is about to acquire it, or to give up. */
  | { readonly kind: "asked for here" }
  | { readonly kind: "held elsewhere"; readonly value: string | undefined }
  | { readonly kind: "store"; readonly trouble: Trouble };

/** A waiter without a first reply does not know whether somebody else holds the key. */
const NO_REPLY_YET: Trouble = { error: new NoReplyError("no reply from the store yet") };

/**
 * The waiters of this process for one key, and its lease: first come, first served. Only the first waiter asks the store,
 * so a crowd costs no more than one caller. Methods are `private` instead of `#`, because each object with `#` methods
 * takes more memory, and there is one object for each lock.
 */
export class LocalQueue
  implements WaiterQueue, ReleaseListener<NextEnding>, ReleaseAndEnqueueListener<NextEnding>
{
  readonly key: string;
  /** Identifies the queue in this process. */
  readonly name: string;
  first: Waiter | undefined;
  /** The lease on the key, until the store has confirmed its end. */
  lease: Lease | undefined;
  readonly #context: QueueContext;
  #others: Fifo<Waiter> | undefined;
  #acquisition: Acquisition | undefined;
  /** How many leases have not ended. A lease that its body has lost counts until the body ends. */
  #leaseCount = 0;

  constructor(context: QueueContext, key: string, name: string) {
    this.#context = context;
    this.key = key;
    this.name = name;
  }

  // ---- waiting ----------------------------------------------------------------------------------------

  join(waiter: Waiter): void {
    if (this.first === undefined) this.first = waiter;
    else (this.#others ??= new Fifo()).set(waiter, undefined);
  }

  *leases(): Iterable<Lease> {
    if (this.lease !== undefined) yield this.lease;
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
    if (this.first === undefined) this.stopAsking();
    else if (wasFirst) this.first.wake();
    this.prune();
  }

  /** Whether the waiter may ask the store: it is the first one, and this process does not hold the key. */
  mayAsk(waiter: Waiter): boolean {
    if (this.first !== waiter || this.heldHereForMs > 0) return false;
    return true;
  }

  /** Asks the store for the key. The waiter is woken when the try is over. If the key was granted, it holds the lease by then. */
  ask(waiter: Waiter): void {
    this.#acquisition ??= new Acquisition(this.#context, this);
    this.#acquisition.ask(waiter);
  }

  /** Stops asking, because nobody waits any more. */
  private stopAsking(): void {
    this.#acquisition?.abandon();
    this.#acquisition = undefined;
  }

  /** When the waiter should try again if nothing wakes it, in milliseconds from now. */
  retryInMs(waiter: Waiter): number {
    if (this.first !== waiter) return Infinity;
    return this.heldHereForMs || (this.#acquisition?.retryInMs ?? Infinity);
  }

  /**
   * Why the waiter does not hold the key, as far as this process knows.
   *
   * @param hasAsked whether it has asked the store itself
   */
  obstacle(waiter: Waiter, hasAsked: boolean): Obstacle {
    const { trouble, hasFoundHolder } = this.#acquisition ?? {};
    if (this.heldHereForMs > 0 && this.lease?.holder !== undefined) {
      return { kind: "held here", holder: this.lease.holder };
    }
    if (trouble !== undefined) return { kind: "store", trouble };
    if (hasFoundHolder === true) return { kind: "held elsewhere", value: this.#acquisition?.heldBy };
    if (this.first !== waiter || !hasAsked) return { kind: "asked for here" };
    return { kind: "store", trouble: NO_REPLY_YET };
  }

  private remove(waiter: Waiter): void {
    if (this.first !== waiter) {
      this.#others?.delete(waiter);
      return;
    }
    this.first = this.#others?.first;
    if (this.first !== undefined) this.#others?.delete(this.first);
  }

  /**
   * For how long this process holds the key, in milliseconds. A lease that is being released counts, because its end wakes the first
   * waiter.
   */
  private get heldHereForMs(): number {
    if (this.lease === undefined) return 0;
    const { clock, suspension } = this.#context;
    return this.lease.isReleased ? this.lease.untilExpiry(clock.now()) : suspension.timeLeft(this.lease);
  }

  private prune(): void {
    if (this.first === undefined && this.#leaseCount === 0) this.#context.onEmpty(this);
  }

  // ---- holding ----------------------------------------------------------------------------------------

  begin(lease: Lease, first: Waiter): number | undefined {
    const before = this.lease;
    const waitedMs = first.onGranted(lease, first.fencing ? lease.tokenOfHolder : undefined);
    if (waitedMs === undefined) return undefined;
    this.remove(first);
    this.lease = lease;
    this.#acquisition = undefined;
    this.#leaseCount += 1;
    this.#context.onBegin();
    if (first.isWatched) this.#context.renewals.keep(lease, this.#context.suspension.readAt);
    if (before !== undefined) this.#context.renewals.supersede(before);
    // No message reports the end of a lease that is not renewed. The next waiter plans its own try for that time.
    if (!first.isWatched) this.first?.wake();
    return waitedMs;
  }

  // ---- the end of a hold ------------------------------------------------------------------------------

  /** Ends the lease without a release. The key expires by itself. */
  leaveToExpire(lease: Lease): void {
    lease.end("left to expire");
    this.finish(lease);
  }

  /**
   * Ends the hold after its body. The lease goes to the next waiter of this process, to the store queue, or to nobody.
   *
   * @param since when the holder acquired it
   * @param mayHandOff whether the watchdog renews the lease, as the next holder needs
   */
  release(lease: Lease, since: number, mayHandOff: boolean, now: number, ended: Ended): void {
    const { first } = this;
    const isCurrent = this.lease === lease && !lease.isOver;
    const releaseRequest = lease.releaseRequest(now);
    const isFreed = releaseRequest.cooldownMs === undefined;
    const isForNext = isCurrent && isFreed && first !== undefined;
    if (isForNext && mayHandOff && this.handOff(lease, since, now, ended)) return;
    const { store, inFlight, releases, clock, isClosed } = this.#context;
    const isBeforeDeadline = lease.untilDeadline(now) > 0;
    if (isClosed && lease.loss?.isReleased === true) {
      ended(lease.loss);
      return this.finish(lease);
    }
    lease.end("released");
    this.#context.renewals.stop(lease);
    const { queue } = store;
    if (!isForNext || isClosed || queue === undefined) {
      if (isForNext && !isClosed) this.letOthersTry();
      const ending: NextEnding = { lease, isBeforeDeadline, acquisition: undefined, ended, isOver: false };
      const command = new ReleaseCommand(store, this, releaseRequest, ending);
      return isFreed ? releases.send(command) : inFlight.send(command);
    }
    const acquisition = (this.#acquisition ??= new Acquisition(this.#context, this));
    const ending: NextEnding = { lease, isBeforeDeadline, acquisition, ended, isOver: false };
    const request = acquisition.requestFor(first);
    const command = new ReleaseAndEnqueueCommand(queue, this, releaseRequest, ending, request, clock.now());
    acquisition.sent(command);
    inFlight.send(command);
  }

  /** Without a store queue, other processes could only try between this release and the next try of this process. */
  private letOthersTry(): void {
    (this.#acquisition ??= new Acquisition(this.#context, this)).pause();
  }

  onReleaseReply({ held }: ReleaseCommand<NextEnding>, reply: ReleaseReply): void {
    this.conclude(held, reply);
  }

  onReleaseFailure({ held }: ReleaseCommand<NextEnding>, error: unknown): void {
    this.fail(held, error);
  }

  onReleaseAndEnqueueReply(
    next: ReleaseAndEnqueueCommand<NextEnding>,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void {
    const { held, request } = next;
    // If the key has the value that this command writes, the store has run the command.
    const isDone = !reply.released && hasTaken(request.requestId, reply.holder);
    this.conclude(held, isDone ? { released: true } : reply, () =>
      held.acquisition?.onNextReply(next, reply),
    );
  }

  onReleaseAndEnqueueFailure(next: ReleaseAndEnqueueCommand<NextEnding>, error: unknown): void {
    next.held.acquisition?.onNextFailure(next, error);
    this.fail(next.held, error);
  }

  onLateReleaseAndEnqueueReply(
    next: ReleaseAndEnqueueCommand<NextEnding>,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void {
    next.held.acquisition?.onLateNextReply(next, reply);
  }

  /** @param afterwards called after the previous holder knows how its hold ended */
  private conclude(ending: NextEnding, reply: ReleaseReply, afterwards?: () => void): void {
    concludeEnd(this.#context, ending, reply, () => this.finish(ending.lease), afterwards);
  }

  private fail(ending: NextEnding, error: unknown): void {
    const finish = (): void => this.finish(ending.lease);
    leaveUnconfirmed(this.#context, ending, error, finish, () => this.first?.wake());
  }

  /** Forgets the lease, because its hold has ended as far as this process knows. */
  private finish(lease: Lease): void {
    this.#leaseCount -= 1;
    this.#context.renewals.stop(lease);
    this.#context.verifier.forget(lease);
    if (this.lease === lease) this.lease = undefined;
    if (this.lease === undefined) this.#context.onFree(lease);
    this.prune();
    this.#context.onEnd();
  }

  // ---- hand-off ---------------------------------------------------------------------------------------

  /** Hands the lease off to the next waiter of this process, if the lease is as good as a new grant. Returns whether it did. */
  private handOff(lease: Lease, since: number, now: number, ended: Ended): boolean {
    // This may notice a suspension, and run code that changes the waiters. So it comes first.
    const leftMs = this.#context.suspension.timeLeft(lease);
    const { first: next } = this;
    if (next === undefined) return false;
    const { lockTimeMs, fencingToken, replicas } = lease;
    const isInBudget = lease.turn === undefined ? HandOffTurn.mayBegin(since, now) : lease.turn.mayGoOn(now);
    const canHandOff =
      isInBudget &&
      leftMs > lockTimeMs / 2 &&
      // `extend()` may have extended it for its holder alone, or may be about to.
      this.#context.renewals.maxLockTimeMs(lease) <= lockTimeMs &&
      fits({ lockTimeMs, fencing: fencingToken !== undefined, replicas }, next) &&
      replicas === next.replicas && // A waiter without replicas must not lose the lock because replicas are away.
      next.isWatched &&
      next.isAutoUnlocked &&
      this.#context.renewals.isKept(lease) && // A lease at its limit would end under the next holder.
      !this.#context.isClosed;
    if (!canHandOff) return false;
    const turn = (lease.turn ??= new HandOffTurn(since));
    const previous = lease.holder;
    const waitedMs = next.onGranted(lease, next.fencing ? lease.tokenOfNext : undefined);
    if (waitedMs === undefined) return false;
    turn.add(ended);
    this.remove(next);
    if (this.first === undefined) this.stopAsking();
    previous?.onHandedOff();
    next.onEntered(waitedMs);
    this.#context.verifier.onHandedOff(lease, now);
    return true;
  }
}
