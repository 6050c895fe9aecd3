import { Drop, Next, type DropListener, type NextListener } from "../commands/drop";
import { NoReplyError } from "../commands/in-flight";
import { Fifo } from "../fifo";
import type { DropReply, NextReply, NotDropped } from "../stores/port";
import { hasTaken } from "../stores/value";
import { Contender, fits, type Line } from "./contender";
import { concludeEnd, leaveUnconfirmed, type Ending } from "./ending";
import type { Holder } from "./holder";
import type { Lease } from "./lease";
import type { Trouble } from "./loss";
import type { Shared } from "./shared";
import { Turn, type Ended } from "./turn";
import type { Waiter } from "./waiter";

interface NextEnding extends Ending {
  /** Who asks for the next one, if somebody waited. */
  readonly contender: Contender | undefined;
}

/** Why one who waits does not have the key. */
export type Obstacle =
  | { readonly kind: "held here"; readonly holder: Holder }
  /** By somebody of this process who came before, and is about to have it or to give up. */
  | { readonly kind: "asked for here" }
  | { readonly kind: "held elsewhere"; readonly value: string | undefined }
  | { readonly kind: "store"; readonly trouble: Trouble };

/** Who runs out of time before the first reply does not know that somebody else holds the key. */
const NO_REPLY_YET: Trouble = { error: new NoReplyError("no reply from the store yet") };

/**
 * Those in this process who want one key: first come, first served. Only the first asks the store, for all behind it, so
 * that a crowd costs no more than one caller does. (Its methods are `private` and not `#`, for which each object would
 * carry a mark: there are as many as there are locks.)
 */
export class LocalQueue implements Line, DropListener<NextEnding>, NextListener<NextEnding> {
  readonly key: string;
  /** What the process knows it by. */
  readonly name: string;
  first: Waiter | undefined;
  /** What this process has of the key, until the store has said that it has it no more. */
  lease: Lease | undefined;
  readonly #shared: Shared;
  #others: Fifo<Waiter> | undefined;
  #contender: Contender | undefined;
  /** How many leases have not ended, those that were lost under their bodies included. */
  #stays = 0;

