import type { CancelTimer } from "../base/clock";
import type { Duration } from "../base/duration";
import {
  LockLostError,
  LockMisconfiguredError,
  LockUnreachableError,
  LockWaitTimeoutError,
  errorMessage,
} from "../base/errors";
import { LEAST_COMMAND_TIME_MS, UNREACHABLE_PAUSE_MS } from "../queue/waiter";
import type { Trouble } from "../queue/loss";
import { Aborter } from "./aborter";
import { guardAll } from "./guard";
import { Lock } from "./lock";
import type { RunSql } from "../stores/port";
import { termsOfPart, type Locker, type LockGroup, type LockPart, type Terms } from "./locker";
import { isReasonOf, onAbort, reasonOf, unlessAborted } from "./on-abort";
import { failWith } from "./on-failure";
import type { FailureClass } from "./wait";

/**
 * One acquisition of several keys: all of them or none. The order in which they are listed does not matter.
 *
 * It first tries all keys together. It keeps the locks before the first busy key, and releases the others. Then it waits for the busy key,
 * and tries the remaining keys again. So it waits for keys in the order of their bytes, and a caller that waits for a key holds only keys
 * before it. No cycle of waiters is possible (Havender, Avoiding deadlock in multitasking systems, 1968).
 */
export class MultiLock implements AsyncDisposable {
  /** The keys in the order of their bytes, without duplicates. */
  readonly keys: readonly string[];
  readonly requestId: string;
  readonly #terms: Terms;
  /** On the monotonic clock: when the wait for all keys began. */
  #since: number | undefined;
  /** The locks that are held: those of the first keys. */
  #held: Lock[] = [];
  /** The lock of the next key: the caller waits for it, or it was tried together with others and is busy. */
  #next: { readonly lock: Lock; readonly isWaitedFor: boolean } | undefined;
  /** The locks that are being tried together. */
  #tried: readonly Lock[] = [];
  #try: Promise<boolean> | undefined;
  #isOver = false;
  /** Whether its caller skips the body, because the store did not reply. */
  #isSkipped = false;
  /** On the monotonic clock: the time since which all locks have been held. `holdAtMost` counts from then. */
  #heldSince: number | undefined;
  /** Whether one try acquired all locks, so that they have their whole lock time. */
  #hasWholeLockTime = false;
  /** The reason why the renewal before the body failed, if it did. */
  #trouble: Trouble | undefined;
  readonly #group = this.#newGroup();
  /** All locks, once they were held at the same time. */
  #all: readonly Lock[] | undefined;
  #aborter: Aborter | undefined;
  #signal: AbortSignal | undefined;
  #isBodyKnown = false;

  constructor(terms: Terms, keys: readonly string[]) {
    this.#terms = termsOfPart(terms);
    this.keys = [...new Set(keys)].toSorted(byBytes);
    this.requestId = terms.locker.newRequestId();
  }

