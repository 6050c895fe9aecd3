import { AcquireCommand, type AcquireListener } from "../commands/acquire";
import { NoReplyError } from "../commands/in-flight";
import { renewOne } from "../commands/renew";
import { LockMisconfiguredError } from "../base/errors";
import { UNLIMITED } from "../base/limits";
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
import { acquireTimeoutMs, UNREACHABLE_PAUSE_MS } from "./command-times";
import { Lease, ofReplicas, type Grant } from "./lease";
import type { Trouble } from "./loss";
import type { QueueContext } from "./queue-context";
import { Ticket } from "./ticket";
import type { Waiter } from "./waiter";

/** How often the first waiter asks again if no wake-up arrives. It is often enough to claim a key that is reserved for it. */
const POLL_INTERVAL_MS = CLAIM_TIME_MS * (2 / 3);

/** Waiters ask again at multiples of this time, so that the waiters of one process share a command. */
const POLL_ALIGNMENT_MS = POLL_INTERVAL_MS / 10;

/** The same for a store without a queue, which sends no wake-ups. The interval varies, so that processes take turns at being first. */
const POLL_INTERVAL_WITHOUT_QUEUE_MS = { from: 50, to: 150 };

/** How many commands without a reply are remembered. The key may hold the `requestId` of any of them. */
const MOST_UNANSWERED = 32;

/** The waiters of this process for one key, as their {@link Acquisition} sees them. */
export interface WaiterQueue {
  readonly key: string;
  readonly first: Waiter | undefined;
  /** The number of permits that a request for the first waiter of a shared lock asks for. */
  readonly wanted?: number | undefined;
  /** Returns the lease in the form that this queue uses. Without this method, the queue uses it as it is. */
  makeLease?(lease: Lease, first: Waiter): Lease;
  /** Makes the first waiter the holder of the lease. Returns how long it waited, as {@link Waiter.onGranted} does. */
  begin(lease: Lease, first: Waiter, grant: Grant): number | undefined;
  /** Lets the waiters behind the first one share its lease. */
  afterBegin?(): void;
}

/** A command that may acquire the key, or may have acquired it without our knowledge. */
interface Sent {
  readonly request: AcquireRequest;
  readonly sentAt: number;
  readonly isInFlight: boolean;
}

/**
 * Acquires one key for the waiters of this process. It asks the store on behalf of the first waiter, until the store grants the key or no
 * waiters are left. Each of its commands has its own `requestId`.
 *
 * It is safe even if commands are lost, late, reordered, or run twice, for two reasons (see docs/architecture.md):
 *
 * - A lease begins only in `#believe`. It counts from the time when the command that acquired the key was sent (`#taken`). If the key was
 *   found to hold what one of our commands wrote, the lease counts from the time when a renewal was sent (`#confirm`).
 * - An acquisition releases a hold only if it is closed, or if it has renounced the hold (`#decline`). A closed acquisition never begins a
 *   lease, and a renounced hold never becomes one.
 */
export class Acquisition implements AcquireListener<Waiter> {
  /** The value of the key in the last refusal. */
  heldBy: string | undefined;
  /** Why the last try failed, if the store did not reply. */
  trouble: Trouble | undefined;
  readonly #context: QueueContext;
  readonly #queue: WaiterQueue;
  /** On the monotonic clock: when the store last replied that somebody else holds the key. */
  #holderFoundAt: number | undefined;
  /** The commands that may have acquired the key: they are in flight, or got no reply. */
  #unresolved: readonly Sent[] = NONE;
  /**
   * - `asking`: the next command asks for the key.
   * - `confirming`: a renewal is in flight for a hold that was found. No other command is sent meanwhile.
   * - `closed`: the key was granted, or no waiters are left. Holds that commands acquire from now on are released.
   */
  #state: "asking" | "confirming" | "closed" = "asking";
  /** The holds, by `requestId`, that were released before any caller relied on them. */
  #renounced: Set<string> | undefined;
  /** The holds, by `requestId`, that a renewal reduces to one permit, however many permits the command got. */
  #reduced: Set<string> | undefined;
  /** The longest lock time to which a renewal may have extended a hold that was found. */
  #confirmedForMs = 0;
  /** Set when it may have to wait behind callers of other processes. */
  #ticket: Ticket | undefined;
  #freeInMs: number | undefined;
  /** On the monotonic clock: the time until which callers of other processes may try first. */
  #pausesUntil = -Infinity;
  /** The lease that was granted. */
  #lease: Lease | undefined;

