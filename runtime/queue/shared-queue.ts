import type { CancelTimer } from "../base/clock";
import { UNLIMITED } from "../base/limits";
import { HandOffTurn, type FormerHolder } from "./hand-off-turn";
import { KeyQueue, NO_REPLY_YET, type Obstacle } from "./key-queue";
import type { Grant, Holder, Lease, LeavingHolder } from "./lease";
import { HELD_AT_MOST, lossOf, unconfirmed, type Trouble } from "./loss";
import type { QueueContext } from "./queue-context";
import { SharedLease, type LeaseOwner, type EarlyRenewal } from "./shared-lease";
import { UNREACHABLE_PAUSE_MS, type Waiter } from "./waiter";

/** The time for which a waiter sleeps while its own process holds all permits. A release wakes it earlier. */
const HELD_BACK_MS = 1_000;

/**
 * The callers of this process that share one key on the same terms, and their common holds. The first waiter asks the store on behalf of
 * all. A caller joins an existing hold if it overtakes nobody: see {@link SharedLease}.
 *
 * A caller without a watchdog, or whose key may stay (`autoUnlock`), has its own queue and its own hold.
 */
export class SharedQueue extends KeyQueue implements LeaseOwner {
  /** The terms that its callers have in common. `undefined` if it is for one caller alone. */
  readonly terms: string | undefined;
  readonly #isJoinable: boolean;
  /** All leases that have not ended, including lost ones. */
  readonly #leases = new Set<SharedLease>();
  /** Leases with room for one more caller. For readers this is the newest lease only. */
  #roomy = new Set<SharedLease>();
  /** The number of permits that this process holds, without lost leases. */
  #held = 0;
  /** The lease whose renewal is in flight to learn whether anybody is waiting. */
  #renewingEarly: SharedLease | undefined;
  /** The waiter whose try waits for that renewal, if there is one. */
  #try: { readonly waiter: Waiter; readonly cancel: CancelTimer | undefined } | undefined;
  /** The reason why the last such renewal failed, if it did. */
  #trouble: Trouble | undefined;

  constructor(context: QueueContext, key: string, terms: string | undefined, isJoinable: boolean) {
    super(context, key);
    this.terms = terms;
    this.#isJoinable = isJoinable;
  }

