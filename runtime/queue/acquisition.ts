import { AcquireCommand, type AcquireListener } from "../commands/acquire";
import { NoReplyError } from "../commands/in-flight";
import { renewOne } from "../commands/renew";
import { LockMisconfiguredError } from "../errors";
import { UNLIMITED } from "../limits";
import {
  CLAIM_TIME_MS,
  type ReleaseAndEnqueueReply,
  type NotReleased,
  type NotAcquired,
  type EnqueueRequest,
  type RenewReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
} from "../stores/port";
import { isHeldBy, isRevokedFrom } from "../stores/value";
import { Lease, ofReplicas } from "./lease";
import type { Trouble } from "./loss";
import type { Listening, QueueContext } from "./queue-context";
import type { Grant } from "./shared-lease";
import type { Waiter } from "./waiter";

/** How often the first in line looks again when it hears nothing: often enough to keep what the queue gives it. */
const BEAT_MS = CLAIM_TIME_MS * (2 / 3);

/** Who looks again by itself does so a little earlier, together with the others of its process: they go in one command. */
const BEATS_APART_MS = BEAT_MS / 10;

/** How soon to look again while the store does not answer in time. */
export const UNREACHABLE_PAUSE_MS = 100;

/** The shortest time that a command gets, even if less is left of the wait budget. */
export const LEAST_COMMAND_TIME_MS = 200;

/** How many commands without a reply are remembered: the key may hold the `requestId` of any of them. */
const MOST_UNANSWERED = 32;

/** Where those who wait in this process stand, as the one who speaks for them knows it. */
export interface WaiterQueue {
  readonly key: string;
  readonly first: Waiter | undefined;
  /** How many permits the first waiter of a shared lock asks for. */
  readonly wanted?: number | undefined;
  /** The lease as this line has it. */
  makeLease?(lease: Lease, first: Waiter): Lease;
  /** The first has the lease from now on, and is to be told: see {@link Waiter.onGranted}. */
  begin(lease: Lease, first: Waiter, grant: Grant): number | undefined;
  /** The first waiter got the lease. The waiters behind it may share it. */
  afterBegin?(): void;
}

/** A command that may take the key for us, and of which we do not know for sure that it did not. */
interface Sent {
  readonly request: AcquireRequest;
  readonly sentAt: number;
  readonly isInFlight: boolean;
}

/**
 * This process's application for a key: it asks for whoever is first in line, until the store has granted it or nobody
 * waits any more. Each of its commands has a `requestId` of its own.
 *
 * What makes it safe, whatever is lost, late, carried out twice or in another order: a belief begins in `#believe` and
 * nowhere else, counted from the sending of the very command that took the key (`#taken`), or of a renewal that was
 * sent because the key was seen to hold what a command of ours had written (`#confirm`). Nothing is given back but by a
 * acquisition that is closed (`#decline`), and a closed one never believes again; and what is renounced, which is not either.
 */
export class Acquisition implements AcquireListener<Waiter>, Listening {
  /** What the key held when the store was heard last. */
  heldBy: string | undefined;
  /** Why the store could not be asked at the last try, if it could not. */
  trouble: Trouble | undefined;
  readonly #shared: QueueContext;
  readonly #line: WaiterQueue;
  /** When the store said last that somebody else holds the key, if it did. */
  #heardAt: number | undefined;
  /** What may have taken the key, unknown to us: in flight, or without a reply. */
  #open: readonly Sent[] = NONE;
  #isConfirming = false;
  /** What was given back before anybody had believed in it, by its `requestId`. */
  #renounced: Set<string> | undefined;
  /** The holds, by `requestId`, of which a renewal has the store keep one permit, however many the command had got. */
  #reduced: Set<string> | undefined;
  /** The longest lock time for which a renewal may have prolonged what was found. */
  #confirmedForMs = 0;
  #place: string | undefined;
  #isListening = false;
  /** Whether it has, or may have, a place in the key's queue. */
  #isPlaced = false;
  /** Whether that place is so new that to ask would tell nothing. */
  #isJustPlaced = false;
  /** Whether a hint came since something was sent last. */
  #isHinted = false;
  #freeInMs: number | undefined;
  /** Of a shared lock, on the monotonic clock: whoever came by then came before all who stand behind its place. */
  #coversUntil = -Infinity;
  /** Whether it is over: granted, or given up. */
  #isClosed = false;
  /** What came of it. */
  #lease: Lease | undefined;

  constructor(shared: QueueContext, line: WaiterQueue) {
    this.#shared = shared;
    this.#line = line;
  }