  constructor(context: QueueContext, queue: WaiterQueue) {
    this.#context = context;
    this.#queue = queue;
  }

  /** Whether the store has replied that somebody else holds the key. */
  get hasFoundHolder(): boolean {
    return this.#holderFoundAt !== undefined;
  }

  /** Its ticket in the store queue. It may not be enqueued yet. */
  get ticket(): Ticket {
    return (this.#ticket ??= new Ticket(this.#context, this.#queue));
  }

  get #isClosed(): boolean {
    return this.#state === "closed";
  }

  /** How soon to ask again if no wake-up arrives, in milliseconds. */
  get retryInMs(): number {
    if (this.trouble !== undefined) return UNREACHABLE_PAUSE_MS;
    const now = this.#context.clock.now();
    if (now < this.#pausesUntil) return this.#pausesUntil - now;
    const untilPollMs = this.#hasQueue
      ? POLL_INTERVAL_MS - (Math.floor(now) % POLL_ALIGNMENT_MS)
      : pollIntervalWithoutQueue();
    return Math.min(this.#freeInMs ?? Infinity, untilPollMs);
  }

  get #hasQueue(): boolean {
    return this.#context.store.queue !== undefined;
  }

  /** Lets callers of other processes try first, after this process released the key to a store without a queue. */
  pause(): void {
    this.#noteHolder();
    this.#pausesUntil = this.#context.clock.now() + pollIntervalWithoutQueue();
  }

  // ---- requests ---------------------------------------------------------------------------------------

  /** Asks for the key on behalf of the first waiter. A waiter that has no time left to wait takes no new ticket. */
  ask(first: Waiter): void {
    const mayHaveNews = this.#ticket?.mayHaveNews() ?? true;
    const isConfirming = this.#state === "confirming";
    // A waiter without a wait budget has no second try. The reply to the renewal ends this one.
    if (isConfirming && !first.isPatient) return;
    if (isConfirming || !mayHaveNews) return first.onTried();
    const now = this.#context.clock.now();
    // A waiter without a second try asks during the pause, or it would leave a free key.
    const hasMoreTries = first.isPatient && now < first.budgetEndsAt;
    if (hasMoreTries && now < this.#pausesUntil) return first.onTried();
    const isEnqueued = this.#ticket?.isEnqueued === true;
    const isEnqueue = isEnqueued || this.#unresolved.length > 0 || this.#isProbablyHeld(first, now);
    this.#send(first, isEnqueue && this.#hasQueue, now);
  }

  /**
   * Whether the key is probably held. Then the first command also enqueues the waiter, which saves a second command. It still acquires the
   * key if the key is free.
   */
  #isProbablyHeld(first: Waiter, now: number): boolean {
    const mayWait = first.isPatient && now < first.budgetEndsAt;
    return mayWait && first.permits === 1 && this.#context.contended.has(first.key, now);
  }

  /** Returns a request that acquires the key for the first waiter or enqueues its ticket. The caller must send it immediately. */
  requestFor(first: Waiter): EnqueueRequest {
    const { ticket } = this;
    ticket.listen();
    ticket.onSent();
    return { ...requestOf(first, this.#queue.wanted), ticket: ticket.id };
  }

  #send(first: Waiter, isEnqueue: boolean, sentAt: number): void {
    const { store, inFlight, acquires, enqueues } = this.#context;
    const request = isEnqueue ? this.requestFor(first) : requestOf(first, this.#queue.wanted);
    this.#ticket?.onSent();
    const attempt = new AcquireCommand(store, this, request, sentAt, first);
    this.sent(attempt);
    const timeoutMs = this.#timeoutMsFor(first, sentAt);
    const isSentAlone = request.fencing || request.replicas !== undefined;
    if (isSentAlone) inFlight.send(attempt, timeoutMs);
    else (isEnqueue ? enqueues : acquires).send(attempt, timeoutMs);
  }

  /** Notes a command that is on its way, and may acquire the key. */
  sent(sent: Sent): void {
    if (this.#unresolved.length >= MOST_UNANSWERED) {
      // If delayed commands arrive, the oldest one acquires the key. Lost commands never do. So a command from the middle is forgotten.
      const middle = this.#unresolved[Math.floor(this.#unresolved.length / 2)];
      if (middle?.isInFlight === false) this.#unresolved = without(middle, this.#unresolved);
    }
    this.#remember(sent);
  }

  /** Most acquisitions never have more than one such command. */
  #remember(sent: Sent): void {
    this.#unresolved = this.#unresolved.length === 0 ? [sent] : [...this.#unresolved, sent];
  }

  #timeoutMsFor(first: Waiter, now: number): number {
    return acquireTimeoutMs(first, now, this.#context.inFlight.usualTimeoutMs);
  }

  // ---- replies ----------------------------------------------------------------------------------------

  onReply(attempt: AcquireCommand<Waiter>, reply: AcquireReply): void {
    this.trouble = undefined;
    const isContinued = reply.acquired ? this.#taken(attempt, reply) : this.#notTaken(attempt, reply);
    if (!isContinued) attempt.caller.onTried();
  }

  onFailure(attempt: AcquireCommand<Waiter>, error: unknown): void {
    if (error instanceof LockMisconfiguredError) {
      this.#forget(attempt);
      attempt.caller.onRefused(error);
    } else {
      this.#unanswered(attempt, error, attempt.timeoutMs < this.#context.inFlight.usualTimeoutMs);
    }
    attempt.caller.onTried();
  }

  onLateReply(attempt: AcquireCommand<Waiter>, reply: AcquireReply): void {
    if (reply.acquired) return void this.#taken(attempt, reply);
    this.#foundLate(attempt, reply.holder);
    if (attempt.isEnqueue) this.#onEnqueued();
  }

  /** Handles the reply to a request that was sent together with the release of a hold of this process. */
  onNextReply(sent: Sent, reply: ReleaseAndEnqueueReply | NotReleased): void {
    this.trouble = undefined;
    if (!reply.released) {
      // The same command may have run before, and its first reply was lost.
      if (isHeldBy(sent.request.requestId, reply.holder)) this.#confirm(sent);
      else this.#notFound(sent, reply.holder);
    } else if (reply.next === "enqueued") {
      this.#noteHolder();
      this.#forget(sent);
      this.#ticket?.onEnqueuedWithRelease(this.#unresolved.length === 0);
      this.#onEnqueued();
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
    if (reply.released && reply.next === "enqueued") this.#onEnqueued();
  }

  #noteHolder(): void {
    const now = this.#context.clock.now();
    this.#holderFoundAt = now;
    this.#context.contended.add(this.#queue.key, now);
  }

  /** Returns whether the try continues with another command. */
  #notTaken(attempt: AcquireCommand<Waiter>, { holder, freeInMs, isLast = false }: NotAcquired): boolean {
    const revoked = this.#unresolved.find(({ request }) => isRevokedFrom(request.requestId, holder));
    if (revoked !== undefined) this.#renounce(revoked);
    this.heldBy = holder;
    const isOwn = isHeldBy(attempt.request.requestId, holder);
    if (!isOwn) this.#forget(attempt);
    this.#noteHolder();
    this.#freeInMs = freeInMs;
    if (attempt.isEnqueue) {
      const ticket = this.#ticket;
      if (ticket !== undefined && (isLast || !ticket.isEnqueued)) ticket.coversUntil = attempt.sentAt;
      this.#onEnqueued();
    }
    const found = this.#unresolved.find(({ request }) => isHeldBy(request.requestId, holder));
    if (found !== undefined) return this.#confirm(found);
    // The value of a shared key does not name its holders. An earlier command whose reply was lost may have acquired a hold.
    const isInDoubt = (sent: Sent): boolean => (sent.request.permits ?? 1) > 1 && !sent.isInFlight;
    const unanswered = this.#isClosed ? undefined : this.#unresolved.find(isInDoubt);
    if (unanswered !== undefined) return this.#confirm(unanswered);
    if (attempt.isEnqueue || !this.#hasQueue || !this.#hasReasonToWait(attempt.caller)) return false;
    this.#send(attempt.caller, true, this.#context.clock.now());
    return true;
  }

  #hasReasonToWait(waiter: Waiter): boolean {
    const { clock, isClosed } = this.#context;
    return !this.#isClosed && !isClosed && this.#queue.first === waiter && clock.now() < waiter.budgetEndsAt;
  }

  /** @param isShortened whether the store had less than the usual time to reply */
  #unanswered(sent: Sent, error: unknown, isShortened: boolean): void {
    // If the last command had a short timeout, its missing reply says less than a recent reply or an earlier error.
    const isUninformative =
      isShortened &&
      error instanceof NoReplyError &&
      (this.#hasFoundHolderLately || this.trouble !== undefined);
    if (!isUninformative) this.trouble = { error };
    this.#noteEnqueued(sent, true); // The command may have enqueued it.
    if (this.#isClosed) this.#decline(sent);
  }

  /**
   * Whether the last report of a holder is recent. After an older one, a poll with the usual timeout would have been answered or have
   * failed.
   */
  get #hasFoundHolderLately(): boolean {
    const { clock, inFlight } = this.#context;
    return clock.now() - (this.#holderFoundAt ?? -Infinity) < POLL_INTERVAL_MS + inFlight.usualTimeoutMs;
  }

  #forget(sent: Sent): void {
    this.#unresolved = without(sent, this.#unresolved);
    if (this.#isClosed) this.#dequeue();
  }

  // ---- store queue ------------------------------------------------------------------------------------

  /** Notes whether the ticket of this command may be in the store queue, if it has one. */
  #noteEnqueued({ request }: Sent, isEnqueued: boolean): void {
    if (this.#ticket !== undefined && "ticket" in request) this.#ticket.isEnqueued = isEnqueued;
  }

  #onEnqueued(): void {
    if (this.#ticket !== undefined) this.#ticket.isEnqueued = true;
    if (this.#isClosed) this.#dequeue();
  }

  /** Removes the ticket from the store queue, once no command is in flight that could enqueue it again. */
  #dequeue(): void {
    if (!this.#unresolved.some(({ isInFlight }) => isInFlight)) this.#ticket?.dequeue();
  }

  // ---- outcome ----------------------------------------------------------------------------------------

  /** Handles the reply that this command acquired the key. Returns whether the try continues with another command. */
  #taken(sent: Sent, reply: Acquired): boolean {
    this.#noteEnqueued(sent, false);
    const { first } = this.#queue;
    // If the waiter of the command has left, or the hold was seen to be gone, a renewal has to confirm the hold first.
    const isUsable = first !== undefined && fits(sent.request, first) && this.#unresolved.includes(sent);
    if (isUsable && this.#believe(sent, first, sent.sentAt, reply, reply.mayComeAgain !== true)) return false;
    return this.#confirm(sent);
  }

  /**
   * Makes the first waiter the holder. This is the only place where a lease begins.
   *
   * @param sentAt when the command was sent whose reply proves the hold for the lock time of the first waiter: the command that acquired
   *   the key, or a renewal
   * @param granted the parts of that reply that matter here
   * @returns false if that was too long ago, or if no lease may begin anymore. Then nothing has changed
   */
  #believe(
    sent: Sent,
    first: Waiter,
    sentAt: number,
    granted: Pick<Acquired, "count" | "somebodyWaits" | "fencingToken">,
    isOnlyGrant: boolean,
  ): boolean {
    if (this.#isClosed || this.#context.isClosed) return false;
    const { key, requestId } = sent.request;
    const { fencingToken, somebodyWaits = false } = granted;
    const count = this.#reduced?.has(requestId) === true ? 1 : (granted.count ?? 1);
    const plain = new Lease(key, requestId, first.lockTimeMs, fencingToken, isOnlyGrant);
    const lease = this.#queue.makeLease?.(plain, first) ?? plain;
    lease.replicas = first.replicas;
    this.#context.renewals.noteLockTime(lease, this.#maxHoldMs(sent));
    lease.prove(sentAt, first.lockTimeMs);
    const { coversUntil = -Infinity } = this.#ticket ?? {};
    const waitedMs = this.#queue.begin(lease, first, { sentAt, count, somebodyWaits, coversUntil });
    if (waitedMs === undefined) return false;
    this.#unresolved = without(sent, this.#unresolved);
    this.#lease = lease;
    this.#close();
    // The other commands may have acquired holds of the same shared key.
    if (first.permits > 1) this.#releaseUnresolved();
    first.onEntered(waitedMs);
    this.#queue.afterBegin?.();
    return true;
  }

  /**
   * Renews a hold, because the key was found to hold what one of our commands wrote. That proves nothing until the renewal succeeds. If no
   * waiters are left, it releases the hold instead. Returns whether the try continues with another command.
   */
  #confirm(found: Sent): boolean {
    const { first } = this.#queue;
    if (first === undefined || this.#context.isClosed) this.#close();
    const isOver = this.#isClosed || this.#isRenounced(found);
    if (isOver || first === undefined) return this.#decline(found);
    if (!this.#unresolved.includes(found)) this.#remember(found);
    if (this.#state === "confirming") return true;
    this.#state = "confirming";
    const { clock, store, inFlight } = this.#context;
    const { key, requestId } = found.request;
    const { lockTimeMs, fencing } = first;
    const { permits } = first;
    // The renewal keeps one of the permits that the command may have got. That counts even if the reply to the command arrives later.
    if (permits > 1 && permits !== UNLIMITED) (this.#reduced ??= new Set()).add(requestId);
    const sharing = permits > 1 ? { permits, ...(permits === UNLIMITED ? {} : { count: 1 }) } : {};
    const request = { key, requestId, lockTimeMs, fencing, ...sharing, ...ofReplicas(first) };
    this.#confirmedForMs = Math.max(this.#confirmedForMs, lockTimeMs);
    const sentAt = clock.now();
    const timeoutMs = this.#timeoutMsFor(first, sentAt);
    void renewOne(store, inFlight, request, timeoutMs).then((reply) => {
      const fault = inFlight.handle(() => this.#confirmed(found, request, sentAt, reply));
      if (fault !== undefined) this.#queue.first?.onTried();
    });
    return true;
  }

  #confirmed(found: Sent, request: AcquireRequest, sentAt: number, reply: RenewReply): void {
    if (this.#state === "confirming") this.#state = "asking";
    const { first } = this.#queue;
    if (this.#isClosed || first === undefined) return; // Then the hold is released elsewhere.
    this.trouble = undefined;
    if (reply instanceof Error) this.trouble = { error: reply };
    else if (this.#isRenounced(found))
      first.wake(); // It was renounced after the renewal was sent.
    else if (!reply.renewed) this.#gone(found, first, reply.holder);
    else if (!fits(request, first))
      return void this.#confirm(found); // Another waiter is first by now.
    else if (!this.#believe(found, first, sentAt, reply, false)) this.trouble = TOOK_TOO_LONG;
    const { error } = this.trouble ?? {};
    if (error instanceof LockMisconfiguredError) first.onRefused(error);
    first.onTried();
  }

  /** Handles a hold that ended before it became a lease. */
  #gone(found: Sent, first: Waiter, holder: string | undefined): void {
    this.#notFound(found, holder);
    first.wake();
  }

  /** The key does not hold what the command wrote. It may hold the revoked form of that. */
  #notFound(sent: Sent, holder: string | undefined): void {
    if (isRevokedFrom(sent.request.requestId, holder)) this.#renounce(sent);
    else this.#forget(sent);
  }

  #foundLate(sent: Sent, holder: string | undefined): void {
    if (!isHeldBy(sent.request.requestId, holder)) this.#notFound(sent, holder);
    else if (this.#isClosed) this.#decline(sent);
  }

  /** Gives up, because no waiters are left. Releases the holds that the store may have for this process. */
  abandon(): void {
    this.#close();
    this.#releaseUnresolved();
  }

  /** Releases what commands without a reply may have acquired. A command in flight is handled when its reply arrives. */
  #releaseUnresolved(): void {
    const { acquires, enqueues } = this.#context;
    for (const sent of this.#unresolved) {
      if (sent instanceof AcquireCommand && (acquires.cancel(sent) || enqueues.cancel(sent)))
        this.#forget(sent);
      else if (!sent.isInFlight) this.#decline(sent);
    }
  }

  #close(): void {
    this.#state = "closed";
    this.#ticket?.stopListening();
    this.#dequeue();
  }

  /**
   * Releases a hold that nobody needs: one of a closed acquisition, or a renounced one. Does not touch the hold of its own lease unless
   * that lease was released. Returns false, because no try continues.
   */
  #decline(sent: Sent): false {
    this.#forget(sent);
    const { key, requestId, permits = 1 } = sent.request;
    const { clock, releaseRetries } = this.#context;
    const lease = this.#lease?.requestId === requestId ? this.#lease : undefined;
    if (lease?.isReleased === false) return false;
    // The release of our lease may have been lost, and is sent again. This one must not free a key that should stay closed.
    const request =
      lease?.releaseRequest(clock.now()) ?? (permits > 1 ? { key, requestId, permits } : { key, requestId });
    releaseRetries.release(request, this.#maxHoldMs(sent), () => this.#queue.first?.wake());
    return false;
  }

  /**
   * Releases a hold that was revoked before it became a lease. Otherwise, it would keep all others out although no body runs under it. Its
   * command and its release may both run once more, so it must never become a lease.
   */
  #renounce(sent: Sent): void {
    (this.#renounced ??= new Set()).add(sent.request.requestId);
    this.#decline(sent);
  }

  #isRenounced({ request }: Sent): boolean {
    return this.#renounced?.has(request.requestId) === true;
  }

  #maxHoldMs({ request }: Sent): number {
    return Math.max(request.lockTimeMs, this.#confirmedForMs);
  }
}

const NONE: readonly Sent[] = [];

function pollIntervalWithoutQueue(): number {
  const { from, to } = POLL_INTERVAL_WITHOUT_QUEUE_MS;
  return from + Math.random() * (to - from);
}

function without(one: Sent, all: readonly Sent[]): readonly Sent[] {
  if (!all.includes(one)) return all;
  return all.length === 1 ? NONE : all.filter((other) => other !== one);
}

const TOOK_TOO_LONG: Trouble = { error: new NoReplyError("the reply took the whole lock time") };

/** Returns a request for the waiter, with a `requestId` that no other command has. */
function requestOf(waiter: Waiter, count: number | undefined): AcquireRequest {
  const { key, lockTimeMs, fencing, permits, replicas } = waiter;
  // The request always names `permits`. Otherwise, a store might read them from a polluted `Object.prototype`.
  const request = { key, requestId: waiter.nextRequestId(), lockTimeMs, fencing, permits };
  if (permits === 1 && replicas === 0) return request; // The common case.
  const sharing = permits > 1 && count !== undefined ? { count } : {};
  return { ...request, ...ofReplicas(waiter), ...sharing };
}

/** Whether a hold on these terms meets the needs of the waiter. */
export function fits(
  { lockTimeMs, fencing, replicas = 0 }: Pick<AcquireRequest, "lockTimeMs" | "fencing" | "replicas">,
  waiter: Waiter,
): boolean {
  return lockTimeMs === waiter.lockTimeMs && (fencing || !waiter.fencing) && replicas >= waiter.replicas;
}
