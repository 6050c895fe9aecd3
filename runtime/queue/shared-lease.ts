import type { CancelTimer } from "../base/clock";
import { UNLIMITED } from "../base/limits";
import type { ReleaseRequest, Renewed, RenewReply, RenewRequest } from "../stores/port";
import { Lease, type Grant, type Holder, type LeaseQueue } from "./lease";
import type { Loss } from "./loss";

/** The time in which callers may join a hold of their process without a command, after a command that found nobody waiting. */
export const JOIN_WINDOW_MS = 100;

/**
 * The number of times that each permit of a hold may be used in its first 100 ms even though others are waiting. The same limit applies to exclusive
 * locks.
 */
const MOST_USES = 16;

/** The request and the reply of an extra renewal. */
export interface EarlyRenewal {
  readonly lease: SharedLease;
  /** On the monotonic clock: a time before the command was sent. */
  readonly sentAt: number;
  readonly lockTimeMs: number;
  readonly replicas: number;
  /** The number of callers that had left the lease when the command was sent. */
  readonly handOffs: number;
  readonly reply: RenewReply;
}

/** The queue that owns a shared lease. */
export interface LeaseOwner extends LeaseQueue {
  /** Sets the timer that ends the lock of the caller when its `holdAtMost` is over. */
  watchLimit(lease: SharedLease, holder: Holder): void;
  /** Excludes a lost lease from joins, and wakes the first waiter. */
  onFree(lease: SharedLease): void;
  onRenewed(lease: SharedLease, sentAt: number, hasWaiters: boolean): void;
  /** Prepares an extra renewal, which releases the permits that nobody in this process may use. */
  beforeEarlyRenewal(lease: SharedLease): void;
  onRenewedEarly(renewal: EarlyRenewal): void;
}

/**
 * One hold that callers of this process share: any number of readers, or as many callers as it has permits. One deadline applies to all of
 * them.
 *
 * A caller may join without a command if it overtakes no waiter of another process. Either it came before a command was sent that found
 * nobody waiting, or it joins within {@link JOIN_WINDOW_MS} after such a command was sent.
 */
export class SharedLease extends Lease {
  declare readonly queue: LeaseOwner;
  readonly permits: number;
  readonly members: Members;
  /** The number of callers that may hold it at once. It never grows, because more permits come with another hold. */
  capacity = 1;
  /** Whether anybody is waiting in another process, according to the latest reply of the store. */
  hasWaiters = false;
  #latestSentAt = -Infinity;
  #coversUntil = -Infinity;
  #grantedAt = 0;
  #mostUses = 0;
  #uses = 0;

  constructor(queue: LeaseOwner, terms: Lease, permits: number, isJoinable: boolean) {
    super(queue, terms.requestId, terms.lockTimeMs, undefined, terms.isOnlyGrant);
    this.permits = permits;
    this.members = new Members(isJoinable);
    this.holder = this.members;
  }

  /** Starts the hold with what the store granted. */
  begin(grant: Grant): void {
    this.capacity = this.permits === UNLIMITED ? UNLIMITED : grant.count;
    this.#grantedAt = grant.sentAt;
    this.#mostUses = MOST_USES * this.capacity;
    this.noteWaiters(grant);
  }

