import { NEVER_DUE, NoReplyError, type Command } from "./commands";
import { LockMisconfiguredError } from "./errors";
import { Lease } from "./lease";
import type { Line } from "./line";
import type { Lines } from "./lines";
import type { Lock } from "./lock";
import { CLAIM_TIME_MS, type AcquireReply, type AcquireRequest, type Granted } from "./store";

/** How often the first in line looks again when it hears nothing: often enough to keep what the queue gives it. */
const BEAT_MS = CLAIM_TIME_MS * (2 / 3);

/** How soon to look again while the store does not answer in time. */
const UNREACHABLE_PAUSE_MS = 100;

/** What one command may take even when the wait budget has less left. */
const LEAST_COMMAND_TIME_MS = 200;

/** What a store failed with. That it failed is told apart from the error, which may be `undefined`. */
export interface Trouble {
  readonly error: unknown;
}

/** A request that was sent with a ticket. */
export interface Sent {
  /** `acquire` leaves a place in the queue where it is, which may bring the key once more. */
  readonly kind: "acquire" | "wait";
  readonly request: AcquireRequest;
  readonly sentAt: number;
  /** When the first of those was sent that had not been answered when this one was: this one, maybe. */
  readonly unansweredSince: number;
}

/**
 * This process's application for a key, under the `requestId` of the lock that opened it. Whoever is first in
 * line asks with it, until the store grants it or nobody waits any more.
 */
export class Ticket {
  readonly requestId: string;
  /** Why the store could not be asked at the last try, if it could not. */
  trouble: Trouble | undefined;
  readonly #lines: Lines;
  readonly #line: Line;
  /** Whether it has, or may have, a place in the store's queue. */
  #isQueued = false;
  /** Whether a hint came since something was sent last. */
  #isHinted = false;
  /** Whether its place is so new that to ask would tell nothing. */
  #isPlaced = false;
  /** When the first command was sent that may have been, or may yet be, carried out without our knowing. */
  #unansweredSince: number | undefined;
  #freeInMs: number | undefined;
  /** What was sent last, and the shortest lock time that was asked for: a later request may shorten what an earlier had. */
  #latest: Sent | undefined;
  #leastLockTimeMs = Infinity;
  #isClosed = false;
  /** Tries without a reply so far: each may yet be carried out. */
  #unanswered = 0;
  /** What came of it. */
  #lease: Lease | undefined;

  /** @param trouble until the store has said something */
  constructor(lines: Lines, line: Line, requestId: string, trouble: Trouble | undefined) {
    this.trouble = trouble;
    this.#lines = lines;
    this.#line = line;
    this.requestId = requestId;
  }

