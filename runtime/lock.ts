/// <reference lib="esnext.disposable" preserve="true" />
import { bounded } from "./bounded";
import {
  LockClosedError,
  LockLostError,
  LockUnreachableError,
  LockWaitTimeoutError,
  reasonOf,
} from "./errors";
import type { Locker } from "./locker";
import { findAround } from "./reentrancy";
import type { Settings } from "./settings";
import type { ReleaseReply } from "./store";
import type { CancelTimer } from "./clock";
import type { Lease } from "./lease";
import type { Line, Trouble } from "./lines";

/** The error class that a waiter throws instead of `LockWaitTimeoutError`. */
export type FailureClass = new (message: string, options?: ErrorOptions) => Error;

/**
 * One acquisition of one key: `acquire`, and `retryCheck` between tries; then held, and renewed; `release`.
 */
export class Lock implements AsyncDisposable {
  readonly key: string;
  /** Who we are to the store: 32 hex characters, new for each acquisition. */
  readonly requestId: string;
  readonly #locker: Locker;
  readonly #settings: Settings;
  readonly #site: string | undefined;
  #state: "waiting" | "held" | "ended" = "waiting";

  // While waiting.
  #line: Line | undefined;
  #startedAt = 0;
  #wakeUp: (() => void) | undefined;
  #onHold: (() => void) | undefined;
  #isWoken = false;
  #hasToldThatItWaits = false;

  // While held.
  #lease: Lease | undefined;
  #heldSince = 0;
  #cancelDeadline: CancelTimer | undefined;
  #aborter: AbortController | undefined;
  #fencingToken: number | undefined;
  #bodyFailed = false;
  #bodyEnded = false;

  // Reentrancy: bodies inside this lock, or the lock around that let this one in.
  #bodies = 0;
  #around: Lock | undefined;

  constructor(locker: Locker, key: string, settings: Settings, site: string | undefined) {
    this.#locker = locker;
    this.#settings = settings;
    this.#site = site;
    this.key = key;
    this.requestId = locker.newRequestId();
  }

  get lockTimeMs(): number {
    return this.#settings.lockTimeMs;
  }

  get wantsFencing(): boolean {
    return this.#settings.fencing;
  }

  get isWatched(): boolean {
    return this.#settings.watchdog;
  }

  get isAutoUnlocked(): boolean {
    return this.#settings.autoUnlock;
  }

  // ---- acquire ----------------------------------------------------------------------------------------

  /**
   * One try. Resolves to whether the lock is held now; `retryCheck` tells when to try again.
   *
   * @throws {LockMisconfiguredError} when the store refuses us for good
   * @throws {LockClosedError} after `shutdown()`
   */
  async acquire(): Promise<boolean> {
    if (this.#state === "held" || this.#enterAgain()) return true;
    const line = this.#standInLine();
    this.#goHomeWhenClosing();
    try {
      await this.#unlessHeldBefore(line.ask(this, this.#budgetEndsAt));
    } catch (error) {
      this.#giveUp();
      throw error;
    }
    this.#goHomeWhenClosing();
    return this.#isHeld();
  }

  /** Called by the line, at any time while the lock waits: from now on it is held. */
  hold(lease: Lease, fencingToken: number | undefined): void {
    const { clock, logger } = this.#locker;
    this.#state = "held";
    this.#lease = lease;
    this.#fencingToken = fencingToken;
    this.#bodies = 1;
    this.#heldSince = clock.now();
    this.#onHold?.();
    logger.debug?.(`${this.#story} holds the lock after ${this.#since(this.#startedAt)} ms`);
    this.wake();
  }

  #standInLine(): Line {
    if (this.#line === undefined) {
      this.#startedAt = this.#locker.clock.now();
      this.#line = this.#locker.lines.join(this);
    }
    return this.#line;
  }

