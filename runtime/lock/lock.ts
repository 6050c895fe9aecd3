/// <reference lib="esnext.disposable" preserve="true" />
import { milliseconds, type Duration } from "../base/duration";
import { LockError, LockLostError, LockUnreachableError, errorMessage } from "../base/errors";
import { LOCK_ATTRIBUTES } from "../attributes/table";
import type { Holder, Lease } from "../queue/lease";
import { UNREACHABLE_PAUSE_MS } from "../queue/waiter";
import { deadlinePassed, HELD_AT_MOST_INSIDE, SUSPENDED, type Loss } from "../queue/loss";
import { Aborter } from "./aborter";
import { lockOf, nameOf, namedError } from "./events";
import { errorOfGuard, guardAll } from "./guard";
import type { GuardRequest, RunSql } from "../stores/port";
import type { Locker, LockPart, Terms } from "./locker";
import { enterAround, Nest, type NestedLock } from "./nest";
import { isReasonOf } from "./on-abort";
import { findAround, isInsideBody, type FramedLock } from "./reentrancy";
import { causeOf, endHold, reportLostError, type ReleasedLock } from "./release";
import { Wait, type AwaitedLock, type FailureClass } from "./wait";

/**
 * One acquisition of one key: `acquire`, with `retryCheck` between tries, then `release`. While it is held, the runtime renews it.
 *
 * Methods are `private` instead of `#`, because a process may have very many locks, and each object with `#` methods takes more memory.
 */
export class Lock implements AsyncDisposable, AwaitedLock, NestedLock, Holder, FramedLock {
  readonly key: string;
  /** Identifies this acquisition: 32 hex characters. The value of the key in the store is {@link storeValue}. */
  readonly requestId: string;
  readonly terms: Terms;
  /**
   * It is held from "running" to "left". After its own body has left a reentrant lock, other bodies may still be inside. A "declined" lock
   * has ended before its body began.
   */
  #phase: "waiting" | "running" | "failed" | "left" | "ended" | "declined" = "waiting";
  #wait: Wait | undefined;

  // The state while it is held.
  #lease: Lease | undefined;
  /** The start of the hold, on the monotonic clock, in milliseconds. */
  heldSince = 0;
  #aborter: Aborter | undefined;
  #fencingToken: number | undefined;
  /** Set for a reentrant lock: the outermost lock, and all that its body has entered. */
  nest: Nest | undefined;
  /** Set if it enters a reentrant lock again. */
  #entry: Promise<boolean> | undefined;
  isBodyKnown = false;

  constructor(terms: Terms, key: string) {
    this.terms = terms;
    this.key = key;
    this.requestId = terms.locker.newRequestId();
  }

  private get locker(): Locker {
    return this.terms.locker;
  }

  /** Set if it is one of the locks of a `MultiLock`. */
  get part(): LockPart | undefined {
    return undefined;
  }

  /** The key, in a list: see {@link MultiLock.keys}. */
  get keys(): readonly string[] {
    return [this.key];
  }

  /** This lock, in a list: see {@link MultiLock.locks}. */
  get locks(): readonly Lock[] {
    return [this];
  }

  /** The name of its store. */
  get store(): string {
    return this.terms.store;
  }

  /** The function that acquires it, such as `OrderService.pay`. */
  get site(): string | undefined {
    return this.terms.site;
  }

  /** Whether the watchdog renews it. It always does while the caller waits for other keys of the same `MultiLock`. */
  get isWatched(): boolean {
    const group = this.part?.group;
    return this.terms.watchdog || (group !== undefined && group.heldSince === undefined);
  }

