import { bounded, NoReplyError } from "./bounded";
import type { Clock } from "./clock";
import { LockMisconfiguredError } from "./errors";
import { Lease } from "./lease";
import type { Lock } from "./lock";
import { Renewals } from "./renewals";
import {
  CLAIM_TIME_MS,
  FENCING_STRIDE,
  type AcquireReply,
  type AcquireRequest,
  type Granted,
  type Released,
  type ReleaseReply,
  type Store,
} from "./store";

/** How often the first in line looks again when it hears nothing: often enough to keep what the queue gives it. */
const BEAT_MS = CLAIM_TIME_MS * (2 / 3);

/** How soon to look again while the store does not answer in time. */
const UNREACHABLE_PAUSE_MS = 100;

/** What one command may take even when the wait budget has less left. */
const LEAST_COMMAND_TIME_MS = 200;

/** A lease is handed on inside the process so often and for so long, before other processes have their turn. */
const MOST_HAND_ONS = 15;
const HAND_ON_FOR_MS = 100;

/** What a store failed with. That it failed is told apart from the error, which may be `undefined`. */
export interface Trouble {
  readonly error: unknown;
}

/** This process's application for a key, under the `requestId` of the lock that opened it. */
interface Ticket {
  readonly requestId: string;
  /** Whether it has, or may have, a place in the store's queue. */
  isQueued: boolean;
  /** When the first command was sent that may have been, or may yet be, carried out without our knowing. */
  unansweredSince: number | undefined;
  freeInMs: number | undefined;
  trouble: Trouble | undefined;
  /** What came of it. */
  lease: Lease | undefined;
}

/**
 * Who in this process waits for keys and who holds them. In each line: first come, first served. Only the
 * first in line asks the store, for all behind it, so a crowd costs no more than one caller does. A release
 * hands the lock on: to the next in line, and now and then, so that no process starves, through the store's
 * queue to another process.
 */
export class Lines {
  readonly clock: Clock;
  readonly store: Store;
  readonly renewals: Renewals;
  readonly commandTimeoutMs: number;
  /** Releases under way that no caller waits for. */
  readonly givingBack = new Set<Promise<void>>();
  /** Set by `shutdown()`: no lock is given any more. */
  closing = false;
  /** Called when nobody holds a lock or stands in a line any more. */
  onIdle: (() => void) | undefined;
  readonly #lines = new Map<string, Line>();
  readonly #queued = new Map<string, Line>();
  readonly #deafen: () => void;

  constructor(clock: Clock, store: Store, commandTimeoutMs: number) {
    this.clock = clock;
    this.store = store;
    this.commandTimeoutMs = commandTimeoutMs;
    this.renewals = new Renewals(clock, store, commandTimeoutMs);
    this.#deafen = store.listen((requestId) => this.#hint(requestId));
  }