  /** The lock may come while a try is under way, by a late reply to an earlier one: then it is held at once. */
  async #unlessHeldBefore(asked: Promise<void>): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => {
        this.#onHold = resolve;
        asked.then(resolve, reject);
      });
    } finally {
      this.#onHold = undefined;
    }
  }

  /** Not a comparison in place: what was awaited may have changed what the compiler believes to know. */
  #isHeld(): boolean {
    return this.#state === "held";
  }

  /** Re-entrancy by count: the async context that holds the key is let in again. */
  #enterAgain(): boolean {
    if (!this.#settings.reentrant || this.#line !== undefined) return false;
    const around = findAround(
      (lock) => lock.key === this.key && lock.#locker === this.#locker && lock.remaining() > 0,
    );
    if (around === undefined) return false;
    this.#around = around.#around ?? around;
    this.#around.#bodies += 1;
    this.#state = "held";
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
    if (this.#isHeld()) return true;
    this.#goHomeWhenClosing();
    const line = this.#standInLine();
    const budgetLeftMs = this.#budgetEndsAt - this.#locker.clock.now();
    if (budgetLeftMs <= 0) return this.#outOfTime(line.trouble, Failure);
    this.#tellOnceThatItWaits();
    const { waitTimeMs } = this.#settings;
    const untilNextCheckMs = waitTimeMs - (this.#waitedMs % waitTimeMs);
    await this.#sleep(Math.min(untilNextCheckMs, budgetLeftMs, line.lookAgainInMs(this)));
    return true;
  }

  #tellOnceThatItWaits(): void {
    if (!this.#hasToldThatItWaits) this.#locker.logger.debug?.(`${this.#story} waits`);
    this.#hasToldThatItWaits = true;
  }

  #outOfTime(trouble: Trouble | undefined, Failure: FailureClass | undefined): boolean {
    this.#giveUp();
    const { retryTimes, waitTimeMs, onFailure } = this.#settings;
    const waited = `within ${Math.round(this.#waitedMs)} ms (retryTimes=${retryTimes}, waitTime=${waitTimeMs}ms)`;
    if (trouble !== undefined) {
      const message = `${this.#name}: the store could not be asked ${waited}: ${reasonOf(trouble.error)}`;
      throw new LockUnreachableError(message, { cause: trouble.error });
    }
    if (onFailure === "skip") return false;
    const timeout = new LockWaitTimeoutError(
      `LOCK_WAIT_TIME_OUT: ${this.#name} is held by another and did not become free ${waited}`,
    );
    throw Failure === undefined ? timeout : new Failure(timeout.message, { cause: timeout });
  }

  /** Called when trying again makes sense, or when the lock came by itself. */
  wake(): void {
    this.#isWoken = true;
    this.#wakeUp?.();
  }

  async #sleep(ms: number): Promise<void> {
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        const cancel = this.#locker.clock.after(ms, resolve);
        this.#wakeUp = () => {
          cancel();
          resolve();
        };
      });
    }
    this.#wakeUp = undefined;
    this.#isWoken = false;
  }

  get #waitedMs(): number {
    return this.#locker.clock.now() - this.#startedAt;
  }

  get #budgetEndsAt(): number {
    return this.#startedAt + this.#settings.retryTimes * this.#settings.waitTimeMs;
  }

  #giveUp(): void {
    this.#state = "ended";
    this.#line?.giveUp(this);
    this.#locker.logger.debug?.(`${this.#story} gives up after ${Math.round(this.#waitedMs)} ms`);
  }

  #goHomeWhenClosing(): void {
    if (!this.#locker.lines.closing || this.#isHeld()) return;
    this.#giveUp();
    throw new LockClosedError(`${this.#name}: no lock is given any more, shutdown() has begun`);
  }

  // ---- hold -------------------------------------------------------------------------------------------

  /** Milliseconds for which the lock is surely held, by arithmetic on a monotonic clock; 0 when it is not. */
  remaining(): number {
    if (this.#state !== "held") return 0;
    return this.#around === undefined
      ? (this.#lease?.remaining(this.#locker.clock.now()) ?? 0)
      : this.#around.remaining();
  }

  /** @throws {LockLostError} unless the lock is surely held at this moment */
  assertHeld(): void {
    if (this.remaining() > 0) return;
    throw new LockLostError(`${this.#name} is not held: ${this.#whyNot}`);
  }

  /** Aborts, with a `LockLostError` as its reason, at the moment the lock is lost. */
  get signal(): AbortSignal {
    if (this.#around !== undefined) return this.#around.signal;
    if (this.#aborter === undefined) {
      this.#aborter = new AbortController();
      const remainingMs = this.remaining();
      if (remainingMs === 0) this.#abort();
      else if (!this.isWatched) {
        const lease = this.#lease;
        this.#cancelDeadline = this.#locker.clock.afterInBackground(remainingMs, () =>
          lease?.lose(DEADLINE_PASSED),
        );
      }
    }
    return this.#aborter.signal;
  }

  /** With `fencing`: a number that is larger for each later holder of the key. */
  get fencingToken(): number | undefined {
    return this.#around === undefined ? this.#fencingToken : this.#around.#fencingToken;
  }

  /** Called by the lease when it is lost under this holder. */
  lost(reason: string): void {
    this.#locker.logger.warn(`${this.#story} lost the lock: ${reason}`);
    this.#abort();
    this.#line?.first?.wake();
  }

  #abort(): void {
    this.#aborter?.abort(new LockLostError(`${this.#name} is no longer held: ${this.#whyNot}`));
  }

  get #whyNot(): string {
    if (this.#state !== "held") return "it was released";
    return (this.#around ?? this).#lease?.lostBecause ?? DEADLINE_PASSED;
  }

  // ---- release ----------------------------------------------------------------------------------------

  /** Takes note that the body failed: its error, which is returned unchanged, goes before any of ours. */
  fail<E>(error: E): E {
    this.#bodyFailed = true;
    return error;
  }

  /**
   * Gives the lock back, if it is still ours. Of several bodies inside a reentrant lock the last one does.
   *
   * @throws {LockLostError} when the lock had ended before the body did, unless the body failed itself
   */
  async release(): Promise<void> {
    const root = this.#around ?? this;
    if (this.#state === "ended" || this.#bodyEnded) return;
    if (this.#state === "waiting") return this.#giveUp();
    this.#bodyEnded = true;
    if (root !== this) this.#state = "ended";
    root.#bodies -= 1;
    if (root.#bodies === 0) await root.#end(this.#bodyFailed);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Gives the lock back under a body that is still at work, which learns by `signal` that it lost it. */
  async surrender(): Promise<void> {
    const lease = this.#lease;
    if (lease === undefined) return;
    const { lines, store, clock, commandTimeoutMs } = this.#locker;
    lines.renewals.stop(lease);
    lease.lose("shutdown() gave it back");
    if (!this.#settings.autoUnlock) return;
    const send = (): Promise<unknown> => store.release(this.key, lease.requestId);
    await bounded(clock, commandTimeoutMs, send).catch(() => {}); // The key expires by itself.
  }

  async #end(bodyFailed: boolean): Promise<void> {
    const lease = this.#lease;
    const line = this.#line;
    if (lease === undefined || line === undefined) return;
    const wasSure = this.remaining() > 0;
    this.#state = "ended"; // From here on nobody may rely on the lock, or enter it again.
    this.#cancelDeadline?.();
    if (!this.#settings.autoUnlock) {
      line.leaveToExpire(lease);
      return this.#tell("left to expire", wasSure, bodyFailed, lease.lostBecause);
    }
    let outcome: ReleaseReply | "unknown";
    let trouble: unknown;
    try {
      outcome = await line.release(lease, this);
    } catch (error) {
      outcome = "unknown";
      trouble = error;
    }
    this.#tell(outcome, wasSure, bodyFailed, lease.lostBecause, trouble);
  }

  /** Called by the line when the lock is no longer ours, as it should be. */
  released(): void {
    this.#locker.logger.debug?.(`${this.#story} released after ${this.#since(this.#heldSince)} ms`);
  }

  #tell(
    outcome: ReleaseReply | "left to expire" | "unknown",
    wasSure: boolean,
    bodyFailed: boolean,
    lostBecause: string | undefined,
    trouble?: unknown,
  ): void {
    const { logger } = this.#locker;
    const story = `${this.#story} ${outcome} after ${this.#since(this.#heldSince)} ms`;
    // The store's own word counts: a key that was still ours was ours all the time.
    const kept =
      outcome === "released" || ((outcome === "unknown" || outcome === "left to expire") && wasSure);
    if (outcome === "unknown") {
      logger.warn(
        `${story}: the release was not confirmed (${reasonOf(trouble)}); the key expires at the latest in its lock time`,
      );
    } else if (outcome === "left to expire" && kept) {
      logger.debug?.(story);
    }
    if (kept) return;
    const lost = `${this.#name}: the lock was lost before its work was done (${lostBecause ?? outcome}); somebody else may have worked at the same time`;
    if (bodyFailed || this.#settings.onLost === "warn") logger.warn(lost);
    else throw new LockLostError(lost, { cause: trouble });
  }

  /** The lock as people know it: its key, and the function that asked for it. */
  get #name(): string {
    return this.#site === undefined ? this.key : `${this.key} (${this.#site})`;
  }

  /** How a line of the time line begins; the first digits tell two requests apart. */
  get #story(): string {
    return `${this.#name} ${this.requestId.slice(0, 8)}`;
  }

  #since(start: number): number {
    return Math.round(this.#locker.clock.now() - start);
  }
}

const DEADLINE_PASSED = "its deadline passed";