  /** Notes whether anybody is waiting. A reply to an earlier command does not replace a reply to a later one. */
  noteWaiters({ sentAt, hasWaiters, coversUntil }: Omit<Grant, "count">): void {
    if (sentAt < this.#latestSentAt) return;
    this.#latestSentAt = sentAt;
    this.hasWaiters = hasWaiters;
    this.#coversUntil = Math.max(this.#coversUntil, hasWaiters ? coversUntil : sentAt);
  }

  /** Whether a caller that arrived at that time may join now. The deadline of the hold is checked elsewhere. */
  mayJoin(cameAt: number, now: number): boolean {
    if (!this.hasRoom) return false;
    const isInWindow = !this.hasWaiters && now < this.#latestSentAt + JOIN_WINDOW_MS;
    return isInWindow || cameAt <= this.#coversUntil || this.#isInTurn(now);
  }

  /** Whether callers may still use the permits even though others are waiting. The store grants permits to the process for a while. */
  #isInTurn(now: number): boolean {
    if (this.permits === UNLIMITED) return false;
    const isFilling = this.#uses < this.#mostUses / MOST_USES;
    return isFilling || (this.#uses < this.#mostUses && now < this.#grantedAt + JOIN_WINDOW_MS);
  }

  /** A guarded permit stays in use, because its transaction may outlive its caller. Any number of readers share a guarded hold. */
  get hasRoom(): boolean {
    if (this.isGuarded && this.capacity !== UNLIMITED) return false;
    return this.members.size < this.capacity;
  }

  override get isShared(): boolean {
    return true;
  }

  override get callers(): number {
    return this.members.size;
  }

  override enter(holder: Holder): void {
    this.#uses += 1;
    this.members.add(holder);
    if (this.members.isJoinable && holder.mayHoldUntil < Infinity) this.queue.watchLimit(this, holder);
  }

  override isHeldBy(holder: Holder): boolean {
    return this.members.has(holder);
  }

  override lossFor(holder: Holder): Loss | undefined {
    return this.members.lossOf(holder) ?? this.loss;
  }

  override sureUntilFor(holder: Holder, trustedSince: number): number {
    if (this.members.lossOf(holder) !== undefined) return -Infinity;
    const until = this.sureUntil(trustedSince);
    return this.members.isJoinable ? Math.min(until, holder.mayHoldUntil) : until;
  }

  override releaseRequest(): ReleaseRequest {
    const { key, requestId, permits } = this;
    return { key, requestId, permits };
  }

  override onRenewed(sentAt: number, { hasWaiters = false }: Renewed): void {
    this.queue.onRenewed(this, sentAt, hasWaiters);
  }

  override get renewTerms(): Pick<RenewRequest, "permits" | "count"> {
    const { permits, capacity } = this;
    return permits === UNLIMITED ? { permits } : { permits, count: capacity };
  }
}

/** The callers that share a lease, as one holder. */
class Members implements Holder {
  /** Whether there may be several callers. Then each has its own `holdAtMost`. */
  readonly isJoinable: boolean;
  readonly #all = new Set<Holder>();
  /** Callers whose lock ended before their body did, while the hold continued. */
  readonly #lost = new Map<Holder, Loss>();
  /** The timers of callers with a `holdAtMost`. */
  readonly #limits = new Map<Holder, CancelTimer>();

  constructor(isJoinable: boolean) {
    this.isJoinable = isJoinable;
  }

  get size(): number {
    return this.#all.size;
  }

  has(holder: Holder): boolean {
    return this.#all.has(holder);
  }

  add(holder: Holder): void {
    this.#all.add(holder);
  }

  /** @param cancel called when the caller leaves */
  limit(holder: Holder, cancel: CancelTimer): void {
    this.#limits.set(holder, cancel);
  }

  delete(holder: Holder): boolean {
    this.#lost.delete(holder);
    this.#limits.get(holder)?.();
    this.#limits.delete(holder);
    return this.#all.delete(holder);
  }

  /** Reports the loss to this caller only. The others keep the lock. */
  lose(holder: Holder, loss: Loss): void {
    if (!this.#all.delete(holder)) return;
    this.#lost.set(holder, loss);
    holder.onLost(loss);
  }

  lossOf(holder: Holder): Loss | undefined {
    return this.#lost.get(holder);
  }

  get #first(): Holder | undefined {
    const [first] = this.#all;
    return first;
  }

  get site(): string | undefined {
    return this.#first?.site;
  }

  get heldSince(): number {
    return this.#first?.heldSince ?? 0;
  }

  get staysUntil(): number {
    return 0;
  }

  get mayHoldUntil(): number {
    return this.isJoinable ? Infinity : (this.#first?.mayHoldUntil ?? Infinity);
  }

  get isInUse(): boolean {
    for (const { isInUse } of this.#all) if (isInUse) return true;
    return this.#lost.size > 0;
  }

  get isAutoUnlocked(): boolean {
    return this.isJoinable || this.#first?.isAutoUnlocked !== false;
  }

  onHandedOff(): void {}

  /** Stops at the first caller if nobody listens, so that a renewal costs the same for any number of callers. */
  onRenewed(): boolean {
    for (const holder of this.#all) if (!holder.onRenewed()) return false;
    return true;
  }

  /** Iterates over a copy, because a caller may leave as soon as it learns of the loss. */
  onLost(loss: Loss): void {
    for (const holder of Array.from(this.#all)) holder.onLost(loss);
  }
}
