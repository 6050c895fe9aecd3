import type { DropRequest, Renewed, RenewRequest } from "../stores/port";
import type { Belief } from "../suspension";
import type { Holder } from "./holder";
import type { Loss } from "./loss";
import type { Turn } from "./turn";

/** Redis counts time to live on its own clock: what that clock may run faster, and its granularity. */
const DRIFT_RATIO = 0.01;
const DRIFT_MS = 2;

/**
 * One stay of this process on a key: what it believes that the store has for it, until it is given back or lost.
 * Several holders in the process may have it, one after the other.
 *
 * The belief rests on two kinds of commands and no others: the one that took the key with this `requestId`, and the
 * renewals that name it. Each counts from before it was sent: see {@link prove}. It ends, for good, before anything is
 * sent that could end the hold in the store: see {@link end}.
 */
export class Lease implements Belief {
  readonly key: string;
  /** What the key holds. No command but the one that took the key was ever to write it. */
  readonly requestId: string;
  lockTimeMs: number;
  /** How many replicas must have it for a command to prove it. */
  replicas = 0;
  /** The first of the fencing tokens that came with the lease. */
  fencingToken: number | undefined;
  /**
   * Whether the reply to the very command that took the key was heard, over a connection that did not break. Then nothing
   * is under way any more that could take it once more, so that a key which still has the `requestId` at the end
   * proves that it had it all the time.
   */
  readonly isOnlyGrant: boolean;
  /** Who in this process holds the lock now. */
  holder: Holder | undefined;
  /** Once it was handed on. */
  turn: Turn | undefined;
  /** When it is to be renewed: the business of `Renewals`. */
  renewAt = 0;
  #end: "given back" | "left to expire" | Loss | undefined;
  /** Until when, on the monotonic clock in whole milliseconds, and when the command was sent that proved it. */
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
   * Notes the reply to a command: when the store carried it out, the key held our `requestId`, for `lockTimeMs` at
   * least. What an earlier command proved for longer still holds.
   *
   * @param sentAt the monotonic time that was read before the command was sent
   * @param trustedSince whole milliseconds: a command that was sent before proves nothing. A new lease needs none, because
   *   each check looks for a suspension.
   */
  prove(sentAt: number, lockTimeMs: number, trustedSince = -Infinity): void {
    if (sentAt < trustedSince) return;
    // Whole milliseconds need no memory beside their field.
    const deadline = Math.floor(sentAt + lockTimeMs * (1 - DRIFT_RATIO) - DRIFT_MS);
    if (deadline < this.#deadline && this.#provenFrom >= trustedSince) return;
    this.#deadline = deadline;
    this.#provenFrom = Math.floor(sentAt);
  }

  /** Until when the key surely holds our `requestId`: for {@link Suspension.timeLeft}, which alone reads the clock. */
  sureUntil(trustedSince: number): number {
    return !this.isOver && this.isTrusted(trustedSince) ? this.#deadline : -Infinity;
  }

  /**
   * Whether what proved it last was sent since then. It also tells of a lease that is over.
   *
   * @param trustedSince see {@link prove}
   */
  isTrusted(trustedSince: number): boolean {
    return this.#provenFrom >= trustedSince;
  }

  /** The milliseconds until its deadline, trusted or not: 0 when no renewal can come in time any more. */
  untilDeadline(now: number): number {
    return this.isOver ? 0 : this.untilExpiry(now);
  }

  /** The same, over or not: 0 when the store has it no more in any case. */
  untilExpiry(now: number): number {
    return Math.max(this.#deadline - now, 0);
  }

  /** For how long its holder may have it from now on, renewed or not, in milliseconds. */
  mayBeHeldForMs(now: number): number {
    return Math.max((this.holder?.mayHoldUntil ?? Infinity) - now, 0);
  }

  /** Whether a renewal would prolong it by next to nothing, because its holder may not have it for longer. */
  isAtItsLimit(now: number): boolean {
    return this.mayBeHeldForMs(now) - this.untilDeadline(now) <= this.lockTimeMs / 30;
  }

  /** It is no longer ours, or no longer surely so: for good. Whoever holds it, or has handed it on, is told. */
  lose(loss: Loss): void {
    if (this.isOver) return;
    this.#end = loss;
    this.holder?.onLost(loss);
    this.turn?.tellAll(loss);
  }

  /** It is over, in good order. To be called before anything is sent that ends the hold in the store. */
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

  /** From now on that caller holds it. */
  enter(holder: Holder): void {
    this.holder = holder;
  }

  /** Whether that caller holds it, and has not handed it on. */
  isHeldBy(holder: Holder): boolean {
    return this.holder === holder;
  }

  /** Why it is lost for that caller, if it is. */
  lossFor(_holder: Holder): Loss | undefined {
    return this.loss;
  }

  /** See {@link sureUntil}, for one of those who may hold it. */
  sureUntilFor(_holder: Holder, trustedSince: number): number {
    return this.sureUntil(trustedSince);
  }

  /** A renewal in its turn was answered. */
  onRenewed(_sentAt: number, _reply: Renewed): void {}

  /** What a renewal says besides. */
  get renewTerms(): Pick<RenewRequest, "permits" | "count"> {
    return NONE;
  }

  /** What ends it in the store, now. */
  dropRequest(now: number): DropRequest {
    const { key, requestId, holder } = this;
    const closedForMs = Math.ceil((holder?.staysUntil ?? 0) - now);
    return closedForMs > 0 ? { key, requestId, closedForMs } : { key, requestId };
  }

  /** The fencing token of who holds it now. */
  get tokenOfHolder(): number | undefined {
    return this.fencingToken === undefined ? undefined : this.fencingToken + (this.turn?.handOns ?? 0);
  }

  /** The fencing token of the next holder in this process. */
  get tokenOfNext(): number | undefined {
    return this.tokenOfHolder === undefined ? undefined : this.tokenOfHolder + 1;
  }

  /** A token was drawn for who holds it now. Of several that were drawn at a time, the largest may be heard first. */
  drawnInside(token: number): void {
    this.fencingToken = Math.max(this.fencingToken ?? 0, token - (this.turn?.handOns ?? 0));
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

/** For a request: most ask for none. */
export function ofReplicas({ replicas }: { readonly replicas: number }): { readonly replicas?: number } {
  return replicas === 0 ? NONE : { replicas };
}

const NONE = {};
