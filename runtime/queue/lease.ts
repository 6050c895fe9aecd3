import type { ReleaseRequest, Renewed, RenewRequest } from "../stores/port";
import type { Belief } from "../suspension";
import type { Holder } from "./holder";
import type { Loss } from "./loss";
import type { HandOffTurn } from "./hand-off-turn";

/** Redis counts the time to live on its own clock. This clock may run faster by this ratio, and has this granularity. */
const DRIFT_RATIO = 0.01;
const DRIFT_MS = 2;

/**
 * A hold of this process on one key, with its deadline, until it is released or lost. Several callers of the process may
 * hold it one after another.
 *
 * Only two kinds of commands prove a lease: the command that acquired the key with this `requestId`, and renewals of that
 * ID. The lock time counts from before the command was sent: see {@link prove}. The lease ends for good before any command
 * is sent that could end the hold in the store: see {@link end}.
 */
export class Lease implements Belief {
  readonly key: string;
  /** The value of the key. Only the command that acquired the key writes this value. */
  readonly requestId: string;
  lockTimeMs: number;
  /** How many replicas must confirm a command before it proves the lease. */
  replicas = 0;
  /** The first of the fencing tokens that the store granted with the lease. */
  fencingToken: number | undefined;
  /**
   * Whether the reply to the command that acquired the key arrived over a connection that did not break. Then no command
   * under way can acquire the key a second time. So if the key still has the `requestId` at the end, it had it all the time.
   */
  readonly isOnlyGrant: boolean;
  /** The caller in this process that holds the lock now. */
  holder: Holder | undefined;
  /** Set at the first hand-off. */
  turn: HandOffTurn | undefined;
  /** When to renew it. Only `Renewals` uses this. */
  renewAt = 0;
  #end: "given back" | "left to expire" | Loss | undefined;
  /** The deadline, and the time at which the command that proved it was sent: whole milliseconds of the monotonic clock. */
  #deadline = 0;
  #provenFrom = 0;

  constructor(
    key: string,
    requestId: string,
    lockTimeMs: number,
    fencingToken: number | undefined,
    isOnlyGrant: boolean,
  ) {
    this.key = key;
    this.requestId = requestId;
    this.lockTimeMs = lockTimeMs;
    this.fencingToken = fencingToken;
    this.isOnlyGrant = isOnlyGrant;
  }

  /**
   * Notes the reply to a command. When the store ran it, the key had our `requestId`, with at least `lockTimeMs` to live. A
   * later deadline that an earlier command proved stays.
   *
   * @param sentAt the monotonic time that was read before the command was sent
   * @param trustedSince whole milliseconds. A command that was sent earlier proves nothing. A new lease needs no limit,
   *   because each check looks for a suspension.
   */
  prove(sentAt: number, lockTimeMs: number, trustedSince = -Infinity): void {
    if (sentAt < trustedSince) return;
    // Whole milliseconds need no memory beside their field.
    const deadline = Math.floor(sentAt + lockTimeMs * (1 - DRIFT_RATIO) - DRIFT_MS);
    if (deadline < this.#deadline && this.#provenFrom >= trustedSince) return;
    this.#deadline = deadline;
    this.#provenFrom = Math.floor(sentAt);
  }

  /** The time until which the key certainly has our `requestId`. For {@link Suspension.timeLeft}, which reads the clock. */
  sureUntil(trustedSince: number): number {
    return !this.isOver && this.isTrusted(trustedSince) ? this.#deadline : -Infinity;
  }

  /**
   * Whether its last proof was sent since then. Also works for a lease that is over.
   *
   * @param trustedSince see {@link prove}
   */
  isTrusted(trustedSince: number): boolean {
    return this.#provenFrom >= trustedSince;
  }

  /** The milliseconds until its deadline, trusted or not. 0 if no renewal can be in time any more. */
  untilDeadline(now: number): number {
    return this.isOver ? 0 : this.untilExpiry(now);
  }

  /** The same for a lease that may be over. 0 if the key has expired in any case. */
  untilExpiry(now: number): number {
    return Math.max(this.#deadline - now, 0);
  }

  /** How long its holder may still hold it (`holdAtMost`), renewed or not, in milliseconds. */
  mayBeHeldForMs(now: number): number {
    return Math.max((this.holder?.mayHoldUntil ?? Infinity) - now, 0);
  }

  /** Whether a renewal would add almost nothing, because its holder may not hold it much longer. */
  isAtItsLimit(now: number): boolean {
    return this.mayBeHeldForMs(now) - this.untilDeadline(now) <= this.lockTimeMs / 30;
  }

  /** Ends a lease that is lost, or may be. Reports this to its holder and to those that handed it off. */
  lose(loss: Loss): void {
    if (this.isOver) return;
    this.#end = loss;
    this.holder?.onLost(loss);
    this.turn?.tellAll(loss);
  }

  /** Ends the lease in good order. Call it before any command is sent that ends the hold in the store. */
  end(how: "given back" | "left to expire"): void {
    this.#end = how;
  }

  /** Whether several callers may hold it together. */
  get isShared(): boolean {
    return false;
  }

  /** How many callers hold it together. */
  get callers(): number {
    return 1;
  }

  /** Makes that caller the holder. */
  enter(holder: Holder): void {
    this.holder = holder;
  }

  /** Whether that caller holds it, and has not handed it off. */
  isHeldBy(holder: Holder): boolean {
    return this.holder === holder;
  }

  /** Why that caller has lost it, if it has. */
  lossFor(_holder: Holder): Loss | undefined {
    return this.loss;
  }

  /** As {@link sureUntil}, for one of its holders. */
  sureUntilFor(_holder: Holder, trustedSince: number): number {
    return this.sureUntil(trustedSince);
  }

  /** Handles the reply to a renewal. */
  onRenewed(_sentAt: number, _reply: Renewed): void {}

  /** Further parameters of a renewal. */
  get renewTerms(): Pick<RenewRequest, "permits" | "count"> {
    return NONE;
  }

  /** The command that ends it in the store now. */
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

  /** Notes a token that was drawn for the current holder. Replies may arrive out of order, so the largest one counts. */
  drawnInside(token: number): void {
    this.fencingToken = Math.max(this.fencingToken ?? 0, token - (this.turn?.handOffs ?? 0));
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  get isGivenBack(): boolean {
    return this.#end === "given back";
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
