import type { CancelTimer } from "../clock";
import type { Duration } from "../duration";
import { LockLostError, LockMisconfiguredError } from "../errors";
import { LEAST_COMMAND_TIME_MS } from "../queue/acquisition";
import type { Trouble } from "../queue/loss";
import { Aborter } from "./aborter";
import { Lock, type FailureClass } from "./lock";
import type { CallSite, Together } from "./locker";
import { onAbort, unlessAborted } from "./on-abort";
import { budgetMsOf } from "./settings";

/**
 * One acquisition of several keys: all of them or none, whatever the order in which they are named.
 *
 * All are asked for at once. Of those that are had, the ones before the first that is not are kept; the others are given
 * back, and asked for again when that one is had. So keys are waited for one after the other in the order of their bytes: whoever waits
 * for one holds only such as come before it, and no circle of waiters can close (Havender, Avoiding deadlock in multitasking systems, 1968).
 */
export class MultiLock implements AsyncDisposable {
  /** In the order of their bytes, each once. */
  readonly keys: readonly string[];
  readonly requestId: string;
  readonly #callSite: CallSite;
  /** On the monotonic clock: the wait for all of them is one. */
  #since: number | undefined;
  /** Those that are held: of the first keys. */
  #held: Lock[] = [];
  /** That of the key behind them, which is waited for; or it was asked for together with others, and is not to be had at once. */
  #next: { readonly lock: Lock; readonly isWaitedFor: boolean } | undefined;
  /** Those that are being asked for at once. */
  #tried: readonly Lock[] = [];
  #try: Promise<boolean> | undefined;
  #isOver = false;
  /** On the monotonic clock: since when all are held, and the time of the body's options runs. */
  #heldSince: number | undefined;
  /** Whether all that are held were granted by one try, and so have their whole lock time. */
  #areFresh = false;
  /** Why those that are all held could not be renewed for the body, if they could not. */
  #trouble: Trouble | undefined;
  readonly #together = this.#togetherOf();
  /** Whether all were held at once. */
  #wereHad = false;
  #aborter: Aborter | undefined;

  constructor(callSite: CallSite, keys: readonly string[]) {
    this.#callSite = callSite;
    this.keys = [...new Set(keys)].toSorted(byBytes);
    this.requestId = callSite.locker.newRequestId();
  }

  /** All of them, for messages. */
  get key(): string {
    return this.keys.join(" ");
  }

  /** That of each is its own: see {@link locks}. */
  get storeValue(): undefined {
    return undefined;
  }

  get fencingToken(): undefined {
    return undefined;
  }

  /** One for each key, in their order, while all are held. */
  get locks(): readonly Lock[] {
    return this.#held;
  }

  // ---- acquire ----------------------------------------------------------------------------------------