  /** Whether the store has said that somebody else holds the key. */
  get hasHeard(): boolean {
    return this.#heardAt !== undefined;
  }

  /** Its place in the key's queue, which it has or may have. */
  get ticket(): string {
    return (this.#place ??= this.#shared.newRequestId());
  }

  /** How soon to look again, if nobody wakes the one who waits. */
  get lookAgainInMs(): number {
    if (this.trouble !== undefined) return UNREACHABLE_PAUSE_MS;
    const untilBeatMs = BEAT_MS - (Math.floor(this.#shared.clock.now()) % BEATS_APART_MS);
    return Math.min(this.#freeInMs ?? Infinity, untilBeatMs);
  }

  // ---- asking the store -------------------------------------------------------------------------------

  /** The first in line asks for the key. With nothing left to wait, no place in the queue is taken. */
  ask(first: Waiter): void {
    const isWorthless = this.#isJustPlaced && !this.#isHinted;
    this.#isJustPlaced = false;
    // The end of the renewal ends a try that has no time for another.
    if (this.#isConfirming && !first.isPatient) return;
    if (isWorthless || this.#isConfirming) return first.onTried();
    const now = this.#shared.clock.now();
    this.#send(first, this.#isPlaced || this.#open.length > 0 || this.#isLikelyInVain(first, now), now);
  }

  /** Then it asks for a place at once, which takes the key where it is free: to ask for less costs a command more. */
  #isLikelyInVain(first: Waiter, now: number): boolean {
    const mayWait = first.isPatient && now < first.budgetEndsAt;
    return mayWait && first.permits === 1 && this.#shared.contended.has(first.key, now);
  }

  /** A request for the first in line, to go with the end of a hold of ours. It counts as sent from now on. */
  requestFor(first: Waiter): EnqueueRequest {
    this.#listen();
    this.#isHinted = false;
    return { ...requestOf(first, this.#line.wanted), ticket: this.ticket };
  }

  #send(first: Waiter, isEnqueue: boolean, sentAt: number): void {
    const { store, inFlight, acquires: takes, enqueues: places } = this.#shared;
    const request = isEnqueue ? this.requestFor(first) : requestOf(first, this.#line.wanted);
    this.#isHinted = false;
    const attempt = new AcquireCommand(store, this, request, sentAt, first);
    this.sent(attempt);
    const mostMs = this.#mayTakeMs(first, sentAt);
    const isByItself = request.fencing || request.replicas !== undefined;
    if (isByItself) inFlight.send(attempt, mostMs);
    else (isEnqueue ? places : takes).send(attempt, mostMs);
  }

  /** It is on its way, and may take the key. */
  sent(sent: Sent): void {
    if (this.#open.length >= MOST_UNANSWERED) {
      // Of those that a server has not seen yet, the oldest takes the key; of those that were lost, none.
      const middle = this.#open[Math.floor(this.#open.length / 2)];
      if (middle?.isInFlight === false) this.#open = without(middle, this.#open);
    }
    this.#remember(sent);
  }

  /** Most acquisitions never have more than one. */
  #remember(sent: Sent): void {
    this.#open = this.#open.length === 0 ? [sent] : [...this.#open, sent];
  }

  #mayTakeMs(first: Waiter, now: number): number {
    return commandTimeFor(first, now, this.#shared.inFlight.usualTimeoutMs);
  }

  // ---- what the store says ----------------------------------------------------------------------------

  onReply(attempt: AcquireCommand<Waiter>, reply: AcquireReply): void {
    this.trouble = undefined;
    const goesOn = reply.acquired ? this.#taken(attempt, reply) : this.#notTaken(attempt, reply);
    if (!goesOn) attempt.asker.onTried();
  }

  onFailure(attempt: AcquireCommand<Waiter>, error: unknown): void {
    if (error instanceof LockMisconfiguredError) {
      this.#forget(attempt);
      attempt.asker.onRefused(error);
    } else {
      this.#unanswered(attempt, error, attempt.timeoutMs < this.#shared.inFlight.usualTimeoutMs);
    }
    attempt.asker.onTried();
  }

  onLateReply(attempt: AcquireCommand<Waiter>, reply: AcquireReply): void {
    if (reply.acquired) return void this.#taken(attempt, reply);
    this.#foundLate(attempt, reply.holder);
    if (attempt.isEnqueue) this.#placed();
  }

  /** What came of a request that went with the end of a hold of ours. */
  onNextReply(sent: Sent, reply: ReleaseAndEnqueueReply | NotReleased): void {
    this.trouble = undefined;
    if (!reply.released) {
      // The very command may have been carried out before, and its reply lost.
      if (isHeldBy(sent.request.requestId, reply.holder)) this.#confirm(sent);
      else this.#notFound(sent, reply.holder);
    } else if (reply.next === "enqueued") {
      this.#heardOfAnother();
      this.#forget(sent);
      this.#isJustPlaced = this.#open.length === 0;
      this.#placed();
    } else if (reply.next === undefined) {
      this.#forget(sent);
    } else {
      this.#taken(sent, reply.next);
    }
  }

  onNextFailure(sent: Sent, error: unknown): void {
    this.#unanswered(sent, error, false);
  }

  onLateNextReply(sent: Sent, reply: ReleaseAndEnqueueReply | NotReleased): void {
    if (reply.released && reply.next !== undefined && reply.next !== "enqueued") {
      return void this.#taken(sent, reply.next);
    }
    if (reply.released) this.#forget(sent);
    else this.#foundLate(sent, reply.holder);
    if (reply.released && reply.next === "enqueued") this.#placed();
  }

  #heardOfAnother(): void {
    const now = this.#shared.clock.now();
    this.#heardAt = now;
    this.#shared.contended.add(this.#line.key, now);
  }

  /** Returns whether the try goes on with another command. */
  #notTaken(attempt: AcquireCommand<Waiter>, { holder, freeInMs, isLast = false }: NotAcquired): boolean {
    const revoked = this.#open.find(({ request }) => isRevokedFrom(request.requestId, holder));
    if (revoked !== undefined) this.#renounce(revoked);
    this.heldBy = holder;
    const isOwn = isHeldBy(attempt.request.requestId, holder);
    if (!isOwn) this.#forget(attempt);
    this.#heardOfAnother();
    this.#freeInMs = freeInMs;
    if (attempt.isEnqueue) {
      if (isLast || !this.#isPlaced) this.#coversUntil = attempt.sentAt;
      this.#placed();
    }
    const found = this.#open.find(({ request }) => isHeldBy(request.requestId, holder));
    if (found !== undefined) return this.#confirm(found);
    // A key that is shared does not tell by whom: an earlier command, whose reply was lost, may have got a share.
    const isInDoubt = (sent: Sent): boolean => (sent.request.permits ?? 1) > 1 && !sent.isInFlight;
    const unanswered = this.#isClosed ? undefined : this.#open.find(isInDoubt);
    if (unanswered !== undefined) return this.#confirm(unanswered);
    if (attempt.isEnqueue || !this.#hasReasonToWait(attempt.asker)) return false;
    this.#send(attempt.asker, true, this.#shared.clock.now());
    return true;
  }

  #hasReasonToWait(waiter: Waiter): boolean {
    const { clock, isClosed } = this.#shared;
    return !this.#isClosed && !isClosed && this.#line.first === waiter && clock.now() < waiter.budgetEndsAt;
  }

  /** @param isCut whether the store had less than the usual time to answer */
  #unanswered(sent: Sent, error: unknown, isCut: boolean): void {
    // A last short look without a reply tells less than what was heard lately, or than why the one before had failed.
    const tellsLess =
      isCut && error instanceof NoReplyError && (this.#hasHeardLately || this.trouble !== undefined);
    if (!tellsLess) this.trouble = { error };
    if ("ticket" in sent.request) this.#isPlaced = true; // As far as we know.
    if (this.#isClosed) this.#decline(sent);
  }

  /** A look that is not cut short would have been answered since, or be known to have no answer. */
  get #hasHeardLately(): boolean {
    const { clock, inFlight } = this.#shared;
    return clock.now() - (this.#heardAt ?? -Infinity) < BEAT_MS + inFlight.usualTimeoutMs;
  }

  #forget(sent: Sent): void {
    this.#open = without(sent, this.#open);
    if (this.#isClosed) this.#leave();
  }

  // ---- the queue of the store -------------------------------------------------------------------------

  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#shared.listen(this);
  }

  #placed(): void {
    this.#isPlaced = true;
    if (this.#isClosed) this.#leave();
  }

  /** It should ask again: the key may be reserved for it. */
  onWakeUp(): void {
    this.#isHinted = true;
    this.#line.first?.wake();
  }

  /** The place is given up, once nothing is on its way any more that would take it anew. */
  #leave(): void {
    if (!this.#isPlaced || this.#open.some(({ isInFlight }) => isInFlight)) return;
    this.#isPlaced = false;
    this.#shared.releaseRetries.dequeue(this.#line.key, this.ticket);
  }

  // ---- what comes of it -------------------------------------------------------------------------------

  /** The store says that this very command took the key. Returns whether the try goes on with another command. */
  #taken(sent: Sent, reply: Acquired): boolean {
    if ("ticket" in sent.request) this.#isPlaced = false;
    const { first } = this.#line;
    // What was taken for somebody who is gone, or has been seen to be gone itself, has to be found once more.
    const isGood = first !== undefined && fits(sent.request, first) && this.#open.includes(sent);
    if (isGood && this.#believe(sent, first, sent.sentAt, reply, reply.mayComeAgain !== true)) return false;
    return this.#confirm(sent);
  }

  /**
   * The one place where a belief begins.
   *
   * @param sentAt when the command was sent whose reply says that the key holds the `requestId`, for the lock time of the first
   *   in line: the command that took it, or a renewal
   * @param granted the parts of its reply that count here
   * @returns false, and nothing has changed, where that is too long ago, or nobody may believe anything any more
   */
  #believe(
    sent: Sent,
    first: Waiter,
    sentAt: number,
    granted: Pick<Acquired, "count" | "somebodyWaits" | "fencingToken">,
    isOnlyGrant: boolean,
  ): boolean {
    if (this.#isClosed || this.#shared.isClosed) return false;
    const { key, requestId } = sent.request;
    const { fencingToken, somebodyWaits = false } = granted;
    const count = this.#reduced?.has(requestId) === true ? 1 : (granted.count ?? 1);
    const plain = new Lease(key, requestId, first.lockTimeMs, fencingToken, isOnlyGrant);
    const lease = this.#line.makeLease?.(plain, first) ?? plain;
    lease.replicas = first.replicas;
    this.#shared.renewals.mayLast(lease, this.#mayHoldForMs(sent));
    lease.prove(sentAt, first.lockTimeMs);
    const coversUntil = this.#coversUntil;
    const waitedMs = this.#line.begin(lease, first, { sentAt, count, somebodyWaits, coversUntil });
    if (waitedMs === undefined) return false;
    this.#open = without(sent, this.#open);
    this.#lease = lease;
    this.#close();
    // The key may hold these beside the one that is used.
    if (first.permits > 1) this.#giveBackOpen();
    first.onEntered(waitedMs);
    this.#line.afterBegin?.();
    return true;
  }

  /**
   * The key was seen to hold what a command of ours has written. That is worth nothing until a renewal says the same. Where
   * nobody waits any more, it is given back. Returns whether the try goes on with another command.
   */
  #confirm(found: Sent): boolean {
    const { first } = this.#line;
    if (first === undefined || this.#shared.isClosed) this.#close();
    const isOver = this.#isClosed || this.#isRenounced(found);
    if (isOver || first === undefined) return this.#decline(found);
    if (!this.#open.includes(found)) this.#remember(found);
    if (this.#isConfirming) return true;
    this.#isConfirming = true;
    const { clock, store, inFlight } = this.#shared;
    const { key, requestId } = found.request;
    const { lockTimeMs, fencing } = first;
    const { permits } = first;
    // Of the permits that it may have got, it keeps the one that is needed, whichever reply comes first.
    if (permits > 1 && permits !== UNLIMITED) (this.#reduced ??= new Set()).add(requestId);
    const sharing = permits > 1 ? { permits, ...(permits === UNLIMITED ? {} : { count: 1 }) } : {};
    const request = { key, requestId, lockTimeMs, fencing, ...sharing, ...ofReplicas(first) };
    this.#confirmedForMs = Math.max(this.#confirmedForMs, lockTimeMs);
    const sentAt = clock.now();
    const mostMs = this.#mayTakeMs(first, sentAt);
    void renewOne(store, inFlight, request, mostMs).then((reply) => {
      const fault = inFlight.handle(() => this.#confirmed(found, request, sentAt, reply));
      if (fault !== undefined) this.#line.first?.onTried();
    });
    return true;
  }

  #confirmed(found: Sent, request: AcquireRequest, sentAt: number, reply: RenewReply): void {
    this.#isConfirming = false;
    const { first } = this.#line;
    if (this.#isClosed || first === undefined) return; // Then it was given back, too.
    this.trouble = undefined;
    if (reply instanceof Error) this.trouble = { error: reply };
    else if (this.#isRenounced(found))
      first.wake(); // Since the renewal was sent.
    else if (!reply.renewed) this.#gone(found, first, reply.holder);
    else if (!fits(request, first))
      return void this.#confirm(found); // Somebody else is first by now.
    else if (!this.#believe(found, first, sentAt, reply, false)) this.trouble = TOOK_TOO_LONG;
    const { error } = this.trouble ?? {};
    if (error instanceof LockMisconfiguredError) first.onRefused(error);
    first.onTried();
  }

  /** The key held it, unbelieved, and holds it no more. */
  #gone(found: Sent, first: Waiter, holder: string | undefined): void {
    this.#notFound(found, holder);
    first.wake();
  }

  /** What the key holds is not what the command wrote, but may be what is left of that. */
  #notFound(sent: Sent, holder: string | undefined): void {
    if (isRevokedFrom(sent.request.requestId, holder)) this.#renounce(sent);
    else this.#forget(sent);
  }

  #foundLate(sent: Sent, holder: string | undefined): void {
    if (!isHeldBy(sent.request.requestId, holder)) this.#notFound(sent, holder);
    else if (this.#isClosed) this.#decline(sent);
  }

  /** Nobody waits any more: what the store may have for us is given back. */
  abandon(): void {
    this.#close();
    this.#giveBackOpen();
  }

  /** What is in flight is given back when its reply comes. */
  #giveBackOpen(): void {
    const { acquires: takes, enqueues: places } = this.#shared;
    for (const sent of this.#open) {
      if (sent instanceof AcquireCommand && (takes.cancel(sent) || places.cancel(sent))) this.#forget(sent);
      else if (!sent.isInFlight) this.#decline(sent);
    }
  }

  #close(): void {
    this.#isClosed = true;
    if (this.#isListening) this.#shared.listenNoMore(this);
    this.#leave();
  }

  /**
   * What a closed acquisition still gets is given back, except what we have, or want to be left alone. Returns that no try
   * goes on.
   */
  #decline(sent: Sent): false {
    this.#forget(sent);
    const { key, requestId, permits = 1 } = sent.request;
    const { clock, releaseRetries } = this.#shared;
    const lease = this.#lease?.requestId === requestId ? this.#lease : undefined;
    if (lease?.isGivenBack === false) return false;
    // What ended our hold may be lost, and be sent again. This must not free a key that the end is to keep closed.
    const request =
      lease?.releaseRequest(clock.now()) ?? (permits > 1 ? { key, requestId, permits } : { key, requestId });
    releaseRetries.release(request, this.#mayHoldForMs(sent), () => this.#line.first?.wake());
    return false;
  }

  /**
   * What was revoked before anybody believed in it keeps out whoever comes, and nobody works under it: it is given back. The
   * very command may be carried out once more, and so may its end: it is never believed from now on.
   */
  #renounce(sent: Sent): void {
    (this.#renounced ??= new Set()).add(sent.request.requestId);
    this.#decline(sent);
  }

  #isRenounced({ request }: Sent): boolean {
    return this.#renounced?.has(request.requestId) === true;
  }

  #mayHoldForMs({ request }: Sent): number {
    return Math.max(request.lockTimeMs, this.#confirmedForMs);
  }
}

const NONE: readonly Sent[] = [];

function without(one: Sent, all: readonly Sent[]): readonly Sent[] {
  if (!all.includes(one)) return all;
  return all.length === 1 ? NONE : all.filter((other) => other !== one);
}

const TOOK_TOO_LONG: Trouble = { error: new NoReplyError("the reply took the whole lock time") };

/** What a waiter asks for, with a `requestId` that no other command has. */
function requestOf(waiter: Waiter, count: number | undefined): AcquireRequest {
  const { key, lockTimeMs, fencing, permits, replicas } = waiter;
  // `permits` is there in any case. Otherwise a store might read it from a polluted `Object.prototype`.
  const request = { key, requestId: waiter.nextRequestId(), lockTimeMs, fencing, permits };
  if (permits === 1 && replicas === 0) return request; // As nearly all are.
  const sharing = permits > 1 && count !== undefined ? { count } : {};
  return { ...request, ...ofReplicas(waiter), ...sharing };
}

/**
 * How long the waiter may wait for one command. A waiter without a budget still waits for one reply, as long as commands
 * may usually take.
 */
export function commandTimeFor(waiter: Waiter, now: number, usualTimeoutMs: number): number {
  const patienceMs = waiter.isPatient ? 0 : usualTimeoutMs;
  const until = Math.min(waiter.budgetEndsAt + patienceMs, waiter.answerBy);
  return Math.max(until - now, LEAST_COMMAND_TIME_MS);
}

/** Whether a hold that was asked for like this is what the waiter would ask for. */
export function fits(
  { lockTimeMs, fencing, replicas = 0 }: Pick<AcquireRequest, "lockTimeMs" | "fencing" | "replicas">,
  waiter: Waiter,
): boolean {
  return lockTimeMs === waiter.lockTimeMs && (fencing || !waiter.fencing) && replicas >= waiter.replicas;
}
