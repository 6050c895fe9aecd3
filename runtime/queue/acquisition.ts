import { StoreCommand } from "../commands/in-flight";
import { LockMisconfiguredError } from "../base/errors";
import { UNLIMITED } from "../base/limits";
import { NoReplyError } from "../base/no-reply-error";
import {
  type ReleaseAndEnqueueReply,
  type NotReleased,
  type NotAcquired,
  type EnqueueRequest,
  type RenewReply,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
  type Store,
} from "../stores/port";
import { isHeldBy, isRevokedFrom } from "../stores/value";
import { BusyKey } from "./busy-key";
import { Lease, ofReplicas, type Grant } from "./lease";
import type { Trouble } from "./loss";
import type { QueueContext } from "./queue-context";
import { SentCommands, type Sent } from "./sent-commands";
import { Ticket } from "./ticket";
import { fits, UNREACHABLE_PAUSE_MS, type Waiter, type WaiterQueue } from "./waiter";

/**
 * One command that may acquire the key, with its own `requestId`. Its acquisition receives the reply or the failure. If the reply handler
 * throws, it also receives a failure. A late reply may follow a failure.
 */
export class AcquireCommand extends StoreCommand<AcquireReply> implements Sent {
  readonly request: AcquireRequest | EnqueueRequest;
  /** On the monotonic clock: a time before the command was sent. A grant counts from here. */
  readonly sentAt: number;
  /** The waiter for which it was sent. */
  readonly caller: Waiter;
  readonly #acquisition: Acquisition;

  constructor(
    acquisition: Acquisition,
    request: AcquireRequest | EnqueueRequest,
    sentAt: number,
    caller: Waiter,
  ) {
    super();
    this.#acquisition = acquisition;
    this.request = request;
    this.sentAt = sentAt;
    this.caller = caller;
  }

  /** Whether it enqueues a ticket if it cannot acquire the key. */
  get isEnqueue(): boolean {
    return "ticket" in this.request;
  }

  send(): Promise<AcquireReply> {
    const { request, timeoutMs } = this;
    const { store } = this.#acquisition;
    return "ticket" in request && store.queue !== undefined
      ? store.queue.enqueue(request, timeoutMs)
      : store.acquire(request, timeoutMs);
  }

  onReply(reply: AcquireReply): void {
    this.#acquisition.onReply(this, reply);
  }

  onFailure(error: unknown): void {
    this.#acquisition.onFailure(this, error);
  }

  onLateReply(reply: AcquireReply): void {
    this.#acquisition.onLateReply(this, reply);
  }
}

/**
 * Acquires one key for the waiters of this process. It asks the store on behalf of the first waiter, until the store grants the key or no
 * waiters are left. Each of its commands has its own `requestId`.
 *
 * It is safe even if commands are lost, late, reordered, or run twice, for two reasons (see docs/architecture.md):
 *
 * - A lease begins only in `#believe`. It counts from the time when the command that acquired the key was sent (`#granted`). If the key was
 *   found to hold what one of our commands wrote, the lease counts from the time when a renewal was sent (`#confirm`).
 * - An acquisition releases a hold only if it is closed, or if it has renounced the hold (`#decline`). A closed acquisition never begins a
 *   lease, and a renounced hold never becomes one.
 */
export class Acquisition {
  /** The reason why the last try failed, if the store did not reply. */
  trouble: Trouble | undefined;
  readonly #context: QueueContext;
  readonly #queue: WaiterQueue;
  /** Set when the key may be held by somebody else. */
  #busy: BusyKey | undefined;
  readonly #sent = new SentCommands();
  /**
   * - `asking`: the next command asks for the key.
   * - `confirming`: a renewal is in flight for a hold that was found. No other command is sent meanwhile.
   * - `closed`: the key was granted, or no waiters are left. Holds that commands acquire from now on are released.
   */
  #state: "asking" | "confirming" | "closed" = "asking";
  /** Set when it may have to wait behind callers of other processes. */
  #ticket: Ticket | undefined;
  /** The lease that was granted. */
  #lease: Lease | undefined;

  constructor(context: QueueContext, queue: WaiterQueue) {
    this.#context = context;
    this.#queue = queue;
  }

  /** Whether the store has replied that somebody else holds the key. */
  get hasFoundHolder(): boolean {
    return this.#busy?.wasFound === true;
  }

  /** The value of the key in the last refusal. */
  get heldBy(): string | undefined {
    return this.#busy?.heldBy;
  }

