/// <reference lib="esnext.disposable" preserve="true" />
import { Alarm } from "./alarm";
import {
  LockClosedError,
  LockLostError,
  LockUnreachableError,
  LockWaitTimeoutError,
  reasonOf,
  type CausedBy,
} from "./errors";
import { DEADLINE_PASSED, type Lease } from "./lease";
import type { Locker, Place } from "./locker";
import { findAround } from "./reentrancy";
import type { Settings } from "./settings";
import type { AcquireRequest } from "./store";
import { nameOf, type Outcome } from "./story";
import { Wait } from "./wait";

/** The error class that a waiter throws instead of `LockWaitTimeoutError`. */
export type FailureClass = new (message: string, options?: CausedBy) => Error;

/**
 * One acquisition of one key: `acquire`, and `retryCheck` between tries; then held, and renewed; `release`.
 *
 * There are many: so its methods are `private` and not `#`, for which each object would carry a mark.
 */
export class Lock implements AsyncDisposable, AcquireRequest {
  readonly key: string;
  /**
   * Who we are: 32 hex characters, new for each acquisition. The key in the store holds that of the first lock of
   * this process's stay on it.
   */
  readonly requestId: string;
  readonly #place: Place;
  /** It is held from "at work" to "left": when its own body has left, others may be inside a reentrant lock. */
  #phase: "waiting" | "at work" | "failed" | "left" | "ended" = "waiting";
  #wait: Wait | undefined;

  // While held.
  #lease: Lease | undefined;
  heldSince = 0;
  #alarm: Alarm | undefined;
  #fencingToken: number | undefined;
  /** Of a reentrant lock. */
  #nest: Nest | undefined;

  constructor(place: Place, key: string) {
    this.#place = place;
    this.key = key;
    this.requestId = place.locker.newRequestId();
  }

  private get locker(): Locker {
    return this.#place.locker;
  }

  private get settings(): Settings {
    return this.#place.settings;
  }

  /** The function that asked for it: `OrderService.pay`. */
  get site(): string | undefined {
    return this.#place.site;
  }

  get lockTimeMs(): number {
    return this.settings.lockTimeMs;
  }

  /** Whether a fencing token is wanted. */
  get fencing(): boolean {
    return this.settings.fencing;
  }

  get isWatched(): boolean {
    return this.settings.watchdog;
  }

  get isAutoUnlocked(): boolean {
    return this.settings.autoUnlock;
  }

  // ---- acquire ----------------------------------------------------------------------------------------

