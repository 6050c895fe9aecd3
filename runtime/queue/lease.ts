import type { ReleaseRequest, Renewed, RenewRequest } from "../stores/port";
import type { Belief } from "../base/certainty";
import type { Loss } from "./loss";
import { HandOffTurn, type FormerHolder } from "./hand-off-turn";

/** Redis counts the time to live on its own clock. This clock may run faster by this ratio, and has this granularity. */
const DRIFT_RATIO = 0.01;
const DRIFT_MS = 2;

/** The caller of this process that holds a lease, as the lease sees it. */
export interface Holder {
  /** The function that holds it, for messages. */
  readonly site: string | undefined;
  /** The start of its hold, on the monotonic clock, in milliseconds. */
  readonly heldSince: number;
  /** On the monotonic clock: the time until which the key stays closed, even if the hold ends earlier (`lockAtLeast`). */
  readonly staysUntil: number;
  /** On the monotonic clock, in milliseconds: no renewal extends the hold beyond this time (`holdAtMost`). */
  readonly mayHoldUntil: number;
  /** Whether a body may be running under it. A lock of several keys is in use once all of them are held. */
  readonly isInUse: boolean;
  /** Whether its hold is released at its end, and not left to expire. */
  readonly isAutoUnlocked: boolean;
  /** Notes that the lease was handed off to the next waiter in this process. */
  onHandedOff(): void;
  /** Reports that the lease was renewed. Returns whether anybody listens for renewals in this process. */
  onRenewed(): boolean;
  /** Notes that the lease was lost. */
  onLost(loss: Loss): void;
}

/** A caller that leaves its hold after its body. */
export interface LeavingHolder extends FormerHolder {
  readonly lease: Lease;
  readonly holder: Holder;
  /** Whether the watchdog renews the lease, as the next holder needs. */
  readonly mayHandOff: boolean;
}

/** The queue that a lease belongs to. */
export interface LeaseQueue {
  readonly key: string;
  /** Ends the hold of a caller after its body. */
  release(leaving: LeavingHolder, now: number): void;
  /** Ends the lease without a release. The key expires by itself. */
  leaveToExpire(lease: Lease): void;
}

/** The reply of the store that granted or renewed a hold. */
export interface Grant {
  /** On the monotonic clock: a time before the command was sent. */
  readonly sentAt: number;
  /** The number of permits of the hold. */
  readonly count: number;
  /** Whether somebody waited in the store queue at that time. */
  readonly hasWaiters: boolean;
  /** On the monotonic clock: callers that had arrived by this time precede all waiters in the store queue. */
  readonly coversUntil: number;
}

/**
 * A hold of this process on one key, with its deadline, until it is released or lost. Several callers of the process may
 * hold it one after another.
 *
 * Only two kinds of commands prove a lease: the command that acquired the key with this `requestId`, and renewals of that
 * ID. The lock time counts from before the command was sent: see {@link prove}. The lease ends for good before any command
 * is sent that could end the hold in the store: see {@link end}.
 */
export class Lease implements Belief {
  readonly queue: LeaseQueue;
  /** The value of the key. Only the command that acquired the key writes this value. */
  readonly requestId: string;
  lockTimeMs: number;
  /** The number of replicas that must confirm a command before it proves the lease. */
  replicas = 0;
  /** The first of the fencing tokens that the store granted with the lease. */
  fencingToken: number | undefined;
  /**
   * Whether the reply to the command that acquired the key arrived over a connection that did not break. Then no command under way can
   * acquire the key a second time. So if the key still holds the `requestId` at the end, it held it throughout.
   */
  readonly isOnlyGrant: boolean;
  /** The caller in this process that holds the lock now. */
  holder: Holder | undefined;
  /** Set at the first hand-off. */
  turn: HandOffTurn | undefined;
  /**
   * - `off`: it is not renewed.
   * - `due`: it is renewed at the time `renewAt`.
   * - `sent`: a renewal is in flight.
   *
   * Only `Renewals` changes this.
   */
  renewal: "off" | "due" | "sent" = "off";
  /** On the monotonic clock, in whole milliseconds. */
  renewAt = 0;
  #end: "released" | "left to expire" | Loss | undefined;
  /** The deadline, and the time at which the command that proved it was sent: whole milliseconds of the monotonic clock. */
  #deadline = 0;
  #provenFrom = 0;

  constructor(
    queue: LeaseQueue,
    requestId: string,
    lockTimeMs: number,
    fencingToken: number | undefined,
    isOnlyGrant: boolean,
  ) {
    this.queue = queue;
    this.requestId = requestId;
    this.lockTimeMs = lockTimeMs;
    this.fencingToken = fencingToken;
    this.isOnlyGrant = isOnlyGrant;
  }

  get key(): string {
    return this.queue.key;
  }