  /** How soon to look again, if nobody wakes the one who waits. */
  get lookAgainInMs(): number {
    return this.trouble === undefined ? Math.min(this.#freeInMs ?? Infinity, BEAT_MS) : UNREACHABLE_PAUSE_MS;
  }

  /** Takes note of what is sent. */
  sends(sent: Sent): void {
    this.#isHinted = false;
    this.#latest = sent;
    this.#leastLockTimeMs = Math.min(this.#leastLockTimeMs, sent.request.lockTimeMs);
  }

  requestFor(lock: Lock): AcquireRequest {
    const { requestId } = this;
    return lock.requestId === requestId
      ? lock
      : { key: lock.key, requestId, lockTimeMs: lock.lockTimeMs, fencing: lock.fencing };
  }

  // ---- asking the store -------------------------------------------------------------------------------

  /**
   * The lock, which is the first in line, asks for the key. With nothing left to wait, no place in the queue is
   * taken.
   */
  ask(lock: Lock): void {
    const isPlaced = this.#isPlaced && !this.#isHinted;
    this.#isPlaced = false;
    if (isPlaced) lock.tried();
    else if (this.#isQueued || this.#unansweredSince !== undefined) this.#send("wait", lock);
    else this.#send("acquire", lock);
  }

  #send(kind: Try["kind"], lock: Lock): void {
    if (kind === "wait") this.expectHints();
    const { clock, commands, acquires, store } = this.#lines;
    const sentAt = clock.now();
    this.#unanswered += 1;
    this.#unansweredSince ??= sentAt;
    const attempt = new Try(this, store, kind, lock, sentAt, this.#unansweredSince);
    this.sends(attempt);
    const mostMs = Math.max(lock.budgetEndsAt - sentAt, LEAST_COMMAND_TIME_MS);
    if (kind === "acquire" && !lock.fencing) acquires.send(attempt, sentAt, mostMs);
    else commands.send(attempt, sentAt, mostMs);
  }

  heard(attempt: Try, reply: AcquireReply): void {
    const { kind, lock, sentAt, unansweredSince } = attempt;
    this.trouble = undefined;
    this.#unanswered -= 1;
    if (reply.granted) {
      this.take(attempt, reply);
    } else {
      this.#freeInMs = reply.freeInMs;
      // An earlier try may still be on its way: what it is granted from here on, it was not before this one.
      this.#unansweredSince = unansweredSince < sentAt ? sentAt : undefined;
      if (kind === "acquire" && this.#hasReasonToWait(lock)) return this.#send("wait", lock);
    }
    lock.tried();
  }

  failed({ lock }: Try, error: unknown): void {
    if (error instanceof LockMisconfiguredError) return lock.refused(error);
    this.trouble = { error };
    lock.tried();
  }

  heardLate(attempt: Try, reply: AcquireReply): void {
    this.#unanswered -= 1;
    if (reply.granted) this.take(attempt, reply);
    else if (this.#isClosed) this.#decline();
  }

  #hasReasonToWait(lock: Lock): boolean {
    const { closing, clock } = this.#lines;
    return !this.#isClosed && this.#line.first === lock && !closing && clock.now() < lock.budgetEndsAt;
  }

  /** From now on it may have a place in the queue. */
  expectHints(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.#lines.listenFor(this);
  }

  /** A release has just given it a place in the queue. */
  placed(): void {
    this.#isPlaced = this.#unansweredSince === undefined;
  }

  /** It should ask again: the store may have given it the key. */
  hint(): void {
    this.#isHinted = true;
    this.#line.first?.wake();
  }

  // ---- what comes of it -------------------------------------------------------------------------------

  /** The store granted it: the first in line has it. A grant that comes too late is given back. */
  take(sent: Sent, { fresh, fencingToken }: Granted): void {
    const { request, sentAt, unansweredSince, kind } = sent;
    const { first } = this.#line;
    if (this.#isClosed || first === undefined || this.#lines.closing) return this.#decline();
    const isOutdone = sent !== this.#latest && request.lockTimeMs > this.#leastLockTimeMs;
    if (isOutdone || !fits(request.lockTimeMs, request.fencing, first)) {
      // It was asked for somebody who is gone. Who is first now claims it, with a lock time of its own.
      this.expectHints();
      first.wake();
      return;
    }
    const countsFrom = fresh ? sentAt : unansweredSince;
    const isOnlyGrant = this.#unanswered === 0 && (kind === "wait" || !this.#isQueued);
    const lease = new Lease(this.#line, request, countsFrom, fencingToken, isOnlyGrant);
    const now = this.#lines.clock.now();
    if (lease.remaining(now) === 0) {
      // Over before we knew. A release could overtake the next try's grant, so it is left to expire.
      this.outcomeUnknown(sentAt, new NoReplyError("the reply took the whole lock time"));
      return;
    }
    this.#lease = lease;
    this.#close();
    this.#line.begin(lease, first, now);
  }

  /** A command that was sent then may have granted it. */
  outcomeUnknown(sentAt: number, error: unknown): void {
    this.#unansweredSince ??= sentAt;
    this.trouble = { error };
  }

  /** Nobody waits any more: what the store may have for us is given back. */
  abandon(): void {
    this.#close();
    if (this.#isQueued || this.#unansweredSince !== undefined) this.#leave();
  }

  #close(): void {
    this.#isClosed = true;
    if (this.#isQueued) this.#lines.listenNoMoreFor(this);
  }

  /** What a closed ticket still gets is given back, except what we have, or want to be left alone. */
  #decline(): void {
    const lease = this.#lease;
    if (lease === undefined || lease.isGivenBack) this.#leave();
  }

  #leave(): void {
    const { store } = this.#lines;
    this.#lines.giveBack(() => store.leave(this.#line.key, this.requestId));
  }
}

/** One command of a ticket, on its way. */
export class Try implements Command<AcquireReply>, Sent {
  withinMs = 0;
  dueAt = NEVER_DUE;
  readonly kind: "acquire" | "wait";
  readonly lock: Lock;
  readonly request: AcquireRequest;
  readonly sentAt: number;
  readonly unansweredSince: number;
  readonly #ticket: Ticket;
  readonly #store: Lines["store"];

  constructor(
    ticket: Ticket,
    store: Lines["store"],
    kind: Try["kind"],
    lock: Lock,
    sentAt: number,
    unansweredSince: number,
  ) {
    this.#ticket = ticket;
    this.#store = store;
    this.kind = kind;
    this.lock = lock;
    this.request = ticket.requestFor(lock);
    this.sentAt = sentAt;
    this.unansweredSince = unansweredSince;
  }

  send(): Promise<AcquireReply> {
    return this.kind === "acquire" ? this.#store.acquire(this.request) : this.#store.wait(this.request);
  }

  heard(reply: AcquireReply): void {
    this.#ticket.heard(this, reply);
  }

  failed(error: unknown): void {
    this.#ticket.failed(this, error);
  }

  heardLate(reply: AcquireReply): void {
    this.#ticket.heardLate(this, reply);
  }
}

/** Whether what was granted is what the lock would have asked for. */
export function fits(lockTimeMs: number, hasFencing: boolean, lock: Lock): boolean {
  return lockTimeMs === lock.lockTimeMs && (hasFencing || !lock.fencing);
}