  constructor(shared: Shared, key: string, name: string) {
    this.#shared = shared;
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

  /** The waiter gives up. What was asked for it is for whoever is first now. */
  giveUp(waiter: Waiter): void {
    const wasFirst = this.first === waiter;
    this.remove(waiter);
    if (this.first === undefined) this.askNoMore();
    else if (wasFirst) this.first.wake();
    this.prune();
  }

  /** Whether it is for the waiter to ask the store: it is the first in line, and the key is not held here by as many as may. */
  mayAsk(waiter: Waiter): boolean {
    if (this.first !== waiter || this.heldHereForMs > 0) return false;
    return true;
  }

  /** One who may asks the store for the key. It is told when its try is over; if it was granted, it has the lease by then. */
  ask(waiter: Waiter): void {
    this.#contender ??= new Contender(this.#shared, this);
    this.#contender.ask(waiter);
  }

  /** Nobody waits any more. */
  private askNoMore(): void {
    this.#contender?.abandon();
    this.#contender = undefined;
  }

  /** How soon the waiter should look again, in milliseconds, if nobody wakes it. */
  lookAgainInMs(waiter: Waiter): number {
    if (this.first !== waiter) return Infinity;
    return this.heldHereForMs || (this.#contender?.lookAgainInMs ?? Infinity);
  }

  /**
   * Why the waiter does not have the key, as far as it is known here.
   *
   * @param hasAsked whether it has asked the store itself
   */
  obstacle(waiter: Waiter, hasAsked: boolean): Obstacle {
    const { trouble, hasHeard } = this.#contender ?? {};
    if (this.heldHereForMs > 0 && this.lease?.holder !== undefined) {
      return { kind: "held here", holder: this.lease.holder };
    }
    if (trouble !== undefined) return { kind: "store", trouble };
    if (hasHeard === true) return { kind: "held elsewhere", value: this.#contender?.heldBy };
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

  /** While the lease is being given back, its end wakes who is first. */
  private get heldHereForMs(): number {
    if (this.lease === undefined) return 0;
    const { clock, suspension } = this.#shared;
    return this.lease.isGivenBack ? this.lease.untilExpiry(clock.now()) : suspension.timeLeft(this.lease);
  }

  private prune(): void {
    if (this.first === undefined && this.#stays === 0) this.#shared.onEmpty(this);
  }

  // ---- holding ----------------------------------------------------------------------------------------

  begin(lease: Lease, first: Waiter): number | undefined {
    const before = this.lease;
    const waitedMs = first.onGranted(lease, first.fencing ? lease.tokenOfHolder : undefined);
    if (waitedMs === undefined) return undefined;
    this.remove(first);
    this.lease = lease;
    this.#contender = undefined;
    this.#stays += 1;
    this.#shared.onBegin();
    if (first.isWatched) this.#shared.renewals.keep(lease, this.#shared.suspension.readAt);
    if (before !== undefined) this.#shared.renewals.supersede(before);
    // Nobody tells when a lease that is not renewed is over: who is next looks again then.
    if (!first.isWatched) this.first?.wake();
    return waitedMs;
  }

  // ---- the end of a hold ------------------------------------------------------------------------------

  /** The holder leaves without a release: the key expires by itself. */
  leaveToExpire(lease: Lease): void {
    lease.end("left to expire");
    this.finish(lease);
  }

  /**
   * The holder's work is done: the next in line has the lease, or the store's queue has its turn, or nobody.
   *
   * @param since when the holder had it
   * @param mayHandOn whether the holder would have it prolonged as the next one would
   */
  release(lease: Lease, since: number, mayHandOn: boolean, now: number, ended: Ended): void {
    const { first } = this;
    const isCurrent = this.lease === lease && !lease.isOver;
    const dropped = lease.dropRequest(now);
    const isFreed = dropped.closedForMs === undefined;
    const isForNext = isCurrent && isFreed && first !== undefined;
    if (isForNext && mayHandOn && this.handOn(lease, since, now, ended)) return;
    const { store, inFlight, drops, clock, isClosed } = this.#shared;
    const isBeforeItsTime = lease.untilDeadline(now) > 0;
    if (isClosed && lease.loss?.isGivenBack === true) {
      ended(lease.loss);
      return this.finish(lease);
    }
    lease.end("given back");
    this.#shared.renewals.stop(lease);
    if (!isForNext || isClosed) {
      const ending: NextEnding = { lease, isBeforeItsTime, contender: undefined, ended, isOver: false };
      const drop = new Drop(store, this, dropped, ending);
      return isFreed ? drops.send(drop) : inFlight.send(drop);
    }
    const contender = (this.#contender ??= new Contender(this.#shared, this));
    const ending: NextEnding = { lease, isBeforeItsTime, contender, ended, isOver: false };
    const request = contender.requestFor(first);
    const next = new Next(store, this, dropped, ending, request, clock.now());
    contender.sent(next);
    inFlight.send(next);
  }

  onDropReply({ held }: Drop<NextEnding>, reply: DropReply): void {
    this.conclude(held, reply);
  }

  onDropFailure({ held }: Drop<NextEnding>, error: unknown): void {
    this.fail(held, error);
  }

  onNextReply(next: Next<NextEnding>, reply: NextReply | NotDropped): void {
    const { held, request } = next;
    // Who finds what this very command has written knows that it was carried out.
    const isDone = !reply.dropped && hasTaken(request.requestId, reply.holder);
    this.conclude(held, isDone ? { dropped: true } : reply, () => held.contender?.onNextReply(next, reply));
  }

  onNextFailure(next: Next<NextEnding>, error: unknown): void {
    next.held.contender?.onNextFailure(next, error);
    this.fail(next.held, error);
  }

  onLateNextReply(next: Next<NextEnding>, reply: NextReply | NotDropped): void {
    next.held.contender?.onLateNextReply(next, reply);
  }

  /** @param go what comes of it: who held it is told before who holds it now */
  private conclude(ending: NextEnding, reply: DropReply, go?: () => void): void {
    concludeEnd(this.#shared, ending, reply, () => this.finish(ending.lease), go);
  }

  private fail(ending: NextEnding, error: unknown): void {
    const finish = (): void => this.finish(ending.lease);
    leaveUnconfirmed(this.#shared, ending, error, finish, () => this.first?.wake());
  }

  /** The stay is over, as far as we know. */
  private finish(lease: Lease): void {
    this.#stays -= 1;
    this.#shared.renewals.stop(lease);
    this.#shared.looks.forget(lease);
    if (this.lease === lease) this.lease = undefined;
    if (this.lease === undefined) this.#shared.onFree(lease);
    this.prune();
    this.#shared.onEnd();
  }

  // ---- handing on -------------------------------------------------------------------------------------

  /** Inside the process a lease goes only to one who would have been granted the same. */
  private handOn(lease: Lease, since: number, now: number, ended: Ended): boolean {
    // This may find a suspension, and run code that changes who waits. So it comes first.
    const leftMs = this.#shared.suspension.timeLeft(lease);
    const { first: next } = this;
    if (next === undefined) return false;
    const { lockTimeMs, fencingToken, replicas } = lease;
    const mayGoOn = lease.turn === undefined ? Turn.mayBegin(since, now) : lease.turn.mayGoOn(now);
    const isWorthIt =
      mayGoOn &&
      leftMs > lockTimeMs / 2 &&
      // It may have been extended for the one who has it, and for nobody else; or that may be under way.
      this.#shared.renewals.mostLockTimeMs(lease) <= lockTimeMs &&
      fits({ lockTimeMs, fencing: fencingToken !== undefined, replicas }, next) &&
      replicas === next.replicas && // Who asks for none is not to lose it where those of the holder are away.
      next.isWatched &&
      next.isAutoUnlocked &&
      this.#shared.renewals.isKept(lease) && // At its limit it would end under the next one.
      !this.#shared.isClosed;
    if (!isWorthIt) return false;
    const turn = (lease.turn ??= new Turn(since));
    const previous = lease.holder;
    const waitedMs = next.onGranted(lease, next.fencing ? lease.tokenOfNext : undefined);
    if (waitedMs === undefined) return false;
    turn.add(ended);
    this.remove(next);
    if (this.first === undefined) this.askNoMore();
    previous?.onHandedOn();
    next.onEntered(waitedMs);
    this.#shared.looks.onHandedOn(lease, now);
    return true;
  }
}