  /** Puts the lock at the end of the line for its key. */
  join(lock: Lock): Line {
    let line = this.#lines.get(lock.key);
    if (line === undefined) this.#lines.set(lock.key, (line = new Line(this, lock.key)));
    line.join(lock);
    return line;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  *holders(): Iterable<Lock> {
    for (const { holder } of this.#lines.values()) if (holder?.holder !== undefined) yield holder.holder;
  }

  /** No lock is given any more, and those who wait wake up to be told so. */
  close(): void {
    this.closing = true;
    this.#deafen();
    for (const line of this.#lines.values()) for (const lock of line.waiting()) lock.wake();
  }

  remove(line: Line): void {
    if (this.#lines.get(line.key) === line) this.#lines.delete(line.key);
    if (this.isEmpty) this.onIdle?.();
  }

  listenFor(requestId: string, line: Line | undefined): void {
    if (line === undefined) this.#queued.delete(requestId);
    else this.#queued.set(requestId, line);
  }

  /** Sends what nobody waits for: when it fails, the key expires by itself. */
  giveBack(send: () => Promise<unknown>): void {
    const attempt = async (): Promise<void> => void (await send());
    const done = attempt()
      .catch(() => {})
      .finally(() => this.givingBack.delete(done));
    this.givingBack.add(done);
  }

  #hint(requestId: string | undefined): void {
    if (requestId !== undefined) this.#queued.get(requestId)?.first?.wake();
    else for (const line of this.#queued.values()) line.first?.wake();
  }
}

/** The line for one key. */
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
    this.#remove(lock);
    if (this.first === undefined) this.#abandon();
    else if (wasFirst) this.first.wake();
    this.#prune();
  }

  /** How soon the lock should look again, if nobody wakes it. */
  lookAgainInMs(lock: Lock): number {
    if (this.first !== lock) return Infinity;
    const heldHereForMs = this.#heldHereForMs;
    if (heldHereForMs > 0) return heldHereForMs;
    const { trouble, freeInMs = Infinity } = this.#ticket ?? {};
    return trouble === undefined ? Math.min(freeInMs, BEAT_MS) : UNREACHABLE_PAUSE_MS;
  }

  /** Why the store could not be asked at the last try, if it could not. */
  get trouble(): Trouble | undefined {
    return this.#ticket?.trouble;
  }

  #remove(lock: Lock): void {
    if (this.first !== lock) {
      this.#others?.delete(lock);
      return;
    }
    this.first = this.#others?.values().next().value;
    if (this.first !== undefined) this.#others?.delete(this.first);
  }

  get #heldHereForMs(): number {
    return this.holder?.remaining(this.#lines.clock.now()) ?? 0;
  }

  #prune(): void {
    if (this.first === undefined && this.#stays === 0) this.#lines.remove(this);
  }

  // ---- asking the store -------------------------------------------------------------------------------

  /**
   * The first in line asks for the key; for anybody else, or while the key is held here, nothing is sent.
   * When it is granted, the first in line holds it.
   *
   * @param budgetEndsAt with nothing left to wait, no place in the queue is taken
   * @throws {LockMisconfiguredError} when the store refuses us for good
   */
  async ask(lock: Lock, budgetEndsAt: number): Promise<void> {
    if (this.first !== lock || this.#heldHereForMs > 0) return;
    const ticket = (this.#ticket ??= newTicket(lock.requestId));
    const request = requestOf(lock, ticket);
    const { store, clock } = this.#lines;
    if (!ticket.isQueued && ticket.unansweredSince === undefined) {
      await this.#send(ticket, request, budgetEndsAt, () => store.acquire(request));
      if (!this.#isRefused(ticket, lock) || clock.now() >= budgetEndsAt) return;
    }
    this.#expectHints(ticket);
    await this.#send(ticket, request, budgetEndsAt, () => store.wait(request));
  }

  /** Whether the lock has reason to ask on with the ticket. */
  #isRefused(ticket: Ticket, lock: Lock): boolean {
    return (
      this.#ticket === ticket && ticket.trouble === undefined && this.first === lock && !this.#lines.closing
    );
  }

  async #send(
    ticket: Ticket,
    request: AcquireRequest,
    budgetEndsAt: number,
    command: () => Promise<AcquireReply>,
  ): Promise<void> {
    const { clock, commandTimeoutMs } = this.#lines;
    const sentAt = clock.now();
    const timeoutMs = Math.min(commandTimeoutMs, Math.max(budgetEndsAt - sentAt, LEAST_COMMAND_TIME_MS));
    const wasUnanswered = ticket.unansweredSince !== undefined;
    ticket.unansweredSince ??= sentAt;
    try {
      const reply = await bounded(clock, timeoutMs, command, (late) => {
        if (late.granted) this.#take(ticket, request, late, sentAt);
        else if (this.#ticket !== ticket) this.#decline(ticket);
      });
      ticket.trouble = undefined;
      if (reply.granted) {
        this.#take(ticket, request, reply, sentAt);
      } else {
        ticket.freeInMs = reply.freeInMs;
        // An earlier try may still be on its way: what it is granted from here on, it was not before this one.
        ticket.unansweredSince = wasUnanswered ? sentAt : undefined;
      }
    } catch (error) {
      if (error instanceof LockMisconfiguredError) throw error;
      ticket.trouble = { error };
    }
  }

  #expectHints(ticket: Ticket): void {
    if (ticket.isQueued) return;
    ticket.isQueued = true;
    this.#lines.listenFor(ticket.requestId, this);
  }

  /** The store granted the ticket: the first in line has it. A grant that comes too late is given back. */
  #take(ticket: Ticket, request: AcquireRequest, { fresh, fencingToken }: Granted, sentAt: number): void {
    const { first } = this;
    if (this.#ticket !== ticket || first === undefined || this.#lines.closing) return this.#decline(ticket);
    if (!fits(request.lockTimeMs, request.fencing, first)) {
      // It was asked for somebody who is gone. Who is first now claims it, with a lock time of its own.
      this.#expectHints(ticket);
      first.wake();
      return;
    }
    const countsFrom = fresh ? sentAt : (ticket.unansweredSince ?? sentAt);
    const lease = new Lease(request, countsFrom, fencingToken);
    if (lease.remaining(this.#lines.clock.now()) === 0) {
      // Over before we knew. A release could overtake the next try's grant, so it is left to expire.
      ticket.unansweredSince ??= sentAt;
      ticket.trouble = { error: new NoReplyError("the reply took the whole lock time") };
      return;
    }
    ticket.lease = lease;
    this.#stays += 1;
    this.#closeTicket();
    if (first.isWatched) this.#lines.renewals.keep(lease);
    this.#give(lease, first);
  }

  #give(lease: Lease, lock: Lock): void {
    this.#remove(lock);
    this.holder = lease;
    lease.holder = lock;
    const { fencingToken, handOns } = lease;
    lock.hold(lease, lock.wantsFencing && fencingToken !== undefined ? fencingToken + handOns : undefined);
  }

  /** Nobody waits any more: what the store may have for us is given back. */
  #abandon(): void {
    const ticket = this.#ticket;
    if (ticket === undefined) return;
    this.#closeTicket();
    if (ticket.isQueued || ticket.unansweredSince !== undefined) this.#leave(ticket);
  }

  #closeTicket(): void {
    if (this.#ticket !== undefined) this.#lines.listenFor(this.#ticket.requestId, undefined);
    this.#ticket = undefined;
  }

  /** What a closed ticket still gets is given back, except what we have, or want to be left alone. */
  #decline(ticket: Ticket): void {
    const { lease } = ticket;
    if (lease === undefined || (lease.hasEnded && !lease.isLeftToExpire)) this.#leave(ticket);
  }

