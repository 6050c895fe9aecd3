/// <reference lib="esnext.disposable" preserve="true" />
import type { CancelTimer } from "../base/clock";
import { milliseconds, type Duration } from "../base/duration";
import {
  LockError,
  LockLostError,
  LockMisconfiguredError,
  LockUnreachableError,
  errorMessage,
  type LockErrorOptions,
} from "../base/errors";
import { LOCK_ATTRIBUTES } from "../attributes/table";
import type { Holder, Lease } from "../queue/lease";
import { deadlinePassed, HELD_AT_MOST_INSIDE, SUSPENDED, type Loss } from "../queue/loss";
import { Aborter } from "./aborter";
import { nameOf } from "./events";
import type { CallSite, Locker } from "./locker";
import { namedError } from "./named-error";
import { unlessAborted } from "./on-abort";
import { findAround, Nest } from "./reentrancy";
import { mayBeEnteredAgain, sharingOf, type Settings } from "./settings";
import { lossToReport, outcomeOf, provenLoss, type ReleaseFacts } from "./verdict";
import { Wait, type AwaitedLock, type FailureClass } from "./wait";

/**
 * One acquisition of one key: `acquire`, with `retryCheck` between tries, then `release`. While it is held, the runtime renews it.
 *
 * Methods are `private` instead of `#`, because a process may have very many locks, and each object with `#` methods takes more memory.
 */
export class Lock implements AsyncDisposable, AwaitedLock, Holder {
  readonly key: string;
  /** Identifies this acquisition: 32 hex characters. The value of the key in the store is {@link storeValue}. */
  readonly requestId: string;
  readonly #callSite: CallSite;
  /** It is held from "running" to "left". After its own body has left a reentrant lock, other bodies may still be inside. */
  #phase: "waiting" | "running" | "failed" | "left" | "ended" = "waiting";
  #wait: Wait | undefined;

  // The state while it is held.
  #lease: Lease | undefined;
  /** The start of the hold, on the monotonic clock, in milliseconds. */
  heldSince = 0;
  #aborter: Aborter | undefined;
  #fencingToken: number | undefined;
  /** Set for a reentrant lock. */
  #nest: Nest<Lock> | undefined;
  /** Set while it enters a reentrant lock again. */
  #entry: Promise<boolean> | undefined;

  constructor(callSite: CallSite, key: string) {
    this.#callSite = callSite;
    this.key = key;
    this.requestId = callSite.locker.newRequestId();
  }

  private get locker(): Locker {
    return this.#callSite.locker;
  }

  private get settings(): Settings {
    return this.#callSite.settings;
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
    return this.settings.store;
  }

  /** The function that acquires it, such as `OrderService.pay`. */
  get site(): string | undefined {
    return this.#callSite.site;
  }

  get lockTimeMs(): number {
    return this.settings.lockTimeMs;
  }

  /** Whether it needs a fencing token. */
  get fencing(): boolean {
    return this.settings.fencing;
  }

  /** The number of replicas that must confirm it. */
  get replicas(): number {
    return this.settings.replicas;
  }

  /** The number of permits of the key: 1 if one caller holds it alone. */
  get permits(): number {
    return this.settings.permits;
  }

  /** Whether the watchdog renews it. It always does while the caller waits for other keys of the same `MultiLock`. */
  get isWatched(): boolean {
    const { group } = this.#callSite;
    return this.settings.watchdog || (group !== undefined && group.heldSince === undefined);
  }

  /** On the monotonic clock: the time until which the key stays closed, even if the body ends earlier (`lockAtLeast`). */
  get staysUntil(): number {
    return this.heldSince + this.settings.lockAtLeastMs;
  }

  get mayHoldUntil(): number {
    const { group } = this.#callSite;
    const since = group === undefined ? this.heldSince : (group.heldSince ?? Infinity);
    return since + this.settings.holdAtMostMs;
  }

  get isInUse(): boolean {
    return this.#callSite.group?.isInUse ?? true;
  }

  get isAutoUnlocked(): boolean {
    return this.settings.autoUnlock;
  }

