import { NoReplyError } from "./commands";
import type { Lease } from "./lease";
import type { Lines } from "./lines";
import type { Lock } from "./lock";
import { Release, ReleaseToNext, type Releasing } from "./release";
import { FENCING_STRIDE } from "./store";
import { fits, Ticket, type Trouble } from "./ticket";

/**
 * A lease is handed on inside the process so often and for so long, before other processes have their turn. Where
 * the work takes next to no time, a turn is not over before it is worth the round trip.
 */
const HAND_ONS = 15;
const MOST_HAND_ONS = FENCING_STRIDE - 1;
const WORTH_A_TURN_MS = 5;
const LONGEST_TURN_MS = 100;

/** Who runs out of time before the first reply does not know that somebody else holds the lock. */
const NO_REPLY_YET: Trouble = { error: new NoReplyError("no reply from the store yet") };

/** The line for one key. (Its methods are `private` and not `#` for the same reason as those of `Lock`.) */
export class Line {
  readonly key: string;
  holder: Lease | undefined;
  first: Lock | undefined;
  readonly #lines: Lines;
  #others: Set<Lock> | undefined;
  #ticket: Ticket | undefined;
  /** How many leases have not ended, those that were lost under their bodies included. */
  #stays = 0;

  constructor(lines: Lines, key: string) {
    this.#lines = lines;
    this.key = key;
  }

  // ---- standing in line -------------------------------------------------------------------------------

  join(lock: Lock): void {
    if (this.first === undefined) this.first = lock;
    else (this.#others ??= new Set()).add(lock);
  }

  *waiting(): Iterable<Lock> {
    if (this.first !== undefined) yield this.first;
    yield* this.#others ?? [];
  }

  /** The lock gives up waiting. The place in the store's queue is for whoever is first now. */
  giveUp(lock: Lock): void {
    const wasFirst = this.first === lock;
    this.remove(lock);
    if (this.first === undefined) {
      this.#ticket?.abandon();
      this.#ticket = undefined;
    } else if (wasFirst) {
      this.first.wake();
    }
    this.prune();
  }

  /**
   * The first in line asks the store for the key; for anybody else, or while the key is held here, nothing is
   * sent. The lock is told when the try is over; when it was granted, the first in line holds it by then.
   */
  ask(lock: Lock): void {
    if (this.first !== lock || this.heldHereForMs > 0) return lock.tried();
    this.#ticket ??= new Ticket(this.#lines, this, lock.requestId, NO_REPLY_YET);
    this.#ticket.ask(lock);
  }

  /** How soon the lock should look again, if nobody wakes it. */
  lookAgainInMs(lock: Lock): number {
    if (this.first !== lock) return Infinity;
    return this.heldHereForMs || (this.#ticket?.lookAgainInMs ?? Infinity);
  }

  /** Why the store could not be asked at the last try, if it could not. */
  get trouble(): Trouble | undefined {
    return this.#ticket?.trouble;
  }

  private remove(lock: Lock): void {
    if (this.first !== lock) {
      this.#others?.delete(lock);
      return;
    }
    this.first = this.#others?.values().next().value;
    if (this.first !== undefined) this.#others?.delete(this.first);
  }

  private get heldHereForMs(): number {
    return this.holder?.remaining(this.#lines.clock.now()) ?? 0;
  }

  private prune(): void {
    if (this.first === undefined && this.#stays === 0) this.#lines.remove(this);
  }

  // ---- holding ----------------------------------------------------------------------------------------

  /** The store granted the lease to this process: the first in line has it. */
  begin(lease: Lease, first: Lock, now: number): void {
    this.#ticket = undefined;
    this.#stays += 1;
    if (this.holder !== undefined) this.#lines.renewals.supersede(this.holder);
    if (first.isWatched) this.#lines.renewals.keep(lease, now);
    this.give(lease, first, now);
    // Nobody tells when a lease that is not renewed is over: who is next looks again then.
    if (!first.isWatched) this.first?.wake();
  }

  private give(lease: Lease, lock: Lock, now: number): void {
    this.remove(lock);
    this.holder = lease;
    lease.holder = lock;
    const { fencingToken, turn } = lease;
    const hasToken = lock.fencing && fencingToken !== undefined;
    lock.hold(lease, hasToken ? fencingToken + (turn?.handOns ?? 0) : undefined, now);
  }

  /** The holder leaves without a release: the key expires by itself. */
  leaveToExpire(lease: Lease): void {
    this.end(lease, "left to expire");
  }

  /** The holder's work is done: the next in line has the lock, or the store's queue, or nobody. */
  release(lease: Lease, lock: Lock, now: number, done: Releasing): void {
    const next = this.holder === lease ? this.first : undefined;
    if (next !== undefined && this.mayHandOn(lease, lock, next, now)) {
      lease.turn ??= { since: lock.heldSince, handOns: 0 };
      lease.turn.handOns += 1;
      done("released"); // Told before the next one tells that it holds the lock.
      this.give(lease, next, now);
      return;
    }
    const { renewals, releases, commands, store, closing } = this.#lines;
    renewals.stop(lease);
    if (next === undefined || closing) return releases.send(new Release(store, lease, done), now);
    const ticket = (this.#ticket ??= new Ticket(this.#lines, this, next.requestId, undefined));
    ticket.expectHints();
    commands.send(new ReleaseToNext(store, lease, done, ticket, ticket.requestFor(next), now), now);
  }

  /** Inside the process a lease goes only to one who would have been granted the same. */
  private mayHandOn(lease: Lease, lock: Lock, next: Lock, now: number): boolean {
    const turnMs = now - (lease.turn?.since ?? lock.heldSince);
    return (
      (lease.turn?.handOns ?? 0) < (turnMs < WORTH_A_TURN_MS ? MOST_HAND_ONS : HAND_ONS) &&
      turnMs < LONGEST_TURN_MS &&
      lease.remaining(now) > lease.lockTimeMs / 2 &&
      fits(lease.lockTimeMs, lease.fencingToken !== undefined, next) &&
      lock.isWatched &&
      next.isWatched &&
      next.isAutoUnlocked &&
      !this.#lines.closing
    );
  }

  /** The release was not confirmed. Should it never have arrived, another one frees the key before its time. */
  releaseOnceMore(lease: Lease): void {
    const { store } = this.#lines;
    this.#lines.giveBack(() => store.release(this.key, lease.requestId));
  }

  /** The stay is over, as far as we know. */
  end(lease: Lease, how: "given back" | "left to expire" = "given back"): void {
    lease.end(how);
    this.#stays -= 1;
    this.#lines.renewals.stop(lease);
    if (this.holder === lease) this.holder = undefined;
    if (this.holder === undefined) this.first?.wake();
    this.prune();
  }
}