  /** On the monotonic clock: the time until which the key stays closed, even if the body ends earlier (`lockAtLeast`). */
  get staysUntil(): number {
    if (this.#phase === "declined") return -Infinity;
    return this.heldSince + this.terms.lockAtLeastMs;
  }

  get mayHoldUntil(): number {
    const { part } = this;
    const since = part === undefined ? this.heldSince : (part.group.heldSince ?? Infinity);
    return since + this.terms.holdAtMostMs;
  }

  get isInUse(): boolean {
    return this.part?.group.isInUse ?? true;
  }

  get isAutoUnlocked(): boolean {
    return this.terms.autoUnlock === true;
  }

  // ---- acquire ----------------------------------------------------------------------------------------

  /**
   * Tries to acquire the lock. Resolves to whether it is held now. If not, `retryCheck` waits for the next try. A second call during a
   * try joins that try.
   *
   * @param signal ends the wait: `acquire` or `retryCheck` rejects with its reason immediately
   * @throws {LockMisconfiguredError} if a retry cannot help
   * @throws {LockLostError} if the caller enters a reentrant lock again that is lost or released
   * @throws {LockClosedError} after `shutdown()`
   */
  acquire(signal?: AbortSignal): Promise<boolean> {
    if (this.isHeld) return IS_HELD;
    if (this.isSpent) return Promise.reject(this.notHeld());
    // A reentrant body around this call may hold the key.
    this.#entry ??= isInsideBody() && this.#wait === undefined ? this.enterAround(signal) : undefined;
    return this.#entry ?? this.wait.try(signal);
  }

  private enterAround(signal: AbortSignal | undefined): Promise<boolean> | undefined {
    const entry = enterAround<Lock>(this, Lock.isEntered, signal);
    if (this.terms.onUnreachable === "throw") return entry;
    return entry?.catch((error: unknown) => {
      // An abort may have the error of another lock as its reason.
      if (!(error instanceof LockUnreachableError) || isReasonOf(signal, error)) throw error;
      this.#entry = IS_SKIPPED;
      return IS_SKIPPED;
    });
  }

  /** Whether the outer lock is reentrant, and holds the key of the other lock in the same store. */
  private static isEntered(this: void, outer: object, { key, locker }: Lock): outer is Lock {
    if (!(outer instanceof Lock) || outer.nest === undefined) return false;
    return outer.key === key && outer.locker === locker && outer.isHeld && outer.root.isHeld;
  }

  /** Whether it was released, or failed to enter a reentrant lock. A `Lock` is one acquisition, and cannot be acquired again. */
  get isSpent(): boolean {
    return this.hasEnded && this.#wait === undefined;
  }

  /** The wait in the queue of its key. It begins with the first try. */
  private get wait(): Wait {
    return (this.#wait ??= new Wait(this));
  }

  onGaveUp(): void {
    this.#phase = "ended";
  }

  begin(lease: Lease, fencingToken: number | undefined): number | undefined {
    if (!this.startIfCertain(lease)) return undefined;
    const now = this.terms.locker.manager.certainty.readAt;
    this.#wait = undefined;
    this.#lease = lease;
    this.#fencingToken = fencingToken;
    if (this.terms.mayReenter) this.nest = new Nest(this);
    this.heldSince = Math.floor(now);
    lease.enter(this);
    return now;
  }

  /**
   * Decides whether the body may begin. Every body passes this check, whether the lease is new, handed off, or entered again.
   *
   * @returns false if the lease is not certain. Then nothing has changed
   */
  startIfCertain(lease: Lease): boolean {
    // This may notice a suspension, and end this wait. So the phase is read afterwards.
    const leftMs = this.locker.manager.certainty.timeLeft(lease);
    if (this.#phase !== "waiting" || leftMs === 0) return false;
    this.#phase = "running";
    return true;
  }

  // ---- wait -------------------------------------------------------------------------------------------

  /**
   * Waits until the next try, and then resolves to true. When the wait budget is over, it throws, or, with `onFailure: "skip"` or
   * `onUnreachable: "skip"`, resolves to false.
   *
   * @param Failure thrown instead of `LockWaitTimeoutError`, which becomes its `cause`
   * @throws {LockWaitTimeoutError} if another caller held the lock the whole time
   * @throws {LockUnreachableError} if the store did not reply to the last try
   * @throws {LockClosedError} after `shutdown()`
   */
  retryCheck(Failure?: FailureClass): Promise<boolean> {
    if (this.isHeld) return IS_HELD;
    if (this.#entry === IS_SKIPPED) return IS_SKIPPED;
    if (this.isSpent) return Promise.reject(this.notHeld());
    return this.#entry ?? this.wait.retryCheck(Failure);
  }

  /** The lock around the running code that holds the same key alone. Its body may be waiting for this call. */
  get ownCaller(): Lock | undefined {
    return isInsideBody() ? findAround(Lock.holdsAlone, this) : undefined;
  }

  private static holdsAlone(this: void, outer: object, { key, locker }: Lock): outer is Lock {
    if (!(outer instanceof Lock) || outer.key !== key || outer.locker !== locker) return false;
    return outer.isBodyInside && outer.terms.permits === 1;
  }

  get isBodyInside(): boolean {
    return (this.#phase === "running" || this.#phase === "failed") && this.remaining() > 0;
  }

  /** Makes its caller try again now, if it is waiting. */
  wake(): void {
    this.#wait?.wake();
  }

  // ---- hold -------------------------------------------------------------------------------------------

  get isHeld(): boolean {
    return this.#phase !== "waiting" && !this.hasEnded;
  }

  private get hasEnded(): boolean {
    return this.#phase === "ended" || this.#phase === "declined";
  }

  /** The lock that holds the key: the outermost one of nested reentrant locks. */
  get root(): NestedLock {
    return this.nest?.root ?? this;
  }

  /** On the monotonic clock: when this body loses the lock, although the bodies around it keep it. */
  private get ownEnd(): number {
    return this.nest?.ownEndOf(this) ?? Infinity;
  }

  get lease(): Lease | undefined {
    return this.#lease;
  }

  /**
   * The value of the key in the store while the lock is held. Your own scripts can compare it, to act only under the lock. A hand-off
   * inside the process keeps it. `undefined` if the lock is not held.
   */
  get storeValue(): string | undefined {
    const hasEndedEarly = this.nest?.hasEndedEarly(this) === true;
    return this.isHeld && !hasEndedEarly ? this.root.lease?.requestId : undefined;
  }

  /** The time until the deadline in milliseconds, measured on a monotonic clock, or 0. */
  remaining(): number {
    return this.locker.manager.certainty.timeLeft(this);
  }

  /** See {@link Belief.sureUntil}. */
  sureUntil(trustedSince: number): number {
    const { root, ownEnd } = this;
    if (!this.isHeld || root.lease === undefined) return -Infinity;
    return Math.min(root.lease.sureUntilFor(root, trustedSince), ownEnd);
  }

  /** @throws {LockLostError} if the lock is lost, or its deadline is over */
  assertHeld(): void {
    if (this.remaining() === 0) throw this.notHeld();
  }

  /**
   * Checks the lock right before its body. Code that ran since the grant may have blocked the process for the lock time.
   *
   * @throws {LockLostError} if the lock is lost, or its deadline is over
   */
  assertMayBegin(): void {
    this.assertHeld();
  }

  /**
   * Extends the lock to at least this long from now. The watchdog still renews it. If the store does not reply, this retries until the
   * earlier deadline.
   *
   * @throws {LockLostError} if it is not held, or lost
   * @throws {LockUnreachableError} if the store did not confirm the extension before the earlier deadline
   * @throws {LockMisconfiguredError} if the store rejects the extension
   */
  async extend(duration: Duration): Promise<void> {
    const ms = milliseconds("duration", duration, LOCK_ATTRIBUTES.lockTime.from);
    const { clock } = this.locker;
    for (;;) {
      try {
        return await this.holdFor(ms);
      } catch (error) {
        if (!(error instanceof LockUnreachableError)) throw error;
        await new Promise<void>((resolve) => void clock.after(UNREACHABLE_PAUSE_MS, resolve));
        if (this.remaining() === 0) throw error;
      }
    }
  }

  private async holdFor(ms: number, timeoutMs?: number): Promise<void> {
    this.assertHeld();
    const lease = this.root.lease;
    if (lease === undefined) throw this.notHeld();
    try {
      // The lease of a shared hold has no `holdAtMost`, because each caller has its own.
      const end = lease.isShared ? Math.min(this.ownEnd, this.mayHoldUntil) : this.ownEnd;
      const untilEndMs = Math.max(Math.ceil(end - this.locker.clock.now()), 1);
      await this.locker.manager.prolong(lease, Math.min(ms, untilEndMs), timeoutMs);
    } catch (error) {
      if (error instanceof LockError) throw namedError(this, error);
      const message = `${nameOf(this)}: the lock could not be extended in the store: ${errorMessage(error)}`;
      throw new LockUnreachableError(message, { ...lockOf(this), cause: error });
    }
    this.assertHeld();
  }

  /** See {@link HeldLock.guard}. */
  guard(run: RunSql): Promise<void> {
    return guardAll([this], run);
  }

  beginGuard(): GuardRequest | undefined {
    const lease = this.root.lease;
    const requestId = this.storeValue;
    if (lease === undefined || requestId === undefined) return undefined;
    // Another caller of this process may have its permit by now, under the same request ID.
    if (lease.isShared && lease.lossFor(this.root) !== undefined) return undefined;
    lease.guard();
    return { key: this.key, requestId };
  }

  /** Whether its deadline has passed, or it was reported as lost. */
  get isLost(): boolean {
    return this.isHeld && this.untilDeadline(this.locker.clock.now()) === 0;
  }

  /** The milliseconds until its deadline, whether or not the machine has been suspended since. */
  private untilDeadline(now: number): number {
    const { root } = this;
    const lease = this.isHeld ? root.lease : undefined;
    if (lease === undefined || lease.lossFor(root) !== undefined) return 0;
    return Math.min(lease.untilDeadline(now), Math.max(this.ownEnd - now, 0));
  }

  /**
   * Renews it for its lock time from now, because all keys of its `MultiLock` are held now.
   *
   * @param timeoutMs the time that the command may take
   * @throws as {@link extend} does
   */
  renewOnce(timeoutMs: number): Promise<void> {
    return this.holdFor(this.terms.lockTimeMs, timeoutMs);
  }

  /** Starts the body of its `MultiLock`. From now on, the lock is renewed only if its options say so. */
  beginGroup(): void {
    if (this.root !== this && this.nest !== undefined) return this.nest.limit(this);
    if (this.isWatched || this.#lease === undefined) return;
    this.locker.manager.stopRenewing(this.#lease);
  }

  /**
   * Aborts with a `LockLostError` when the lock is lost. Its listeners run in the async context in which the signal was first read.
   */
  get signal(): AbortSignal {
    if (this.root !== this && this.nest?.hasOwnEnd(this) !== true) return this.root.signal;
    if (this.#aborter === undefined) {
      this.#aborter = new Aborter();
      const { clock, manager } = this.locker;
      manager.certainty.trustedSince(); // This may end the lease.
      const lease = this.root.lease;
      if (lease === undefined || this.untilDeadline(clock.now()) === 0) this.abort();
      else manager.renewals.watchDeadline(lease);
    }
    return this.#aborter.signal;
  }

  /** With `fencing`: a number that is larger for each later holder of the key. */
  get fencingToken(): number | undefined {
    const { root } = this;
    return root === this ? this.#fencingToken : root.fencingToken;
  }

  /** Notes the token that a lock inside it has drawn. */
  noteToken(token: number | undefined): void {
    this.#fencingToken ??= token;
  }

  onRenewed(): boolean {
    return this.locker.events.renewed(this);
  }

  onLost(loss: Loss): void {
    this.locker.events.lost(this, loss);
    this.abort();
    this.nest?.abortInside();
    if (this.#lease !== undefined) this.locker.manager.onFree(this.#lease);
    this.part?.group.onLost();
  }

  abort(): void {
    this.#aborter?.abort(
      new LockLostError(`${nameOf(this)} is no longer held: ${this.loss.because}`, {
        ...lockOf(this),
        ...causeOf(this.loss),
      }),
    );
  }

  notHeld(): LockLostError {
    return new LockLostError(`${nameOf(this)} is not held: ${this.loss.because}`, {
      ...lockOf(this),
      ...causeOf(this.loss),
    });
  }

  get loss(): Loss {
    if (!this.isHeld) return RELEASED;
    const lease = this.root.lease;
    const loss = lease?.lossFor(this.root);
    if (loss !== undefined) return loss;
    const now = this.locker.clock.now();
    if (now >= this.ownEnd) return HELD_AT_MOST_INSIDE;
    return (lease?.untilDeadline(now) ?? 0) > 0 ? SUSPENDED : deadlinePassed();
  }

  // ---- release ----------------------------------------------------------------------------------------

  /** Notes that the body failed. Returns its error unchanged. That error takes precedence over errors from the release. */
  fail<E>(error: E): E {
    if (this.#phase === "running") this.#phase = "failed";
    return error;
  }

  /**
   * Releases the lock, if this process still holds it. The last body inside a reentrant lock does so. With `release: "background"`, it does
   * not wait for the reply of the store if the lock is certain.
   *
   * @throws {LockLostError} if the lock ended before the body did, or its guard failed, unless the body failed
   */
  release(): Promise<void> {
    if (this.#phase === "waiting") this.cancel();
    if (this.hasEnded || this.#phase === "left") return IS_DONE;
    const hasFailed = this.#phase === "failed";
    const error = hasFailed ? undefined : errorOfGuard(this);
    if (error !== undefined) return this.leave(true).then(() => reportLostError(this, error));
    if (!hasFailed && this.terms.autoUnlock === "onError" && this.root === this) return this.keep();
    return this.leave(hasFailed);
  }

  /**
   * Releases it before its body begins, because its caller has given up. The key is then free, whatever the options say. Does not wait for
   * the reply of the store.
   */
  decline(): void {
    if (this.#phase !== "running") return;
    this.#phase = "failed";
    void (this.root === this ? this.end(this, true, true) : this.leave(true));
  }

  /** Ends it with `autoUnlock: "onError"`, after a body that succeeded. The key stays for one lock time from now. */
  private async keep(): Promise<void> {
    // Without a reply, the key stays for the rest of its lock time. If that shows a loss, `leave` reports it.
    await this.holdFor(this.terms.lockTimeMs).catch(() => {});
    if (this.isHeld && this.#phase !== "left") await this.leave(this.#phase === "failed");
  }

  private leave(hasFailed: boolean): Promise<void> {
    if (this.nest !== undefined) return this.nest.release(this, hasFailed);
    this.onLeft();
    return this.end(this, hasFailed);
  }

  /** Notes that its body has left. A lock inside another one ends with its body. */
  onLeft(): void {
    this.#phase = this.root === this ? "left" : "ended";
  }

  private cancel(): void {
    this.#wait?.giveUp("abandoned");
    this.#phase = "ended";
    this.#wait?.onTried();
    this.#wait?.refuse(this.notHeld());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /**
   * @param last the lock whose body left last. Its caller learns of a loss
   * @param isDeclined whether no body has run
   */
  end(last: ReleasedLock, hasFailed: boolean, isDeclined = false): Promise<void> {
    const lease = this.#lease;
    if (lease === undefined) return IS_DONE;
    const wasSure = this.remaining() > 0;
    const now = this.locker.manager.certainty.readAt;
    const earlierLoss = lease.lossFor(this);
    this.#phase = isDeclined ? "declined" : "ended"; // From now on, no body may rely on the lock or enter it again.
    const { autoUnlock } = this.terms;
    const isKept =
      !isDeclined &&
      (autoUnlock === false || (autoUnlock === "onError" && !(this.nest?.hasRootFailed ?? hasFailed)));
    return endHold(this, { lease, wasSure, earlierLoss, isKept }, now, last, hasFailed);
  }

  onHandedOff(): void {
    const { manager, events } = this.locker;
    events.ends(this, "handed off", manager.certainty.readAt - this.heldSince, undefined);
  }
}

const IS_HELD = Promise.resolve(true);
const IS_SKIPPED = Promise.resolve(false);
const IS_DONE = Promise.resolve();
const RELEASED: Loss = { outcome: "unknown", because: "it was released", isEarly: false };