  /** The number of permits that the first waiter asks for, also on behalf of the waiters behind it. */
  get wanted(): number | undefined {
    const permits = this.first?.terms.permits ?? 1;
    return permits === UNLIMITED ? undefined : Math.max(Math.min(this.waitingCount, permits - this.#held), 1);
  }

  /** Whether a caller that arrives now joins a hold immediately. */
  get isOpen(): boolean {
    const [lease] = this.#roomy;
    if (
      lease === undefined ||
      this.first !== undefined ||
      this.context.firstExclusive(this.key) !== undefined
    )
      return false;
    return this.#isUsable(lease) && lease.mayJoin(Infinity, this.context.certainty.readAt);
  }

  // ---- waiting ----------------------------------------------------------------------------------------

  override giveUp(waiter: Waiter): void {
    if (this.#try?.waiter === waiter) this.#endTry();
    super.giveUp(waiter);
  }

  /** Whether this is the first waiter, and it may join a hold or ask the store. */
  override mayAsk(waiter: Waiter): boolean {
    if (this.first !== waiter) return false;
    return this.acquisition !== undefined || this.#joinable() !== undefined || this.#mayAskForMore(waiter);
  }

  override ask(waiter: Waiter): void {
    this.#admit();
    if (this.first !== waiter) return;
    const lease = this.#leaseInDoubt();
    if (lease !== undefined) return this.#renewEarly(lease, waiter);
    if (!this.#mayAskForMore(waiter) && this.acquisition === undefined) return waiter.onTried();
    super.ask(waiter);
  }

  /** This process never asks for more permits than there are. */
  #mayAskForMore({ terms: { permits } }: Waiter): boolean {
    return this.#leaseInDoubt() !== undefined || permits === UNLIMITED || this.#held < permits;
  }

  override retryInMs(waiter: Waiter): number {
    if (this.first !== waiter) return Infinity;
    if (this.#trouble !== undefined) return UNREACHABLE_PAUSE_MS;
    return this.acquisition?.retryInMs ?? HELD_BACK_MS;
  }

  override obstacle(waiter: Waiter): Obstacle {
    const trouble = this.acquisition?.trouble ?? this.#trouble;
    if (trouble !== undefined) return { kind: "store", trouble };
    const here = this.context.sharedLeasesFor(waiter);
    const [lease] =
      this.acquisition?.hasFoundHolder === true && waiter.terms.permits === UNLIMITED ? [] : here;
    if (lease !== undefined) return { kind: "held here", holder: lease.members };
    if (this.acquisition?.hasFoundHolder === true)
      return { kind: "held elsewhere", value: this.acquisition.heldBy };
    return this.first === waiter ? { kind: "store", trouble: NO_REPLY_YET } : { kind: "asked for here" };
  }

  protected override onNoWaiters(): void {
    super.onNoWaiters();
    for (const lease of Array.from(this.#roomy)) this.#releaseSpare(lease);
  }

  // ---- joining ----------------------------------------------------------------------------------------

  makeLease(plain: Lease, { terms }: Waiter, grant: Grant): Lease {
    const lease = new SharedLease(this, plain, terms.permits, this.#isJoinable);
    lease.begin(grant);
    return lease;
  }

  override leases(): Iterable<SharedLease> {
    return this.#leases;
  }

  protected override add(begun: Lease): void {
    const lease = sharedLease(begun);
    this.#trouble = undefined;
    this.#leases.add(lease);
    if (lease.capacity !== UNLIMITED) this.#held += lease.capacity;
    if (lease.capacity === UNLIMITED) this.#roomy = new Set([lease]);
    else if (lease.hasRoom) this.#roomy.add(lease);
  }

  /** Also admits the waiters behind the one that got the hold. */
  override begin(lease: Lease, first: Waiter, waitedMs: number): void {
    super.begin(lease, first, waitedMs);
    this.#onChange();
  }

  /** Admits as many waiters as may join the holds of this process. */
  #admit(): void {
    for (let first = this.first; first !== undefined; first = this.first) {
      const lease = this.#joinable();
      if (lease === undefined) return;
      const waitedMs = first.onGranted(lease, undefined);
      if (waitedMs === undefined) return;
      this.remove(first);
      if (!lease.hasRoom) this.#roomy.delete(lease);
      if (this.first === undefined) super.onNoWaiters();
      first.onEntered(waitedMs);
    }
  }

  /** A guarded permit has no room, even if its caller has left. */
  get #firstWithRoom(): SharedLease | undefined {
    for (const lease of this.#roomy) if (lease.hasRoom) return lease;
    return undefined;
  }

  /** The lease that the first waiter may join now. */
  #joinable(): SharedLease | undefined {
    const { first } = this;
    const lease = this.#firstWithRoom;
    if (first === undefined || lease === undefined || !this.#isUsableFor(first, lease)) return undefined;
    return lease.mayJoin(first.joinedAt, this.context.certainty.readAt) ? lease : undefined;
  }

  /** Whether a caller may join the lease, if no waiter came before it. */
  #isUsable(lease: SharedLease): boolean {
    return this.#isJoinable && this.isAsGoodAsNew(lease);
  }

  /** Whether the lease is usable, and no waiter of this process that wants the key alone came before. */
  #isUsableFor(first: Waiter, lease: SharedLease): boolean {
    const alone = this.context.firstExclusive(this.key);
    return (alone === undefined || first.waitsSince < alone.waitsSince) && this.#isUsable(lease);
  }

  /** A lease that the first waiter may join as soon as the store reports that nobody is waiting. */
  #leaseInDoubt(): SharedLease | undefined {
    const { first } = this;
    const lease = this.#firstWithRoom;
    if (first === undefined || lease === undefined || lease.hasWaiters) return undefined;
    return this.#isUsableFor(first, lease) ? lease : undefined;
  }

  // ---- replies ----------------------------------------------------------------------------------------

  #renewEarly(lease: SharedLease, waiter?: Waiter): void {
    if (waiter !== undefined && waiter !== this.#try?.waiter) {
      if (this.#try !== undefined && this.#renewingEarly === lease) return waiter.onTried();
      this.#startTry(waiter);
    }
    if (this.#renewingEarly === lease) return;
    this.#renewingEarly = lease;
    this.context.earlyRenewals.now(lease);
  }

  /** Starts a try of the waiter. It ends with the reply, or earlier if the wait budget ends. */
  #startTry(waiter: Waiter): void {
    this.#endTry();
    const { clock, inFlight } = this.context;
    const { usualTimeoutMs } = inFlight;
    const timeoutMs = waiter.timeoutMs(clock.now(), usualTimeoutMs);
    const endTry = (): void => {
      if (this.#try?.waiter !== waiter) return;
      this.#trouble ??= NO_REPLY_YET;
      this.#endTry();
    };
    const cancel = timeoutMs < usualTimeoutMs ? clock.after(timeoutMs, endTry) : undefined;
    this.#try = { waiter, cancel };
  }

  #endTry(): void {
    const waitingTry = this.#try;
    this.#try = undefined;
    waitingTry?.cancel?.();
    waitingTry?.waiter.onTried();
  }

  onRenewedEarly({ lease, sentAt, lockTimeMs, replicas, handOffs, reply }: EarlyRenewal): void {
    const isAwaitedReply = this.#renewingEarly === lease;
    if (isAwaitedReply) this.#renewingEarly = undefined;
    this.#trouble = undefined;
    if (!lease.isOver) {
      const { clock, renewals, certainty } = this.context;
      if (reply instanceof Error) {
        this.#trouble = { error: reply };
        lease.turn?.report(handOffs, unconfirmed(reply));
      } else if (reply.renewed) {
        const { hasWaiters = false } = reply;
        // A caller that joined meanwhile may need more replicas than this command asked for.
        if (this.#isJoinable && replicas >= lease.replicas)
          lease.prove(sentAt, lockTimeMs, certainty.trustedSince());
        lease.noteWaiters({ sentAt, hasWaiters, coversUntil: -Infinity });
        lease.turn?.report(handOffs, undefined);
      } else {
        const isBeforeDeadline = lease.untilDeadline(clock.now()) > 0;
        renewals.lose(lease, lossOf(lease.requestId, reply.holder, isBeforeDeadline));
      }
    }
    const isLeft = lease.isOver && !lease.isReleased && lease.members.size === 0;
    if (isLeft && this.#leases.has(lease)) this.#release(lease);
    // After an error, the first waiter pauses, because an immediate retry could fail just as fast.
    if (this.#trouble === undefined) this.#onChange();
    this.#releaseSpare(lease); // It may be empty without being in `#roomy`.
    if (!isAwaitedReply) return;
    const waiter = this.#try?.waiter;
    if (waiter === undefined || this.first !== waiter || this.#trouble !== undefined) return this.#endTry();
    this.#try?.cancel?.();
    this.#try = undefined;
    super.ask(waiter);
  }

  /** Handles the reply to a regular renewal. */
  onRenewed(lease: SharedLease, sentAt: number, hasWaiters: boolean): void {
    lease.noteWaiters({ sentAt, hasWaiters, coversUntil: -Infinity });
    this.#onChange();
  }

  /** Admits waiters after a change, releases spare permits, and wakes the first waiter. */
  #onChange(): void {
    this.#admit();
    for (const lease of Array.from(this.#roomy)) this.#releaseSpare(lease);
    this.first?.wake();
    this.prune();
  }

  /** Releases permits, or a whole hold, that nobody in this process may use. */
  #releaseSpare(lease: SharedLease): void {
    if (lease.isOver || this.#renewingEarly === lease) return;
    if (this.#isWanted(lease)) {
      // The store decides whether the first waiter may join.
      if (lease !== this.#joinable() && lease.hasRoom) this.#renewEarly(lease);
      return;
    }
    if (lease.members.size === 0) return this.#release(lease);
    if (lease.capacity === UNLIMITED || !lease.hasRoom) return;
    // If nobody is waiting elsewhere, one renewal serves all callers that leave or rejoin within a few milliseconds.
    if (lease.hasWaiters) this.context.earlyRenewals.now(lease);
    else this.context.earlyRenewals.soon(lease);
  }

  /** Whether the first waiter may join the lease, now or as soon as the store reports that nobody is waiting. */
  #isWanted(lease: SharedLease): boolean {
    if (this.#trouble !== undefined || this.first === undefined || !this.#roomy.has(lease)) return false;
    return lease === this.#joinable() || lease === this.#leaseInDoubt();
  }

  beforeEarlyRenewal(lease: SharedLease): void {
    const { size } = lease.members;
    const mayBeUsed = lease.isOver || this.#renewingEarly === lease || this.#isWanted(lease);
    if (mayBeUsed || size === 0 || lease.capacity === UNLIMITED || !lease.hasRoom) return;
    this.#held -= lease.capacity - size;
    lease.capacity = size;
    this.#roomy.delete(lease);
  }

  // ---- leaving ----------------------------------------------------------------------------------------

  override release(leaving: LeavingHolder, now: number): void {
    const { holder } = leaving;
    const lease = sharedLease(leaving.lease);
    const loss = lease.lossFor(holder);
    const wasMember = lease.members.delete(holder);
    if (!wasMember && loss !== undefined) {
      leaving.onEnded(loss);
      return this.#onLeft(lease);
    }
    if (lease.isOver) {
      if (lease.members.size === 0) return this.#release(lease, leaving);
      return leaving.onEnded(lease.loss);
    }
    lease.turn ??= new HandOffTurn(now);
    this.#makeRoom(lease);
    this.#admit();
    const isLast = lease.members.size === 0 && !lease.isOver;
    if (isLast && !this.#isWorthKeeping(lease)) return this.#release(lease, leaving);
    lease.turn.add(leaving);
    this.context.earlyRenewals.soon(lease);
    this.#releaseSpare(lease);
  }

  /** Sets the timer that ends the lock of one caller when its `holdAtMost` is over. The others keep the hold. */
  watchLimit(lease: SharedLease, holder: Holder): void {
    const { clock } = this.context;
    const cancel = clock.afterInBackground(holder.mayHoldUntil - clock.now(), () => {
      if (lease.isOver || !lease.isHeldBy(holder)) return;
      if (clock.now() < holder.mayHoldUntil) return this.watchLimit(lease, holder);
      lease.members.lose(holder, HELD_AT_MOST);
      this.#onLeft(lease);
    });
    lease.members.limit(holder, cancel);
  }

  #onLeft(lease: SharedLease): void {
    if (lease.isOver) return;
    this.#makeRoom(lease);
    this.#admit();
    this.#releaseSpare(lease);
  }

  #makeRoom(lease: SharedLease): void {
    if (lease.capacity !== UNLIMITED) this.#roomy.add(lease);
  }

  #isWorthKeeping(lease: SharedLease): boolean {
    if (this.#renewingEarly === lease) return true;
    return this.first !== undefined && this.#roomy.has(lease) && lease === this.#leaseInDoubt();
  }

  /** Excludes a lost lease from joins, and wakes the first waiter. */
  onFree(lease: SharedLease): void {
    if (lease.isOver) this.#forget(lease);
    this.first?.wake();
  }

  /** Excludes the lease from joins and from the number of held permits. */
  #forget(lease: SharedLease): void {
    this.#roomy.delete(lease);
    if (lease.capacity !== UNLIMITED) this.#held -= lease.capacity;
    lease.capacity = lease.permits === UNLIMITED ? UNLIMITED : 0;
  }

  // ---- the end of a hold ------------------------------------------------------------------------------

  /** Ends a hold that nobody needs anymore. */
  #release(lease: SharedLease, last?: FormerHolder): void {
    const { clock, earlyRenewals } = this.context;
    this.#forget(lease);
    earlyRenewals.forget(lease);
    if (this.#renewingEarly === lease) this.#renewingEarly = undefined;
    if (this.#renewingEarly === undefined) this.#endTry();
    this.sendRelease(lease, last, clock.now());
  }

  protected override drop(lease: Lease): void {
    this.#leases.delete(sharedLease(lease));
    this.context.onFree(lease);
    this.first?.wake();
  }
}

function sharedLease(lease: Lease): SharedLease {
  if (lease instanceof SharedLease) return lease;
  throw new Error(`${lease.key}: a shared queue got a lease of another kind`);
}