  /** One try, as {@link Lock.acquire}: resolves to whether all are held now. */
  acquire(signal?: AbortSignal): Promise<boolean> {
    return (this.#try ??= this.#acquire(signal).finally(() => {
      this.#try = undefined;
    }));
  }

  async #acquire(signal: AbortSignal | undefined): Promise<boolean> {
    this.#comeOnce();
    try {
      while (!this.#isOver) {
        this.#releaseFromLost();
        if (this.#held.length === this.keys.length) {
          if (await this.#begin(signal)) return true;
          if (this.#trouble !== undefined) return false;
          continue;
        }
        if (this.#next === undefined && this.keys.length - this.#held.length > 1) {
          await this.#tryTheRest(signal);
        } else {
          this.#next ??= this.#waiter();
          this.#areFresh = false;
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
      throw error;
    }
  }

  #comeOnce(): void {
    if (this.#since !== undefined) return;
    const { clock, queues } = this.#callSite.locker;
    this.#since = clock.now();
    if (!this.#isOver) queues.onSeveralBegin();
  }

  /** What is held behind one that is lost would be held in another order than the keys have: it is released, too. */
  #releaseFromLost(): void {
    const lost = this.#held.findIndex((lock) => lock.isLost);
    if (lost === -1) return;
    if (this.#isOutOfTime) this.#held[lost]?.assertHeld();
    const gone = [...this.#held.splice(lost), ...(this.#next === undefined ? [] : [this.#next.lock])];
    this.#next = undefined;
    // The store may not answer, and the budget goes on: what is asked next follows on the same connection.
    for (const lock of gone) void discard(lock);
  }

  /**
   * All are held. The time of the body's options begins, and each lock has its whole lock time from here on.
   *
   * @returns whether all are surely held; where the store could not be asked, `#trouble` says so
   */
  async #begin(signal: AbortSignal | undefined): Promise<boolean> {
    if (signal?.aborted === true) throw signal.reason;
    this.#trouble = undefined;
    this.#heldSince = this.#callSite.locker.clock.now();
    if (!this.#areFresh) {
      const mostMs = Math.max(this.#budgetEndsAt - this.#heldSince, LEAST_COMMAND_TIME_MS);
      const renewals = Promise.allSettled(this.#held.map((lock) => lock.renewOnce(mostMs)));
      const renewed = await unlessAborted(renewals, signal);
      for (const one of renewed) {
        if (one.status === "fulfilled" || one.reason instanceof LockLostError) continue;
        if (one.reason instanceof LockMisconfiguredError || this.#isOutOfTime) throw one.reason;
        this.#trouble = { error: one.reason };
      }
    }
    if (this.#isOver) throw this.#notHeld();
    if (this.#trouble === undefined && this.remaining() > 0) {
      for (const lock of this.#held) lock.beginTogether();
      this.#wereHad = true;
      return true;
    }
    this.#heldSince = undefined;
    if (this.#isOutOfTime) this.assertHeld();
    // After a suspension, a lock can be neither lost nor sure: the reply to a renewal decides, and takes its time.
    if (!this.#held.some((lock) => lock.isLost)) this.#trouble ??= { error: this.#notHeld() };
    return false;
  }

  get #isOutOfTime(): boolean {
    return this.#callSite.locker.clock.now() >= this.#budgetEndsAt;
  }

  get #budgetEndsAt(): number {
    return (this.#since ?? 0) + budgetMsOf(this.#callSite.settings);
  }

  /** All in one tick, which is one command where the store can do that; without a place in any queue. */
  async #tryTheRest(signal: AbortSignal | undefined): Promise<void> {
    const { locker } = this.#callSite;
    const once: CallSite = {
      ...this.#callSite,
      together: this.#together,
      waitsSince: this.#since,
      asksOnceAt: locker.clock.now(),
    };
    const areFirst = this.#held.length === 0;
    const locks = this.keys.slice(this.#held.length).map((key) => new Lock(once, key));
    this.#tried = locks;
    const tries = await Promise.allSettled(locks.map((lock) => lock.acquire(signal)));
    this.#tried = [];
    const missed = tries.findIndex((tried) => tried.status === "rejected" || !tried.value);
    const had = missed === -1 ? locks.length : missed;
    this.#areFresh = areFirst && missed === -1;
    this.#held.push(...locks.slice(0, had));
    const [lock, ...others] = locks.slice(had);
    if (lock !== undefined) this.#next = { lock, isWaitedFor: false };
    for (const other of others) void discard(other);
    for (const tried of tries) if (tried.status === "rejected") throw tried.reason;
  }

  #waiter(): { readonly lock: Lock; readonly isWaitedFor: true } {
    const key = this.keys[this.#held.length];
    if (key === undefined) throw this.#notHeld();
    const lock = new Lock({ ...this.#callSite, together: this.#together, waitsSince: this.#since }, key);
    return { lock, isWaitedFor: true };
  }

  /** Also between the grant of the last of them and the body, whose caller hears of it later. */
  get #isInUse(): boolean {
    if (this.#wereHad) return true;
    const asked = this.#next === undefined ? this.#tried : [this.#next.lock];
    const areAll = !this.#isOver && this.#held.length + asked.length === this.keys.length;
    return areAll && asked.every((lock) => lock.remaining() > 0);
  }

  #togetherOf(): Together {
    const isInUse = (): boolean => this.#isInUse;
    const heldSince = (): number | undefined => this.#heldSince;
    return {
      get isInUse() {
        return isInUse();
      },
      get heldSince() {
        return heldSince();
      },
      // Whoever waits for the next key is to begin anew at the lost one.
      onLost: () => this.#next?.lock.wake(),
    };
  }

  /** Waits as {@link Lock.retryCheck}. Where that gives up, what is held of the others is given back before it is told. */
  async retryCheck(Failure?: FailureClass): Promise<boolean> {
    if (this.#isOver) throw this.#notHeld();
    const next = this.#next;
    if (next === undefined) {
      if (this.#trouble !== undefined) await this.#pause();
      return true;
    }
    // A late reply may have brought it.
    if (!next.isWaitedFor && !this.#isOutOfTime && next.lock.remaining() === 0) {
      this.#next = this.#waiter();
      await discard(next.lock);
      return true;
    }
    try {
      const goesOn = await next.lock.retryCheck(Failure);
      if (goesOn) this.#next = { lock: next.lock, isWaitedFor: true };
      else await this.#discard();
      return goesOn;
    } catch (error) {
      await this.#discard();
      throw error;
    }
  }

  /** The store could not be asked. */
  #pause(): Promise<void> {
    return new Promise((resolve) => this.#callSite.locker.clock.after(UNREACHABLE_PAUSE_MS, resolve));
  }

  /** Releases all of them unused. If the store does not answer soon, the caller does not wait for its reply. */
  async #discard(): Promise<void> {
    const released = Promise.all(this.#end().map(discard));
    let cancel: CancelTimer = () => {};
    const isLate = new Promise<void>((resolve) => {
      cancel = this.#callSite.locker.clock.after(LEAST_COMMAND_TIME_MS, resolve);
    });
    await Promise.race([released, isLate]);
    cancel();
  }

  /** From here on nobody may rely on them. Returns what there is to give back. */
  #end(): readonly Lock[] {
    const locks = [...this.#held, ...(this.#next === undefined ? [] : [this.#next.lock])];
    const hasCome = !this.#isOver && this.#since !== undefined;
    this.#isOver = true;
    this.#held = [];
    this.#next = undefined;
    if (hasCome) this.#callSite.locker.queues.onSeveralEnd();
    return locks;
  }

  // ---- hold -------------------------------------------------------------------------------------------

  get #isHeld(): boolean {
    return !this.#isOver && this.#held.length === this.keys.length;
  }

  /** The milliseconds for which all are surely held, or 0: until the first of their deadlines. */
  remaining(): number {
    return this.#callSite.locker.queues.suspension.timeLeft(this);
  }

  /** See {@link Belief.sureUntil}. */
  sureUntil(trustedSince: number): number {
    if (!this.#isHeld) return -Infinity;
    return Math.min(...this.#held.map((lock) => lock.sureUntil(trustedSince)));
  }

  /** @throws {LockLostError} unless all are surely held at this moment */
  assertHeld(): void {
    if (this.remaining() > 0) return;
    for (const lock of this.#held) lock.assertHeld(); // The first that is lost says why.
    throw this.#notHeld();
  }

  /**
   * As {@link Lock.extend}, each of them.
   *
   * @throws the first error of any: the others may have been extended
   */
  async extend(duration: Duration): Promise<void> {
    this.assertHeld();
    const extended = await Promise.allSettled(this.#held.map((lock) => lock.extend(duration)));
    for (const one of extended) if (one.status === "rejected") throw one.reason;
    this.assertHeld();
  }

  /** Aborts at the moment the first of them is lost. Its listeners run in the async context in which it was first read. */
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
    return new LockLostError(`${this.key} are not held: they were released`);
  }

  // ---- release ----------------------------------------------------------------------------------------

  fail<E>(error: E): E {
    for (const lock of this.#held) lock.fail(error);
    return error;
  }

  /**
   * Gives all of them back, in one command where the store can do that.
   *
   * @throws {LockLostError} when any of them had ended before the body did, unless the body failed itself
   */
  async release(): Promise<void> {
    const released = await Promise.allSettled(this.#end().map((lock) => lock.release()));
    const errors: unknown[] = released.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
    if (errors.length > 1) {
      const messages = errors.map((error) => (error instanceof Error ? error.message : String(error)));
      throw new LockLostError(messages.join("; "), { cause: new AggregateError(errors) });
    }
    for (const error of errors) throw error;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }
}

/** How soon to ask again a store that did not answer. */
const UNREACHABLE_PAUSE_MS = 100;

/** Gives back what nobody worked under: that it was lost meanwhile hurts nobody. */
async function discard(lock: Lock): Promise<void> {
  await lock.release().catch(() => {});
}

/** The order in which all processes wait for keys, in whatever language: of their UTF-8. */
function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