  /** Its ticket in the store queue. It may not be enqueued yet. */
  get ticket(): Ticket {
    return (this.#ticket ??= new Ticket(this.#context, this.#queue));
  }

  get store(): Store {
    return this.#context.store;
  }

  get #isClosed(): boolean {
    return this.#state === "closed";
  }

  /** The time until the next request if no wake-up arrives, in milliseconds. */
  get retryInMs(): number {
    if (this.trouble !== undefined) return UNREACHABLE_PAUSE_MS;
    return (this.#busy ??= new BusyKey()).retryInMs(this.#context.clock.now(), this.#hasQueue);
  }

  get #hasQueue(): boolean {
    return this.store.queue !== undefined;
  }

  /** Lets callers of other processes try first, after this process released the key to a store without a queue. */
  pause(): void {
    this.#foundBusy().pause(this.#context.clock.now());
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
    const hasMoreTries = first.mayTryAgain(now);
    if (hasMoreTries && this.#busy?.isPaused(now) === true) return first.onTried();
    const isEnqueued = this.#ticket?.isEnqueued === true;
    // If the key is probably held, the first command also enqueues the waiter. It still acquires the key if the key is free.
    const isProbablyHeld =
      hasMoreTries && first.terms.permits === 1 && this.#context.contended.has(this.#queue.key, now);
    const isEnqueue = isEnqueued || this.#sent.unresolved.length > 0 || isProbablyHeld;
    this.#send(first, isEnqueue && this.#hasQueue, now);
  }

  /** Returns a request that acquires the key for the first waiter or enqueues its ticket. The caller must send it immediately. */
  requestFor(first: Waiter): EnqueueRequest {
    const { ticket } = this;
    ticket.listen();
    ticket.onSent();
    return { ...newRequest(first, this.#queue), ticket: ticket.id };
  }

  #send(first: Waiter, isEnqueue: boolean, sentAt: number): void {
    const { inFlight, acquires, enqueues } = this.#context;
    const request = isEnqueue ? this.requestFor(first) : newRequest(first, this.#queue);
    const timeoutMs = first.timeoutMs(sentAt, inFlight.usualTimeoutMs);
    this.#ticket?.onSent();
    const command = new AcquireCommand(this, request, sentAt, first);
    this.sent(command);
    const isSentAlone = request.fencing || request.replicas !== undefined;
    if (isSentAlone) inFlight.send(command, timeoutMs, sentAt);
    else (isEnqueue ? enqueues : acquires).send(command, timeoutMs, sentAt);
  }

  /** Notes a command that is on its way, and may acquire the key. */
  sent(sent: Sent): void {
    this.#sent.add(sent);
  }

  // ---- replies ----------------------------------------------------------------------------------------

  onReply(command: AcquireCommand, reply: AcquireReply): void {
    this.trouble = undefined;
    const isHandled = reply.acquired ? this.#granted(command, reply) : this.#refused(command, reply);
    if (!isHandled) command.caller.onTried();
  }

  onFailure(command: AcquireCommand, error: unknown): void {
    if (error instanceof LockMisconfiguredError) {
      this.#forget(command);
      command.caller.onRefused(error);
    } else {
      this.#unanswered(command, error, command.timeoutMs < this.#context.inFlight.usualTimeoutMs);
    }
    command.caller.onTried();
  }

  onLateReply(command: AcquireCommand, reply: AcquireReply): void {
    if (reply.acquired) return void this.#granted(command, reply);
    this.#foundLate(command, reply.holder);
    if (command.isEnqueue) this.#onEnqueued();
  }

  /** Handles the reply to a request that was sent together with the release of a hold of this process. */
  onNextReply(sent: Sent, reply: ReleaseAndEnqueueReply | NotReleased): void {
    this.trouble = undefined;
    if (!reply.released) {
      // The same command may have run before, and its first reply was lost.
      if (isHeldBy(sent.request.requestId, reply.holder)) this.#confirm(sent);
      else this.#notFound(sent, reply.holder);
    } else if (reply.next === "enqueued") {
      this.#foundBusy();
      this.#forget(sent);
      this.#ticket?.onEnqueuedWithRelease(this.#sent.unresolved.length === 0);
      this.#onEnqueued();
    } else if (reply.next === undefined) {
      this.#forget(sent);
    } else {
      this.#granted(sent, reply.next);
    }
  }

  onNextFailure(sent: Sent, error: unknown): void {
    this.#unanswered(sent, error, false);
  }

  onLateNextReply(sent: Sent, reply: ReleaseAndEnqueueReply | NotReleased): void {
    if (reply.released && reply.next !== undefined && reply.next !== "enqueued") {
      return void this.#granted(sent, reply.next);
    }
    if (reply.released) this.#forget(sent);
    else this.#foundLate(sent, reply.holder);
    if (reply.released && reply.next === "enqueued") this.#onEnqueued();
  }

  /** Notes that somebody else holds the key. */
  #foundBusy(): BusyKey {
    const now = this.#context.clock.now();
    this.#context.contended.add(this.#queue.key, now);
    this.#busy ??= new BusyKey();
    this.#busy.onFound(now);
    return this.#busy;
  }

  /** Returns whether the try continues with another command. */
  #refused(command: AcquireCommand, { holder, freeInMs, isLast = false }: NotAcquired): boolean {
    const revoked = this.#sent.revokedFrom(holder);
    if (revoked !== undefined) this.#renounce(revoked);
    const isOwn = isHeldBy(command.request.requestId, holder);
    if (!isOwn) this.#forget(command);
    const busy = this.#foundBusy();
    busy.heldBy = holder;
    busy.freeInMs = freeInMs;
    if (command.isEnqueue) {
      const ticket = this.#ticket;
      if (ticket !== undefined && (isLast || !ticket.isEnqueued)) ticket.coversUntil = command.sentAt;
      this.#onEnqueued();
    }
    const found = this.#sent.heldBy(holder) ?? (this.#isClosed ? undefined : this.#sent.findInDoubt());
    if (found !== undefined) return this.#confirm(found);
    if (command.isEnqueue || !this.#hasQueue || !this.#hasReasonToWait(command.caller)) return false;
    this.#send(command.caller, true, this.#context.clock.now());
    return true;
  }

  #hasReasonToWait(waiter: Waiter): boolean {
    const { clock, isClosed } = this.#context;
    return !this.#isClosed && !isClosed && this.#queue.first === waiter && waiter.mayTryAgain(clock.now());
  }

  /** @param isShortened whether the store had less than the usual time to reply */
  #unanswered(sent: Sent, error: unknown, isShortened: boolean): void {
    // If the last command had a short timeout, its missing reply says less than a recent reply or an earlier error.
    const isUninformative =
      isShortened && error instanceof NoReplyError && (this.#foundBusyLately || this.trouble !== undefined);
    if (!isUninformative) this.trouble = { error };
    this.#noteEnqueued(sent, true); // The command may have enqueued it.
    if (this.#isClosed) this.#decline(sent);
  }

  get #foundBusyLately(): boolean {
    const { clock, inFlight } = this.#context;
    return this.#busy?.wasFoundLately(clock.now(), inFlight.usualTimeoutMs) === true;
  }

  #forget(sent: Sent): void {
    this.#sent.remove(sent);
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
    if (!this.#sent.isAnyInFlight) this.#ticket?.dequeue();
  }

  // ---- outcome ----------------------------------------------------------------------------------------

  /**
   * Handles the reply that this command acquired the key.
   *
   * @returns whether the caller of the command holds the lock, or its try continues with a renewal
   */
  #granted(sent: Sent, reply: Acquired): boolean {
    this.#noteEnqueued(sent, false);
    const { first } = this.#queue;
    // If the waiter of the command has left, or the hold was seen to be gone, a renewal has to confirm the hold first.
    const isUsable = first !== undefined && fits(sent.request, first.terms) && this.#sent.has(sent);
    if (isUsable && this.#believe(sent, first, sent.sentAt, reply, reply.mayRunAgain !== true))
      return sent.caller === first;
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
    granted: Pick<Acquired, "count" | "hasWaiters" | "fencingToken">,
    isOnlyGrant: boolean,
  ): boolean {
    if (this.#isClosed || this.#context.isClosed) return false;
    const { requestId } = sent.request;
    const { lockTimeMs, replicas, permits } = first.terms;
    const plain = new Lease(this.#queue, requestId, lockTimeMs, granted.fencingToken, isOnlyGrant);
    const lease = this.#queue.makeLease?.(plain, first, this.#sharedGrant(sent, sentAt, granted)) ?? plain;
    lease.replicas = replicas;
    lease.prove(sentAt, lockTimeMs);
    const waitedMs = first.onGranted(lease, first.terms.fencing ? lease.tokenOfHolder : undefined);
    if (waitedMs === undefined) return false;
    const maxHoldMs = this.#sent.maxHoldMs(sent);
    if (maxHoldMs > lockTimeMs) this.#context.renewals.noteLockTime(lease, maxHoldMs);
    this.#sent.remove(sent);
    this.#lease = lease;
    this.#close();
    // The other commands may have acquired holds of the same shared key.
    if (permits > 1) this.#releaseUnresolved();
    // This comes last, because listeners run in this call.
    this.#queue.begin(lease, first, waitedMs);
    return true;
  }

  /** Returns the parts of the reply that a shared lease needs. */
  #sharedGrant(
    sent: Sent,
    sentAt: number,
    { count = 1, hasWaiters = false }: Pick<Acquired, "count" | "hasWaiters">,
  ): Grant {
    const coversUntil = this.#ticket?.coversUntil ?? -Infinity;
    return { sentAt, count: this.#sent.isReduced(sent) ? 1 : count, hasWaiters, coversUntil };
  }

  /**
   * Renews a hold, because the key was found to hold what one of our commands wrote. That proves nothing until the renewal succeeds. If no
   * waiters are left, it releases the hold instead. Returns whether the try continues with another command.
   */
  #confirm(found: Sent): boolean {
    const { first } = this.#queue;
    if (first === undefined || this.#context.isClosed) this.#close();
    const isOver = this.#isClosed || this.#sent.isRenounced(found);
    if (isOver || first === undefined) return this.#decline(found);
    this.#sent.noteFound(found);
    if (this.#state === "confirming") return true;
    this.#state = "confirming";
    const { clock, inFlight, renewals } = this.#context;
    const { key, requestId } = found.request;
    const { lockTimeMs, fencing, permits } = first.terms;
    if (permits > 1 && permits !== UNLIMITED) this.#sent.reduce(found);
    const sharing = permits > 1 ? { permits, ...(permits === UNLIMITED ? {} : { count: 1 }) } : {};
    const request = { key, requestId, lockTimeMs, fencing, ...sharing, ...ofReplicas(first.terms) };
    this.#sent.noteLockTime(lockTimeMs);
    const sentAt = clock.now();
    const timeoutMs = first.timeoutMs(sentAt, inFlight.usualTimeoutMs);
    void renewals.ask(request, timeoutMs).then((reply) => {
      const fault = inFlight.handle(() => this.#confirmed(found, request, sentAt, reply));
      if (fault !== undefined) this.#queue.first?.onTried();
    });
    return true;
  }

  #confirmed(found: Sent, request: AcquireRequest, sentAt: number, reply: RenewReply): void {
    if (this.#state === "confirming") this.#state = "asking";
    const { first } = this.#queue;
    if (this.#isClosed || first === undefined) return; // `#decline` releases the hold.
    this.trouble = undefined;
    if (reply instanceof Error) this.trouble = { error: reply };
    else if (this.#sent.isRenounced(found))
      first.wake(); // It was renounced after the renewal was sent.
    else if (!reply.renewed) this.#gone(found, first, reply.holder);
    else if (!fits(request, first.terms))
      return void this.#confirm(found); // Another waiter is first now.
    else if (this.#believe(found, first, sentAt, reply, false)) return;
    else this.trouble = TOOK_TOO_LONG;
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
    for (const sent of this.#sent.unresolved) {
      if (sent instanceof AcquireCommand && (acquires.cancel(sent) || enqueues.cancel(sent)))
        this.#forget(sent);
      else if (!sent.isInFlight) this.#decline(sent);
    }
  }

  #close(): void {
    this.#state = "closed";
    if (this.#ticket === undefined) return;
    this.#ticket.stopListening();
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
    releaseRetries.release(request, this.#sent.maxHoldMs(sent), () => this.#queue.first?.wake());
    return false;
  }

  /**
   * Releases a hold that was revoked before it became a lease. Otherwise, it would keep all others out although no body runs under it. Its
   * command and its release may both run once more, so it must never become a lease.
   */
  #renounce(sent: Sent): void {
    this.#sent.renounce(sent);
    this.#decline(sent);
  }
}

const TOOK_TOO_LONG: Trouble = { error: new NoReplyError("the reply took the whole lock time") };

/** Returns a request for the waiter, with a `requestId` that no other command has. */
function newRequest(waiter: Waiter, { key, wanted: count }: WaiterQueue): AcquireRequest {
  const { lockTimeMs, fencing, permits, replicas } = waiter.terms;
  // The request always names `permits`. Otherwise, a store might read them from a polluted `Object.prototype`.
  const request = { key, requestId: waiter.nextRequestId(), lockTimeMs, fencing, permits };
  if (permits === 1 && replicas === 0) return request; // The common case.
  const sharing = permits > 1 && count !== undefined ? { count } : {};
  return { ...request, ...ofReplicas(waiter.terms), ...sharing };
}