  get #locker(): Locker {
    return this.#terms.locker;
  }

  /** All keys, for messages. */
  get key(): string {
    return this.keys.join(" ");
  }

  /** Each key has its own value: see {@link locks}. */
  get storeValue(): undefined {
    return undefined;
  }

  get fencingToken(): undefined {
    return undefined;
  }

  /** The lock of each key, in their order, while all are held. */
  get locks(): readonly Lock[] {
    return this.#held;
  }

  /** See {@link Lock.isBodyKnown}. */
  get isBodyKnown(): boolean {
    return this.#isBodyKnown;
  }

  set isBodyKnown(isKnown: boolean) {
    this.#isBodyKnown = isKnown;
    for (const lock of this.#held) lock.isBodyKnown = isKnown;
  }

  // ---- acquire ----------------------------------------------------------------------------------------

  /** Tries once, as {@link Lock.acquire} does. Resolves to whether all keys are held now. */
  acquire(signal?: AbortSignal): Promise<boolean> {
    this.#signal ??= signal;
    return (this.#try ??= this.#acquire(signal).finally(() => {
      this.#try = undefined;
    }));
  }

  async #acquire(signal: AbortSignal | undefined): Promise<boolean> {
    this.#startOnce();
    try {
      while (!this.#isOver) {
        this.#releaseFromLost();
        if (this.#held.length === this.keys.length) {
          if (await this.#begin(signal)) return true;
          if (this.#trouble !== undefined) return false;
          continue;
        }
        if (this.#next === undefined && this.keys.length - this.#held.length > 1) {
          await this.#tryRemaining(signal);
        } else {
          this.#next ??= this.#newWaiter();
          this.#hasWholeLockTime = false;
        }
        if (this.#isOver || this.#next === undefined) continue;
        const { lock, isWaitedFor } = this.#next;
        if (!isWaitedFor || !(await lock.acquire(signal))) return false;
        this.#next = undefined;
        this.#held.push(lock);
      }
      throw this.#notHeld();
    } catch (error) {
      const discarded = this.#discard();
      if (signal?.aborted !== true) await discarded; // An abort ends the wait immediately.
      this.#isSkipped =
        this.#terms.onUnreachable === "skip" &&
        signal?.aborted !== true &&
        error instanceof LockUnreachableError;
      if (this.#isSkipped) return false;
      throw error;
    }
  }

  #startOnce(): void {
    if (this.#since !== undefined) return;
    const { clock, manager } = this.#locker;
    this.#since = clock.now();
    if (!this.#isOver) manager.onMultiLockBegin();
  }

  /** Releases the first lost lock, and all locks after it. Otherwise they would be held out of order. */
  #releaseFromLost(): void {
    const lost = this.#held.findIndex((lock) => lock.isLost);
    if (lost === -1) return;
    if (this.#isOutOfTime) this.#held[lost]?.assertHeld();
    const abandoned = [...this.#held.splice(lost), ...(this.#next === undefined ? [] : [this.#next.lock])];
    this.#next = undefined;
    // Does not wait for the replies, because the budget is running. Later commands follow on the same connection.
    for (const lock of abandoned) void discard(lock);
  }

  /**
   * Prepares the body, because all keys are held. Renews the locks, so that each has its whole lock time. `holdAtMost` counts from now.
   *
   * @returns whether all locks are certain. If the store did not reply, `#trouble` has the reason
   */
  async #begin(signal: AbortSignal | undefined): Promise<boolean> {
    if (signal?.aborted === true) throw reasonOf(signal);
    this.#trouble = undefined;
    this.#heldSince = this.#locker.clock.now();
    if (!this.#hasWholeLockTime) {
      const timeoutMs = Math.max(this.#budgetEndsAt - this.#heldSince, LEAST_COMMAND_TIME_MS);
      const renewals = Promise.allSettled(this.#held.map((lock) => lock.renewOnce(timeoutMs)));
      const renewed = await unlessAborted(renewals, signal);
      for (const one of renewed) {
        if (one.status === "fulfilled" || one.reason instanceof LockLostError) continue;
        if (one.reason instanceof LockMisconfiguredError || this.#isOutOfTime) throw one.reason;
        this.#trouble = { error: one.reason };
      }
    }
    if (this.#isOver) throw this.#notHeld();
    if (this.#trouble === undefined && this.remaining() > 0) {
      for (const lock of this.#held) lock.beginGroup();
      this.#all = this.#held;
      return true;
    }
    this.#heldSince = undefined;
    if (this.#isOutOfTime) this.assertHeld();
    // After a suspension, a lock may be neither lost nor certain. The reply to a renewal decides, which takes a moment.
    if (!this.#held.some((lock) => lock.isLost)) this.#trouble ??= { error: this.#notHeld() };
    return false;
  }

  get #isOutOfTime(): boolean {
    return this.#locker.clock.now() >= this.#budgetEndsAt;
  }

  get #budgetEndsAt(): number {
    return (this.#since ?? 0) + this.#terms.budgetMs;
  }

  /** Tries all remaining keys in one tick, which is one command if the store supports that. Does not enter any store queue. */
  async #tryRemaining(signal: AbortSignal | undefined): Promise<void> {
    const once = { group: this.#group, waitsSince: this.#since, asksOnceAt: this.#locker.clock.now() };
    const areFirst = this.#held.length === 0;
    const locks = this.keys.slice(this.#held.length).map((key) => this.#newPart(key, once));
    this.#tried = locks;
    const tries = await Promise.allSettled(locks.map((lock) => lock.acquire(signal)));
    this.#tried = [];
    const missed = tries.findIndex((tried) => tried.status === "rejected" || !tried.value);
    const acquired = missed === -1 ? locks.length : missed;
    this.#hasWholeLockTime = areFirst && missed === -1;
    this.#held.push(...locks.slice(0, acquired));
    const [lock, ...others] = locks.slice(acquired);
    if (lock !== undefined) this.#next = { lock, isWaitedFor: false };
    for (const other of others) void discard(other);
    for (const tried of tries) if (tried.status === "rejected") throw tried.reason;
  }

  #newPart(key: string, part: LockPart): Lock {
    const lock = new PartLock(this.#terms, key, part);
    lock.isBodyKnown = this.#isBodyKnown;
    return lock;
  }

  #newWaiter(): { readonly lock: Lock; readonly isWaitedFor: true } {
    const key = this.keys[this.#held.length];
    if (key === undefined) throw this.#notHeld();
    const lock = this.#newPart(key, { group: this.#group, waitsSince: this.#since });
    return { lock, isWaitedFor: true };
  }

  /** Whether a body may be running. This includes the time between the last grant and the start of the body. */
  get #isInUse(): boolean {
    if (this.#all !== undefined) return true;
    const asked = this.#next === undefined ? this.#tried : [this.#next.lock];
    const areAll = !this.#isOver && this.#held.length + asked.length === this.keys.length;
    return areAll && asked.every((lock) => lock.remaining() > 0);
  }

  #newGroup(): LockGroup {
    const isInUse = (): boolean => this.#isInUse;
    const heldSince = (): number | undefined => this.#heldSince;
    return {
      get isInUse() {
        return isInUse();
      },
      get heldSince() {
        return heldSince();
      },
      // A caller that waits for the next key has to start again at the lost one.
      onLost: () => this.#next?.lock.wake(),
    };
  }

  /** Waits as {@link Lock.retryCheck} does. If that gives up, releases all locks first. */
  async retryCheck(Failure?: FailureClass): Promise<boolean> {
    if (this.#isSkipped) return false;
    if (this.#isOver) throw this.#notHeld();
    const next = this.#next;
    if (next === undefined) {
      if (this.#trouble !== undefined) await unlessAborted(this.#pause(), this.#signal).catch(() => {});
      return true;
    }
    // A late reply may have acquired it in the meantime.
    if (!next.isWaitedFor && !this.#isOutOfTime && next.lock.remaining() === 0) {
      this.#next = this.#newWaiter();
      await discard(next.lock);
      return true;
    }
    try {
      const mayRetry = await next.lock.retryCheck(Failure);
      if (mayRetry) this.#next = { lock: next.lock, isWaitedFor: true };
      else await this.#discard();
      return mayRetry;
    } catch (error) {
      const discarded = this.#discard();
      if (this.#signal?.aborted !== true) await discarded;
      const { onTimeout } = this.#terms;
      const isTimeout = error instanceof LockWaitTimeoutError && !isReasonOf(this.#signal, error);
      if (isTimeout && Failure === undefined && onTimeout !== undefined)
        await failWith(error, next.lock, onTimeout);
      throw error;
    }
  }

  /** Waits for a moment, because the store did not reply. */
  #pause(): Promise<void> {
    return new Promise((resolve) => this.#locker.clock.after(UNREACHABLE_PAUSE_MS, resolve));
  }

  /** Releases all locks. No body has run under them. If the store does not reply soon, the caller does not wait for it. */
  async #discard(): Promise<void> {
    const released = Promise.all(this.#end().map(discard));
    let cancel: CancelTimer = () => {};
    const isLate = new Promise<void>((resolve) => {
      cancel = this.#locker.clock.after(LEAST_COMMAND_TIME_MS, resolve);
    });
    await Promise.race([released, isLate]);
    cancel();
  }

  /** Ends the hold, so that no body may rely on the locks. Returns the locks to release. */
  #end(): readonly Lock[] {
    const locks = [...this.#held, ...(this.#next === undefined ? [] : [this.#next.lock])];
    const hasStarted = !this.#isOver && this.#since !== undefined;
    this.#isOver = true;
    this.#held = [];
    this.#next = undefined;
    if (hasStarted) this.#locker.manager.onMultiLockEnd();
    return locks;
  }

  // ---- hold -------------------------------------------------------------------------------------------

  get #isHeld(): boolean {
    return !this.#isOver && this.#held.length === this.keys.length;
  }

  /** The milliseconds until the earliest deadline of all locks, or 0. */
  remaining(): number {
    return this.#locker.manager.certainty.timeLeft(this);
  }

  /** See {@link Belief.sureUntil}. */
  sureUntil(trustedSince: number): number {
    if (!this.#isHeld) return -Infinity;
    return Math.min(...this.#held.map((lock) => lock.sureUntil(trustedSince)));
  }

  /** @throws {LockLostError} if any lock is lost, or its deadline is over */
  assertHeld(): void {
    if (this.remaining() > 0) return;
    for (const lock of this.#held) lock.assertHeld(); // The first lost lock has the reason.
    throw this.#notHeld();
  }

  /** Checks all locks right before the body, as {@link Lock.assertMayBegin} does. */
  assertMayBegin(): void {
    this.assertHeld();
  }

  /**
   * Extends each lock, as {@link Lock.extend} does.
   *
   * @throws the first error. The other locks may have been extended
   */
  async extend(duration: Duration): Promise<void> {
    this.assertHeld();
    const extended = await Promise.allSettled(this.#held.map((lock) => lock.extend(duration)));
    for (const one of extended) if (one.status === "rejected") throw one.reason;
    this.assertHeld();
  }

  /** See {@link HeldLock.guard}. Guards the locks of all keys. After their release, the server rejects the transaction. */
  async guard(run: RunSql): Promise<void> {
    if (this.#all === undefined) throw this.#notHeld();
    await guardAll(this.#all, run);
  }

  /** Aborts when the first lock is lost. Its listeners run in the async context in which the signal was first read. */
  get signal(): AbortSignal {
    if (this.#aborter === undefined) {
      const aborter = new Aborter();
      this.#aborter = aborter;
      if (!this.#isHeld) aborter.abort(this.#notHeld());
      for (const { signal } of this.#isHeld ? this.#held : []) {
        if (signal.aborted) aborter.abort(signal.reason);
        else onAbort(signal, () => aborter.abort(signal.reason));
      }
    }
    return this.#aborter.signal;
  }

  #notHeld(): LockLostError {
    return new LockLostError(`${this.key} are not held, because they were released`);
  }

  // ---- release ----------------------------------------------------------------------------------------

  fail<E>(error: E): E {
    for (const lock of this.#held) lock.fail(error);
    return error;
  }

  /**
   * Releases all locks, in one command if the store supports that.
   *
   * @throws {LockLostError} if any lock ended before the body did, unless the body failed
   */
  async release(): Promise<void> {
    const released = await Promise.allSettled(this.#end().map((lock) => lock.release()));
    const errors: unknown[] = released.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    const messages = new Set(errors.map(errorMessage)); // A guard of all locks has the same for each.
    if (messages.size > 1) {
      throw new LockLostError([...messages].join("; "), { cause: new AggregateError(errors) });
    }
    for (const error of errors) throw error;
  }

  /** Releases all locks before the body begins. See {@link Lock.decline}. */
  decline(): void {
    for (const lock of this.#end()) lock.decline();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** One of the locks of a `MultiLock`. */
class PartLock extends Lock {
  readonly #part: LockPart;

  constructor(terms: Terms, key: string, part: LockPart) {
    super(terms, key);
    this.#part = part;
  }

  override get part(): LockPart {
    return this.#part;
  }
}

/** Releases a lock under which no body ran. If it was lost in the meantime, that does no harm. */
async function discard(lock: Lock): Promise<void> {
  await lock.release().catch(() => {});
}

/** Compares keys by their UTF-8 bytes. All processes wait for keys in this order, in whatever language they are written. */
function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