  get mayShareHold(): boolean {
    const { watchdog, autoUnlock, holdAtMostMs } = this.settings;
    const isLimitKnown = this.#callSite.group === undefined || holdAtMostMs === Infinity;
    return watchdog && autoUnlock && isLimitKnown;
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
    if (this.#entry !== undefined) return this.#entry;
    if (this.#wait === undefined) {
      const outer = findAround(Lock.isEntered, this);
      if (outer !== undefined && this.permits < outer.root.permits) {
        return Promise.reject(this.wouldWaitForItself(outer.root));
      }
      if (outer !== undefined && mayBeEnteredAgain(this.settings)) {
        return (this.#entry = this.enterAgain(outer.root, signal));
      }
    }
    const wait = this.#wait ?? this.startWait(signal);
    if (this.isHeld) return IS_HELD; // A subscriber to the event released the lock in the meantime, so it is ours now.
    if (this.locker.queues.isClosed) wait.onClosed();
    return wait.try();
  }

  /** The error for a caller that shares a key and acquires it again with fewer permits. It would wait for the others and for itself. */
  private wouldWaitForItself(root: Lock): LockMisconfiguredError {
    this.#phase = "ended";
    const [outerMode, innerMode] = [root, this].map(({ settings }) => sharingOf(settings));
    return new LockMisconfiguredError(
      `${nameOf(this)} is acquired with ${innerMode} inside a body that holds it with ${outerMode}, so it would wait for that body to end. Fix: acquire it with ${innerMode} around that body, or after it`,
    );
  }

  /** Whether it was released, or failed to enter a reentrant lock. A `Lock` is one acquisition, and cannot be acquired again. */
  private get isSpent(): boolean {
    return this.#phase === "ended" && this.#wait === undefined;
  }

  private startWait(signal: AbortSignal | undefined): Wait {
    const wait = new Wait(this, this.#callSite);
    this.#wait = wait;
    wait.start(signal);
    return wait;
  }

  onGaveUp(): void {
    this.#phase = "ended";
  }

  begin(lease: Lease, fencingToken: number | undefined): number | undefined {
    if (!this.startIfCertain(lease)) return undefined;
    const now = this.locker.queues.suspension.readAt;
    this.#wait = undefined;
    this.#lease = lease;
    this.#fencingToken = fencingToken;
    if (mayBeEnteredAgain(this.settings)) this.#nest = new Nest<Lock>(this);
    this.heldSince = Math.floor(now);
    lease.enter(this);
    return now;
  }

  /**
   * Decides whether the body may begin. Every body passes this check, whether the lease is new, handed off, or entered again.
   *
   * @returns false if the lease is not certain. Then nothing has changed
   */
  private startIfCertain(lease: Lease): boolean {
    // This may notice a suspension, and end this wait. So the phase is read afterwards.
    const leftMs = this.locker.queues.suspension.timeLeft(lease);
    if (this.#phase !== "waiting" || leftMs === 0) return false;
    this.#phase = "running";
    return true;
  }

  // ---- reentrancy -------------------------------------------------------------------------------------

  /** Whether the outer lock holds the key of the other lock, in the same store. */
  private static isEntered(this: void, outer: object, { key, locker }: Lock): outer is Lock {
    if (!(outer instanceof Lock)) return false;
    return outer.key === key && outer.locker === locker && outer.isHeld && outer.root.isHeld;
  }

  /** Enters the lock that the async context already holds. The lease then meets the terms of both, or the entry fails. */
  private async enterAgain(root: Lock, signal: AbortSignal | undefined): Promise<boolean> {
    const [lease, nest] = [root.#lease, root.#nest];
    const { queues } = this.locker;
    if (lease === undefined || nest === undefined) throw root.notHeld();
    if (signal?.aborted === true) {
      this.#phase = "ended";
      throw signal.reason;
    }
    nest.enter();
    this.#nest = nest;
    try {
      const { lockTimeMs, fencing, replicas } = this;
      const wanted = { lockTimeMs, fencing, replicas, isWatched: this.settings.watchdog };
      if (root.remaining() > 0) await unlessAborted(queues.strengthen(lease, wanted, signal), signal);
      if (this.isSpent) return await this.leaveNest(nest);
      if (root.remaining() === 0 || !this.startIfCertain(lease)) throw root.notHeld();
      this.heldSince = Math.floor(queues.suspension.readAt);
      this.limit(nest);
    } catch (error) {
      this.#phase = "ended";
      await this.leaveNest(nest);
      if (error instanceof LockError || error === signal?.reason) throw namedError(this, error);
      const message = `${nameOf(this)}: the store could not apply the options of this call to the lock that it reenters: ${errorMessage(error)}`;
      throw new LockUnreachableError(message, { cause: error });
    }
    root.#fencingToken ??= lease.tokenOfHolder;
    return true;
  }

  /** Leaves the reentrant lock. If all other bodies have left, releases the lock, because they relied on this one to do so. */
  private async leaveNest(nest: Nest<Lock>): Promise<false> {
    if (nest.leave()) await nest.root.end(this, true);
    return false;
  }

  /** Whether its own `holdAtMost` may end the lock for this body alone. The `holdAtMost` of the outermost lock ends the lease instead. */
  private get hasOwnEnd(): boolean {
    return this.root !== this && this.settings.holdAtMostMs < Infinity;
  }

  /** On the monotonic clock: when this body loses the lock, although the bodies around it keep it. */
  private get ownEnd(): number {
    return this.hasOwnEnd ? this.mayHoldUntil : Infinity;
  }

  /** Sets the timer for its own `holdAtMost`, if it has one. */
  private limit(nest: Nest<Lock>): void {
    if (!this.hasOwnEnd) return;
    const { clock } = this.locker;
    const leftMs = Math.max(this.ownEnd - clock.now(), 0);
    // If several keys are acquired together, this time is unknown until all of them are held.
    const isTimeKnown = leftMs < Infinity;
    const cancel = isTimeKnown
      ? clock.afterInBackground(leftMs, () => void this.endEarly(nest))
      : NOTHING_SET;
    nest.setOwnEnd(this, cancel);
  }

  /** Ends the lock for this body at its own `holdAtMost`. The body counts as having left, so it cannot keep the lock alone if it hangs. */
  private endEarly(nest: Nest<Lock>): Promise<unknown> {
    nest.clearOwnEnd(this);
    this.abort();
    return this.leaveNest(nest);
  }

  /** Whether its own `holdAtMost` has ended it. Another caller may hold the lease by now. */
  private get hasEndedEarly(): boolean {
    return this.hasOwnEnd && this.#nest?.hasOwnEnd(this) !== true;
  }

  // ---- wait -------------------------------------------------------------------------------------------

  /**
   * Waits until the next try, and then resolves to true. When the wait budget (`retryTimes` x `waitTime`) is over, it throws, or, with
   * `onFailure: "skip"`, resolves to false.
   *
   * @param Failure thrown instead of `LockWaitTimeoutError`, which becomes its `cause`
   * @throws {LockWaitTimeoutError} if another caller held the lock the whole time
   * @throws {LockUnreachableError} if the store did not reply to the last try
   * @throws {LockClosedError} after `shutdown()`
   */
  retryCheck(Failure?: FailureClass): Promise<boolean> {
    if (this.isHeld) return IS_HELD;
    if (this.isSpent) return Promise.reject(this.notHeld());
    if (this.#entry !== undefined) return this.#entry;
    const wait = this.#wait ?? this.startWait(undefined);
    if (this.isHeld) return IS_HELD;
    if (this.locker.queues.isClosed) wait.onClosed();
    return wait.retryCheck(Failure);
  }

  /** Makes its caller try again now, if it is waiting. */
  wake(): void {
    this.#wait?.wake();
  }

  // ---- hold -------------------------------------------------------------------------------------------

  private get isHeld(): boolean {
    return this.#phase !== "waiting" && this.#phase !== "ended";
  }

  /** The lock that holds the key: the outermost one of nested reentrant locks. */
  private get root(): Lock {
    return this.#nest?.root ?? this;
  }

  /**
   * The value of the key in the store while the lock is held. Your own scripts can compare it, to act only under the lock. A hand-off
   * inside the process keeps it. `undefined` if the lock is not held.
   */
  get storeValue(): string | undefined {
    return this.isHeld && !this.hasEndedEarly ? this.root.#lease?.requestId : undefined;
  }

  /** The time until the deadline in milliseconds, measured on a monotonic clock, or 0. */
  remaining(): number {
    return this.locker.queues.suspension.timeLeft(this);
  }

  /** See {@link Belief.sureUntil}. */
  sureUntil(trustedSince: number): number {
    const { root } = this;
    const sureUntil = this.isHeld ? (root.#lease?.sureUntilFor(root, trustedSince) ?? -Infinity) : -Infinity;
    return this.hasOwnEnd ? Math.min(sureUntil, this.ownEnd) : sureUntil;
  }

  /** @throws {LockLostError} if the lock is lost, or its deadline is over */
  assertHeld(): void {
    if (this.remaining() === 0) throw this.notHeld();
  }

  /**
   * Extends the lock to at least this long from now. The watchdog still renews it.
   *
   * @throws {LockLostError} if it is not held, or lost
   * @throws {LockUnreachableError} if the store did not reply. The earlier deadline still applies
   * @throws {LockMisconfiguredError} if the store rejects the extension
   */
  async extend(duration: Duration): Promise<void> {
    await this.holdFor(milliseconds("duration", duration, LOCK_ATTRIBUTES.lockTime.from));
  }

  private async holdFor(ms: number, timeoutMs?: number): Promise<void> {
    this.assertHeld();
    const lease = this.root.#lease;
    if (lease === undefined) throw this.notHeld();
    try {
      // The lease of a shared hold has no `holdAtMost`, because each caller has its own.
      const end = lease.isShared ? Math.min(this.ownEnd, this.mayHoldUntil) : this.ownEnd;
      const untilEndMs = Math.max(Math.ceil(end - this.locker.clock.now()), 1);
      await this.locker.queues.prolong(lease, Math.min(ms, untilEndMs), timeoutMs);
    } catch (error) {
      if (error instanceof LockError) throw namedError(this, error);
      const message = `${nameOf(this)}: the lock could not be extended in the store: ${errorMessage(error)}`;
      throw new LockUnreachableError(message, { cause: error });
    }
    this.assertHeld();
  }

  /** Whether its deadline has passed, or it was reported as lost. */
  get isLost(): boolean {
    return this.isHeld && this.untilDeadline(this.locker.clock.now()) === 0;
  }

  /** The milliseconds until its deadline, whether or not the machine has been suspended since. */
  private untilDeadline(now: number): number {
    const { root } = this;
    const lease = this.isHeld ? root.#lease : undefined;
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
    return this.holdFor(this.lockTimeMs, timeoutMs);
  }

  /** Starts the body of its `MultiLock`. From now on, the lock is renewed only if its options say so. */
  beginGroup(): void {
    if (this.root !== this && this.#nest !== undefined) return this.limit(this.#nest);
    if (this.isWatched || this.#lease === undefined) return;
    this.locker.queues.stopRenewing(this.#lease);
  }

  /**
   * Aborts with a `LockLostError` when the lock is lost. Its listeners run in the async context in which the signal was first read.
   */
  get signal(): AbortSignal {
    if (this.root !== this && !this.hasOwnEnd) return this.root.signal;
    if (this.#aborter === undefined) {
      this.#aborter = new Aborter();
      const { clock, queues } = this.locker;
      queues.suspension.trustedSince(); // This may end the lease.
      const lease = this.root.#lease;
      if (lease === undefined || this.untilDeadline(clock.now()) === 0) this.abort();
      else queues.renewals.watchDeadline(lease);
    }
    return this.#aborter.signal;
  }

  /** With `fencing`: a number that is larger for each later holder of the key. */
  get fencingToken(): number | undefined {
    return this.root.#fencingToken;
  }

  onRenewed(): boolean {
    return this.locker.events.renewed(this);
  }

  onLost(loss: Loss): void {
    this.locker.events.lost(this, loss);
    this.abort();
    for (const inner of this.#nest?.withOwnEnd() ?? []) inner.abort();
    if (this.#lease !== undefined) this.locker.queues.onFree(this.#lease);
    this.#callSite.group?.onLost();
  }

  private abort(): void {
    this.#aborter?.abort(
      new LockLostError(`${nameOf(this)} is no longer held: ${this.loss.because}`, this.causeOf(this.loss)),
    );
  }

  private notHeld(): LockLostError {
    return new LockLostError(`${nameOf(this)} is not held: ${this.loss.because}`, this.causeOf(this.loss));
  }

  private get loss(): Loss {
    if (!this.isHeld) return RELEASED;
    const lease = this.root.#lease;
    const loss = lease?.lossFor(this.root);
    if (loss !== undefined) return loss;
    const now = this.locker.clock.now();
    if (now >= this.ownEnd) return HELD_AT_MOST_INSIDE;
    return (lease?.untilDeadline(now) ?? 0) > 0 ? SUSPENDED : deadlinePassed();
  }

  private causeOf({ cause }: Loss): LockErrorOptions {
    return cause === undefined ? {} : { cause };
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
   * @throws {LockLostError} if the lock ended before the body did, unless the body failed
   */
  release(): Promise<void> {
    if (this.#phase === "waiting") this.cancel();
    if (this.#phase === "ended" || this.#phase === "left") return IS_DONE;
    const hasFailed = this.#phase === "failed";
    const { root } = this;
    const nest = this.#nest;
    const lost = nest === undefined || this.remaining() > 0 ? undefined : this.loss;
    const isLast = nest === undefined || (!this.hasEndedEarly && nest.leave());
    nest?.clearOwnEnd(this);
    this.#phase = root === this ? "left" : "ended";
    if (isLast && lost !== HELD_AT_MOST_INSIDE) return root.end(this, hasFailed);
    const ended = isLast ? root.end(this, true) : IS_DONE;
    return lost === undefined ? ended : ended.then(() => this.tell(lost, hasFailed));
  }

  private cancel(): void {
    this.#wait?.giveUp();
    this.#phase = "ended";
    this.#wait?.onTried();
    this.#wait?.refuse(this.notHeld());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** @param last the lock whose body left last. Its caller learns of a loss */
  private end(last: Lock, hasFailed: boolean): Promise<void> {
    const lease = this.#lease;
    if (lease === undefined) return IS_DONE;
    const { queues, events } = this.locker;
    const wasSure = this.remaining() > 0;
    const now = queues.suspension.readAt;
    const earlierLoss = lease.lossFor(this);
    this.#phase = "ended"; // From now on, no body may rely on the lock or enter it again.
    if (wasSure && this.settings.release === "background" && this.locker.openReleases.begin()) {
      this.endInBackground(last, lease, now);
      return IS_DONE;
    }
    return new Promise((resolve, reject) => {
      const ended = (loss: Loss | undefined): void => {
        const lost = this.conclude(lease, loss, wasSure, earlierLoss);
        if (lost === undefined) resolve();
        else last.tell(lost, hasFailed).then(resolve, reject);
      };
      if (this.settings.autoUnlock) {
        queues.release(lease, this, this.isWatched, now, ended);
      } else {
        events.ends(this, "left to expire", now - this.heldSince, undefined);
        queues.leaveToExpire(lease);
        if (wasSure) resolve();
        else last.tell(earlierLoss ?? deadlinePassed(), hasFailed).then(resolve, reject);
      }
    });
  }

  /** Releases the lock while the caller continues. If the reply shows that the lock was lost, that goes to the log and the events. */
  private endInBackground(last: Lock, lease: Lease, now: number): void {
    const { queues, openReleases } = this.locker;
    queues.release(lease, this, this.isWatched, now, (loss) => {
      openReleases.end();
      const lost = this.conclude(lease, loss, true, undefined);
      if (lost !== undefined) last.warnOf(lost);
    });
  }

  onHandedOff(): void {
    const { queues, events } = this.locker;
    events.ends(this, "handed off", queues.suspension.readAt - this.heldSince, undefined);
  }

  /** Publishes the outcome of the lock. Returns why it was lost, if it was. */
  private conclude(
    lease: Lease,
    loss: Loss | undefined,
    wasSure: boolean,
    earlierLoss: Loss | undefined,
  ): Loss | undefined {
    const { events, queues } = this.locker;
    // A suspension during the body may be noticed only now.
    const wasCertain = wasSure && lease.isTrusted(queues.suspension.trustedSince());
    const heldMs = queues.suspension.readAt - this.heldSince;
    const { isShared } = lease;
    const facts: ReleaseFacts = {
      loss,
      earlierLoss,
      wasCertain,
      hasHandedOff: !isShared && !lease.isHeldBy(this),
      isShared,
      isReplyReliable: lease.isOnlyGrant && lease.replicas === 0,
    };
    const proven = provenLoss(facts);
    if (!facts.hasHandedOff) events.ends(this, outcomeOf(facts), heldMs, loss?.cause);
    else if (proven !== undefined) events.lost(this, proven); // The hand-off itself was already published.
    return lossToReport(facts);
  }

  /** Reports the loss to the caller in the way that `onLost` asks for. */
  private tell(loss: Loss, hasFailed: boolean): Promise<void> {
    if (!hasFailed && this.settings.onLost === "throw") {
      return Promise.reject(new LockLostError(this.wasLost(loss), this.causeOf(loss)));
    }
    this.warnOf(loss);
    return IS_DONE;
  }

  private warnOf(loss: Loss): void {
    this.locker.logger.warn(this.wasLost(loss));
  }

  private wasLost({ because }: Loss): string {
    return `${nameOf(this)}: the lock was lost before the body ended (${because}). Another body may have run at the same time`;
  }
}

const IS_HELD = Promise.resolve(true);
const IS_DONE = Promise.resolve();
const NOTHING_SET: CancelTimer = () => {};
const RELEASED: Loss = { outcome: "unknown", because: "it was released", isEarly: false };
