import { ReleaseAndEnqueueCommand, type ReleaseAndEnqueueListener } from "../commands/release";
import type { ReleaseAndEnqueueReply, NotReleased } from "../stores/port";
import { hasTaken } from "../stores/value";
import { Acquisition, fits } from "./acquisition";
import { HandOffTurn, type Ended } from "./hand-off-turn";
import { KeyQueue, NO_REPLY_YET, type Ending, type Obstacle } from "./key-queue";
import type { Grant, Lease } from "./lease";
import type { Waiter } from "./waiter";

interface NextEnding extends Ending {
  /** Acquires the key for the next waiter. */
  readonly acquisition: Acquisition;
}

/**
 * The callers of this process that want to hold one key alone. A release hands the lease off to the next waiter. From time to time, it goes
 * through the store queue to another process instead.
 */
export class ExclusiveQueue extends KeyQueue implements ReleaseAndEnqueueListener<NextEnding> {
  /** The lease on the key, until the store has confirmed its end. */
  lease: Lease | undefined;
  #leaseCount = 0;

  // ---- waiting ----------------------------------------------------------------------------------------

  /** Whether the waiter may ask the store: it is the first one, and this process does not hold the key. */
  mayAsk(waiter: Waiter): boolean {
    return this.first === waiter && this.heldHereForMs === 0;
  }

  ask(waiter: Waiter): void {
    this.askStore(waiter);
  }

  retryInMs(waiter: Waiter): number {
    if (this.first !== waiter) return Infinity;
    return this.heldHereForMs || (this.acquisition?.retryInMs ?? Infinity);
  }

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

  /**
   * How long this process will still hold the key, in milliseconds. A lease that is being released counts, because its end wakes the first
   * waiter.
   */
  private get heldHereForMs(): number {
    if (this.lease === undefined) return 0;
    const { clock, suspension } = this.context;
    return this.lease.isReleased ? this.lease.untilExpiry(clock.now()) : suspension.timeLeft(this.lease);
  }

  // ---- holding ----------------------------------------------------------------------------------------

  *leases(): Iterable<Lease> {
    if (this.lease !== undefined) yield this.lease;
  }

  protected get hasLeases(): boolean {
    return this.#leaseCount > 0;
  }

  protected add(lease: Lease): void {
    this.lease = lease;
    this.#leaseCount += 1;
  }

  override begin(lease: Lease, first: Waiter, grant: Grant): number | undefined {
    const before = this.lease;
    const waitedMs = super.begin(lease, first, grant);
    if (waitedMs === undefined) return undefined;
    if (before !== undefined) this.context.renewals.supersede(before);
    // No message reports the end of a lease that is not renewed. The next waiter plans its own try for that time.
    if (!first.isWatched) this.first?.wake();
    return waitedMs;
  }

  protected drop(lease: Lease): void {
    this.#leaseCount -= 1;
    if (this.lease === lease) this.lease = undefined;
    if (this.lease === undefined) this.context.onFree(lease);
  }

  // ---- the end of a hold ------------------------------------------------------------------------------

  /**
   * Ends the hold after its body. The lease goes to the next waiter of this process, to the store queue, or to nobody.
   *
   * @param since when the holder acquired it
   * @param mayHandOff whether the watchdog renews the lease, as the next holder needs
   */
  release(lease: Lease, since: number, mayHandOff: boolean, now: number, ended: Ended): void {
    const { first } = this;
    const request = lease.releaseRequest(now);
    const isFreed = request.cooldownMs === undefined;
    const isForNext = this.lease === lease && !lease.isOver && isFreed && first !== undefined;
    if (isForNext && mayHandOff && this.handOff(lease, since, now, ended)) return;
    const ending = this.end(lease, now, ended);
    if (ending === undefined) return;
    const { store, inFlight, clock, isClosed } = this.context;
    if (!isForNext || isClosed) return this.sendRelease(ending, request);
    const { queue } = store;
    if (queue === undefined) {
      this.letOthersTry();
      return this.sendRelease(ending, request);
    }
    const acquisition = (this.acquisition ??= new Acquisition(this.context, this));
    const next = acquisition.requestFor(first);
    const held: NextEnding = { ...ending, acquisition };
    const command = new ReleaseAndEnqueueCommand(queue, this, request, held, next, clock.now());
    acquisition.sent(command);
    inFlight.send(command);
  }

  /** Without a store queue, other processes could only try between this release and the next try of this process. */
  private letOthersTry(): void {
    (this.acquisition ??= new Acquisition(this.context, this)).pause();
  }

  onReleaseAndEnqueueReply(
    next: ReleaseAndEnqueueCommand<NextEnding>,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void {
    const { held, request } = next;
    // If the key has the value that this command writes, the store has run the command.
    const isDone = !reply.released && hasTaken(request.requestId, reply.holder);
    this.conclude(held, isDone ? { released: true } : reply, () => held.acquisition.onNextReply(next, reply));
  }

  onReleaseAndEnqueueFailure(next: ReleaseAndEnqueueCommand<NextEnding>, error: unknown): void {
    next.held.acquisition.onNextFailure(next, error);
    this.leaveUnconfirmed(next.held, error);
  }

  onLateReleaseAndEnqueueReply(
    next: ReleaseAndEnqueueCommand<NextEnding>,
    reply: ReleaseAndEnqueueReply | NotReleased,
  ): void {
    next.held.acquisition.onLateNextReply(next, reply);
  }

  // ---- hand-off ---------------------------------------------------------------------------------------

  /** Hands the lease off to the next waiter of this process, if the lease is as good as a new grant. Returns whether it did. */
  private handOff(lease: Lease, since: number, now: number, ended: Ended): boolean {
    const isInBudget = lease.turn === undefined ? HandOffTurn.mayBegin(since, now) : lease.turn.mayGoOn(now);
    if (!isInBudget || !this.isAsGoodAsNew(lease)) return false;
    const { first: next } = this;
    if (next === undefined || !meets(lease, next)) return false;
    const turn = (lease.turn ??= new HandOffTurn(since));
    const previous = lease.holder;
    const waitedMs = next.onGranted(lease, next.fencing ? lease.tokenOfNext : undefined);
    if (waitedMs === undefined) return false;
    turn.add(ended);
    this.remove(next);
    if (this.first === undefined) this.onNoWaiters();
    previous?.onHandedOff();
    next.onEntered(waitedMs);
    this.context.verifier.onHandedOff(lease, now);
    return true;
  }
}

/** Whether a lease that is renewed, and released at its end, has the terms of the waiter. */
function meets({ lockTimeMs, fencingToken, replicas }: Lease, next: Waiter): boolean {
  return (
    fits({ lockTimeMs, fencing: fencingToken !== undefined, replicas }, next) &&
    replicas === next.replicas && // A waiter without replicas must not lose the lock because replicas are away.
    next.isWatched &&
    next.isAutoUnlocked
  );
}