  #leave({ requestId }: Ticket): void {
    this.#lines.giveBack(() => this.#lines.store.leave(this.key, requestId));
  }

  // ---- giving the lock on -----------------------------------------------------------------------------

  /** The holder leaves without a release: the key expires by itself. */
  leaveToExpire(lease: Lease): void {
    lease.isLeftToExpire = true;
    this.#end(lease);
  }

  /** The holder's work is done: the next in line has the lock, or the store's queue, or nobody. */
  async release(lease: Lease, lock: Lock): Promise<ReleaseReply> {
    const next = this.holder === lease ? this.first : undefined;
    if (next !== undefined && this.#mayHandOn(lease, lock, next)) {
      lease.handOns += 1;
      lock.released(); // Told before the next one tells that it holds the lock.
      this.#give(lease, next);
      return "released";
    }
    this.#lines.renewals.stop(lease);
    try {
      return await (next === undefined || this.#lines.closing
        ? this.#releaseAlone(lease, lock)
        : this.#releaseTo(next, lease, lock));
    } finally {
      this.#end(lease);
    }
  }

  /** Inside the process a lease goes only to one who would have been granted the same. */
  #mayHandOn(lease: Lease, lock: Lock, next: Lock): boolean {
    const now = this.#lines.clock.now();
    return (
      lease.handOns < Math.min(MOST_HAND_ONS, FENCING_STRIDE - 1) &&
      now - lease.since < HAND_ON_FOR_MS &&
      lease.remaining(now) > lease.lockTimeMs / 2 &&
      fits(lease.lockTimeMs, lease.fencingToken !== undefined, next) &&
      lock.isWatched &&
      next.isWatched &&
      next.isAutoUnlocked &&
      !this.#lines.closing
    );
  }

  async #releaseAlone(lease: Lease, lock: Lock): Promise<ReleaseReply> {
    const { clock, store, commandTimeoutMs } = this.#lines;
    const send = (): Promise<Released> => store.release(this.key, lease.requestId);
    const { outcome } = await bounded(clock, commandTimeoutMs, send);
    if (outcome === "released") lock.released();
    return outcome;
  }

  async #releaseTo(next: Lock, lease: Lease, lock: Lock): Promise<ReleaseReply> {
    const { clock, store, commandTimeoutMs } = this.#lines;
    const ticket = (this.#ticket ??= newTicket(next.requestId));
    const request = requestOf(next, ticket);
    this.#expectHints(ticket);
    const sentAt = clock.now();
    const take = ({ handedOn }: Released): void => {
      if (handedOn !== undefined) this.#take(ticket, request, handedOn, sentAt);
    };
    try {
      const released = await bounded(
        clock,
        commandTimeoutMs,
        () => store.release(this.key, lease.requestId, request),
        take,
      );
      if (released.outcome === "released") lock.released();
      take(released);
      return released.outcome;
    } catch (error) {
      ticket.unansweredSince ??= sentAt;
      ticket.trouble = { error };
      throw error;
    }
  }

  #end(lease: Lease): void {
    lease.hasEnded = true;
    this.#stays -= 1;
    this.#lines.renewals.stop(lease);
    if (this.holder === lease) this.holder = undefined;
    if (this.holder === undefined) this.first?.wake();
    this.#prune();
  }
}

function newTicket(requestId: string): Ticket {
  return {
    requestId,
    isQueued: false,
    unansweredSince: undefined,
    freeInMs: undefined,
    trouble: undefined,
    lease: undefined,
  };
}

function requestOf({ key, lockTimeMs, wantsFencing }: Lock, { requestId }: Ticket): AcquireRequest {
  return { key, requestId, lockTimeMs, fencing: wantsFencing };
}

/** Whether what was granted is what the lock would have asked for. */
function fits(lockTimeMs: number, hasFencing: boolean, lock: Lock): boolean {
  return lockTimeMs === lock.lockTimeMs && (hasFencing || !lock.wantsFencing);
}