  /**
   * One try. Resolves to whether the lock is held now; `retryCheck` tells when to try again.
   *
   * @param signal ends the wait: `acquire` or `retryCheck` rejects with its reason at once
   * @throws {LockMisconfiguredError} when the store refuses us for good
   * @throws {LockClosedError} after `shutdown()`
   */
  acquire(signal?: AbortSignal): Promise<boolean> {
    if (this.isHeld || this.enterAgain()) return IS_HELD;
    if (this.isSpent) return Promise.reject(this.notHeld());
    const wait = (this.#wait ??= this.standInLine(signal));
    const held = wait.try();
    if (this.locker.lines.closing) this.sendHome();
    else wait.line.ask(this);
    return held;
  }

  /** It was held, and released: a lock is one acquisition. */
  private get isSpent(): boolean {
    return this.#phase === "ended" && this.#wait === undefined;
  }

  private standInLine(signal: AbortSignal | undefined): Wait {
    const { clock, lines, story } = this.locker;
    const wait = new Wait(clock, lines.join(this));
    story.asks(this);
    if (signal?.aborted === true) this.abandon(wait, signal);
    else if (signal !== undefined) wait.listen(signal, () => this.abandon(wait, signal));
    return wait;
  }

  private abandon(wait: Wait, { reason }: AbortSignal): void {
    this.giveUp(wait);
    wait.fail(reason);
  }

  /** Called by the line when a try is over. If it was granted, the lock is held by now. */
  tried(): void {
    if (this.locker.lines.closing) this.sendHome();
    else this.#wait?.tryEnds(false);
  }

  /** Called by the line when the store refuses us for good. */
  refused(error: unknown): void {
    const wait = this.#wait;
    if (wait === undefined) return;
    this.giveUp(wait);
    wait.fail(error);
  }

  /** Called by the line, at any time while the lock waits: from now on it is held. */
  hold(lease: Lease, fencingToken: number | undefined, now: number): void {
    const { story } = this.locker;
    const wait = this.#wait;
    this.#wait = undefined;
    this.#phase = "at work";
    this.#lease = lease;
    this.#fencingToken = fencingToken;
    if (this.settings.reentrant) this.#nest = { root: this, bodies: 1 };
    this.heldSince = Math.floor(now);
    story.holds(this, wait === undefined ? 0 : now - wait.since);
    wait?.succeed();
  }

  /** Re-entrancy by count: the async context that holds the key is let in again. */
  private enterAgain(): boolean {
    if (!this.settings.reentrant || this.#wait !== undefined) return false;
    const around = findAround(
      (lock) => lock.key === this.key && lock.locker === this.locker && lock.remaining() > 0,
    );
    if (around === undefined || around.#nest === undefined) return false;
    this.#nest = around.#nest;
    this.#nest.bodies += 1;
    this.#phase = "at work";
    return true;
  }

  // ---- wait -------------------------------------------------------------------------------------------

  /**
   * Waits until trying again makes sense, and resolves to true then. When the wait budget (`retryTimes` x
   * `waitTime`) is spent it throws, or resolves to false with `onFailure: "skip"`.
   *
   * @param Failure thrown instead of `LockWaitTimeoutError`, which becomes its `cause`
   * @throws {LockWaitTimeoutError} when somebody else held the lock all the time
   * @throws {LockUnreachableError} when the store did not answer the last try
   * @throws {LockClosedError} after `shutdown()`
   */
  async retryCheck(Failure?: FailureClass): Promise<boolean> {
    if (this.isHeld) return true;
    if (this.isSpent) throw this.notHeld();
    const wait = (this.#wait ??= this.standInLine(undefined));
    if (this.locker.lines.closing) this.sendHome();
    wait.check();
    const budgetLeftMs = this.budgetEndsAt - this.locker.clock.now();
    if (budgetLeftMs <= 0) return this.outOfTime(wait, Failure);
    if (!wait.hasTold) this.locker.story.waits(this);
    wait.hasTold = true;
    const { waitTimeMs } = this.settings;
    const untilNextCheckMs = waitTimeMs - (wait.pastMs % waitTimeMs);
    await wait.sleep(Math.min(untilNextCheckMs, budgetLeftMs, wait.line.lookAgainInMs(this)));
    return true;
  }

  /** On the monotonic clock: when a lock that waits gives up. */
  get budgetEndsAt(): number {
    return (this.#wait?.since ?? 0) + this.settings.retryTimes * this.settings.waitTimeMs;
  }

  /** Called when trying again makes sense. */
  wake(): void {
    this.#wait?.wake();
  }

  private outOfTime(wait: Wait, Failure: FailureClass | undefined): boolean {
    const { trouble } = wait.line;
    this.giveUp(wait);
    const { retryTimes, waitTimeMs, onFailure } = this.settings;
    const waited = `within ${Math.round(wait.pastMs)} ms (retryTimes=${retryTimes}, waitTime=${waitTimeMs}ms)`;
    if (trouble !== undefined) {
      const message = `${nameOf(this)}: the store could not be asked ${waited}: ${reasonOf(trouble.error)}`;
      throw new LockUnreachableError(message, { cause: trouble.error });
    }
    if (onFailure === "skip") return false;
    const timeout = new LockWaitTimeoutError(
      `LOCK_WAIT_TIME_OUT: ${nameOf(this)} is held by another and did not become free ${waited}`,
    );
    throw Failure === undefined ? timeout : new Failure(timeout.message, { cause: timeout });
  }

  private giveUp(wait: Wait): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    wait.end();
    wait.line.giveUp(this);
    this.locker.story.givesUp(this, wait.pastMs);
  }

  /** No lock is given any more: whoever awaits this one, now or later, is told so. */
  private sendHome(): void {
    const wait = this.#wait;
    if (wait === undefined) return;
    this.giveUp(wait);
    wait.fail(new LockClosedError(`${nameOf(this)}: no lock is given any more, shutdown() has begun`));
  }

  // ---- hold -------------------------------------------------------------------------------------------

  private get isHeld(): boolean {
    return this.#phase !== "waiting" && this.#phase !== "ended";
  }

  /** The lock that holds the key: of reentrant locks inside each other, the outermost. */
  private get root(): Lock {
    return this.#nest?.root ?? this;
  }

  /** Milliseconds for which the lock is surely held, by arithmetic on a monotonic clock; 0 when it is not. */
  remaining(): number {
    return this.isHeld ? (this.root.#lease?.remaining(this.locker.clock.now()) ?? 0) : 0;
  }

  /** @throws {LockLostError} unless the lock is surely held at this moment */
  assertHeld(): void {
    if (this.remaining() === 0) throw this.notHeld();
  }

  /** Aborts, with a `LockLostError` as its reason, at the moment the lock is lost. */
  get signal(): AbortSignal {
    if (this.root !== this) return this.root.signal;
    if (this.#alarm === undefined) {
      this.#alarm = new Alarm(this.locker.clock, this.#lease, this.isWatched);
      if (this.remaining() === 0) this.soundAlarm();
    }
    return this.#alarm.signal;
  }

  /** With `fencing`: a number that is larger for each later holder of the key. */
  get fencingToken(): number | undefined {
    return this.root.#fencingToken;
  }

  /** Called by the lease when it is lost under this holder. */
  lost(reason: string): void {
    this.locker.story.lost(this, reason);
    this.soundAlarm();
    this.#lease?.line.first?.wake();
  }

  private soundAlarm(): void {
    this.#alarm?.sound(new LockLostError(`${nameOf(this)} is no longer held: ${this.whyNot}`));
  }

  private notHeld(): LockLostError {
    return new LockLostError(`${nameOf(this)} is not held: ${this.whyNot}`);
  }

  private get whyNot(): string {
    return this.isHeld ? (this.root.#lease?.lostBecause ?? DEADLINE_PASSED) : "it was released";
  }

  // ---- release ----------------------------------------------------------------------------------------

  /** Takes note that the body failed: its error, which is returned unchanged, goes before any of ours. */
  fail<E>(error: E): E {
    if (this.#phase === "at work") this.#phase = "failed";
    return error;
  }

  /**
   * Gives the lock back, if it is still ours. Of several bodies inside a reentrant lock the last one does.
   *
   * @throws {LockLostError} when the lock had ended before the body did, unless the body failed itself
   */
  release(): Promise<void> {
    if (this.#phase === "waiting") this.cancel();
    if (this.#phase === "ended" || this.#phase === "left") return IS_DONE;
    const hasFailed = this.#phase === "failed";
    const root = this.root;
    this.#phase = root === this ? "left" : "ended";
    if (this.#nest !== undefined && (this.#nest.bodies -= 1) > 0) return IS_DONE;
    return root.#lease === undefined ? IS_DONE : root.end(root.#lease, hasFailed);
  }

  private cancel(): void {
    if (this.#wait !== undefined) this.giveUp(this.#wait);
    this.#phase = "ended";
    this.#wait?.tryEnds(false);
    this.#wait?.fail(this.notHeld());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** Gives the lock back under a body that is still at work, which learns by `signal` that it lost it. */
  async surrender(): Promise<void> {
    const lease = this.#lease;
    if (lease === undefined) return;
    const { lines, store } = this.locker;
    lines.renewals.stop(lease);
    lease.lose("shutdown() gave it back");
    if (!this.settings.autoUnlock) return;
    // What fails here expires by itself.
    await lines.commands.ask(() => store.release(this.key, lease.requestId)).catch(() => {});
  }

  private end(lease: Lease, bodyFailed: boolean): Promise<void> {
    const now = this.locker.clock.now();
    const wasSure = lease.remaining(now) > 0;
    this.#phase = "ended"; // From here on nobody may rely on the lock, or enter it again.
    this.#alarm?.disarm();
    return new Promise((resolve, reject) => {
      const done = (outcome: Outcome, trouble?: unknown): void => {
        const lost = this.conclude(outcome, wasSure, trouble);
        if (lost === undefined) return resolve();
        if (!bodyFailed && this.settings.onLost === "throw") return reject(lost);
        this.locker.logger.warn(lost.message);
        resolve();
      };
      if (this.settings.autoUnlock) return lease.line.release(lease, this, now, done);
      done("left to expire");
      lease.line.leaveToExpire(lease);
    });
  }

  /** Tells what came of the lock. Returns what its caller must know if it was lost. */
  private conclude(outcome: Outcome, wasSure: boolean, trouble: unknown): LockLostError | undefined {
    const { clock, story } = this.locker;
    story.ends(this, outcome, clock.now() - this.heldSince, trouble);
    // The store's word counts, and where it has none, or one that proves nothing, ours does.
    const isLost = outcome === "expired" || outcome === "stolen";
    const isProven = outcome === "released" && this.#lease?.isOnlyGrant === true;
    if (isProven || (wasSure && !isLost)) return undefined;
    const why = this.#lease?.lostBecause ?? (isLost ? outcome : DEADLINE_PASSED);
    const message = `${nameOf(this)}: the lock was lost before its work was done (${why}); somebody else may have worked at the same time`;
    return new LockLostError(message, { cause: trouble });
  }
}

const IS_HELD = Promise.resolve(true);
const IS_DONE = Promise.resolve();

/** A reentrant lock and those that it let in: it is given back when the last of their bodies has left. */
interface Nest {
  readonly root: Lock;
  bodies: number;
}