  /**
   * Notes the reply to a command. When the store ran the command, the key held our `requestId`, with at least `lockTimeMs` to live. If an
   * earlier command proved a later deadline, the later one remains.
   *
   * @param sentAt the monotonic time that was read before the command was sent
   * @param trustedSince whole milliseconds. A command that was sent earlier proves nothing. A new lease needs no limit, because each check
   *   looks for a suspension.
   */
  prove(sentAt: number, lockTimeMs: number, trustedSince = -Infinity): void {
    if (sentAt < trustedSince) return;
    // A small whole number is stored in the field itself. A fraction would need memory of its own.
    const deadline = Math.floor(sentAt + lockTimeMs * (1 - DRIFT_RATIO) - DRIFT_MS);
    if (deadline < this.#deadline && this.#provenFrom >= trustedSince) return;
    this.#deadline = deadline;
    this.#provenFrom = Math.floor(sentAt);
  }

  /** The time until which the key certainly holds our `requestId`. For {@link Certainty.timeLeft}, which reads the clock. */
  sureUntil(trustedSince: number): number {
    return !this.isOver && this.isTrusted(trustedSince) ? this.#deadline : -Infinity;
  }

  /**
   * Whether the command that last proved it was sent at `trustedSince` or later. Also works for a lease that is over.
   *
   * @param trustedSince see {@link prove}
   */
  isTrusted(trustedSince: number): boolean {
    return this.#provenFrom >= trustedSince;
  }

  /** The milliseconds until its deadline, whether or not that is trusted, or 0 if it is over. A renewal cannot succeed later than that. */
  untilDeadline(now: number): number {
    return this.isOver ? 0 : this.untilExpiry(now);
  }

  /** The same for a lease that may be over. At 0, the key has expired in any case. */
  untilExpiry(now: number): number {
    return Math.max(this.#deadline - now, 0);
  }

  /** The time for which `holdAtMost` still lets its holder keep it, in milliseconds, whether or not it is renewed. */
  maxHoldTimeLeftMs(now: number): number {
    return Math.max((this.holder?.mayHoldUntil ?? Infinity) - now, 0);
  }

  /** Whether a renewal would add almost nothing, because its holder may not hold it much longer. */
  isAtItsLimit(now: number): boolean {
    const untilDeadlineMs = this.untilDeadline(now);
    return this.maxHoldTimeLeftMs(now) - untilDeadlineMs <= this.lockTimeMs / 30;
  }

  /** Ends a lease that is lost, or may be. Reports this to its holder and to those that handed it off. */
  lose(loss: Loss): void {
    if (this.isOver) return;
    this.#end = loss;
    this.holder?.onLost(loss);
    this.turn?.reportAll(loss);
  }

  /** Ends a lease that is not lost. Call this before sending any command that ends the hold in the store. */
  end(how: "released" | "left to expire"): void {
    this.#end = how;
  }

  /** Whether several callers may hold it together. */
  get isShared(): boolean {
    return false;
  }

  /** The number of callers that hold it together. */
  get callers(): number {
    return 1;
  }

  /** Whether a transaction may guard it. Then no other caller of this process gets it, because the transaction may outlive its holder. */
  get isGuarded(): boolean {
    return this.turn?.isClosed === true;
  }

  /** Notes that a transaction may guard it from now on. */
  guard(): void {
    this.turn ??= new HandOffTurn(this.holder?.heldSince ?? 0);
    this.turn.isClosed = true;
  }

  /** Makes the caller the holder. */
  enter(holder: Holder): void {
    this.holder = holder;
  }

  /** Whether the caller holds it, and has not handed it off. */
  isHeldBy(holder: Holder): boolean {
    return this.holder === holder;
  }

  /** Returns why the caller lost it, if it did. */
  lossFor(_holder: Holder): Loss | undefined {
    return this.loss;
  }

  /** The same as {@link sureUntil}, for one of its holders. */
  sureUntilFor(_holder: Holder, trustedSince: number): number {
    return this.sureUntil(trustedSince);
  }

  /** Handles the reply to a renewal. */
  onRenewed(_sentAt: number, _reply: Renewed): void {}

  /** Additional fields of a renewal request. */
  get renewTerms(): Pick<RenewRequest, "permits" | "count"> {
    return NONE;
  }

  /** The request that ends it in the store now. */
  releaseRequest(now: number): ReleaseRequest {
    const { key, requestId, holder } = this;
    const cooldownMs = Math.ceil((holder?.staysUntil ?? 0) - now);
    return cooldownMs > 0 ? { key, requestId, cooldownMs } : { key, requestId };
  }

  /** The fencing token of the current holder. */
  get tokenOfHolder(): number | undefined {
    return this.fencingToken === undefined ? undefined : this.fencingToken + (this.turn?.handOffs ?? 0);
  }

  /** The fencing token of the next holder in this process. */
  get tokenOfNext(): number | undefined {
    return this.tokenOfHolder === undefined ? undefined : this.tokenOfHolder + 1;
  }

  /** Notes a token that was drawn for the current holder. Replies may arrive out of order, so the largest token counts. */
  noteToken(token: number): void {
    this.fencingToken = Math.max(this.fencingToken ?? 0, token - (this.turn?.handOffs ?? 0));
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  get isReleased(): boolean {
    return this.#end === "released";
  }

  get loss(): Loss | undefined {
    return typeof this.#end === "object" ? this.#end : undefined;
  }
}

/** The `replicas` of a request. Most requests need none. */
export function ofReplicas({ replicas }: { readonly replicas: number }): { readonly replicas?: number } {
  return replicas === 0 ? NONE : { replicas };
}

const NONE = {};
