import { type Duration } from "../duration";
import { LockLostError } from "../errors";
import { Lock, type FailureClass } from "./lock";
import type { CallSite } from "./locker";

/**
 * One acquisition of several keys: all of them or none, whatever the order in which they are named.
 *
 * All are asked for at once. Of those that are had, the ones before the first that is not are kept; the others are given
 * back, and then waited for one after the other in the order of their bytes. So whoever waits for a key holds only such
 * as come before it, and no circle of waiters can close (Havender, Avoiding deadlock in multitasking systems, 1968).
 */
export class Locks implements AsyncDisposable {
  /** In the order of their bytes, each once. */
  readonly keys: readonly string[];
  readonly requestId: string;
  readonly #callSite: CallSite;
  /** On the monotonic clock: the wait for all of them is one. */
  #since: number | undefined;
  /** Those that are held, of the first keys. */
  #held: Lock[] = [];
  /** That of the key behind them. */
  #next: Lock | undefined;
  #try: Promise<boolean> | undefined;
  #isOver = false;
  #signal: AbortSignal | undefined;

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
    try {
      if (this.#since === undefined) await this.#tryAll(signal);
      for (let lock = this.#following(); lock !== undefined; lock = this.#following()) {
        if (!(await lock.acquire(signal))) return false;
        this.#next = undefined;
        this.#held.push(lock);
      }
    } catch (error) {
      await this.#discard();
      throw error;
    }
    if (!this.#isOver) return true;
    await this.#discard();
    throw this.#notHeld();
  }

  /** All in one tick, which is one command where the store can do that; without a place in any queue. */
  async #tryAll(signal: AbortSignal | undefined): Promise<void> {
    const { locker, settings } = this.#callSite;
    this.#since = locker.clock.now();
    if (this.keys.length === 1) return;
    const once: CallSite = { ...this.#callSite, settings: { ...settings, retryTimes: 0 } };
    const locks = this.keys.map((key) => new Lock(once, key));
    const tries = await Promise.allSettled(locks.map((lock) => lock.acquire(signal)));
    const missed = tries.findIndex((tried) => tried.status === "rejected" || !tried.value);
    const had = missed === -1 ? locks.length : missed;
    this.#held = locks.slice(0, had);
    for (const lock of locks.slice(had)) void discard(lock);
    for (const tried of tries) if (tried.status === "rejected") throw tried.reason;
  }

  #following(): Lock | undefined {
    const key = this.#isOver ? undefined : this.keys[this.#held.length];
    if (key === undefined) return undefined;
    return (this.#next ??= new Lock({ ...this.#callSite, waitsSince: this.#since }, key));
  }

  /** Waits as {@link Lock.retryCheck}. Where that gives up, what is held of the others is given back before it is told. */
  async retryCheck(Failure?: FailureClass): Promise<boolean> {
    const lock = this.#following();
    if (this.#isOver) throw this.#notHeld();
    try {
      const goesOn = await (lock?.retryCheck(Failure) ?? true);
      if (!goesOn) await this.#discard();
      return goesOn;
    } catch (error) {
      await this.#discard();
      throw error;
    }
  }

  /** None of them is used. */
  async #discard(): Promise<void> {
    this.#isOver = true;
    const locks = this.#held.splice(0);
    if (this.#next !== undefined) locks.push(this.#next);
    this.#next = undefined;
    await Promise.all(locks.map(discard));
  }

  // ---- hold -------------------------------------------------------------------------------------------

  get #isHeld(): boolean {
    return !this.#isOver && this.#held.length === this.keys.length;
  }

  /** Milliseconds for which all are surely held: that of the weakest. */
  remaining(): number {
    return this.#isHeld ? Math.min(...this.#held.map((lock) => lock.remaining())) : 0;
  }

  /** @throws {LockLostError} unless all are surely held at this moment */
  assertHeld(): void {
    if (!this.#isHeld) throw this.#notHeld();
    for (const lock of this.#held) lock.assertHeld();
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

  /** Aborts at the moment the first of them is lost. */
  get signal(): AbortSignal {
    this.#signal ??= this.#isHeld
      ? AbortSignal.any(this.#held.map((lock) => lock.signal))
      : AbortSignal.abort(this.#notHeld());
    return this.#signal;
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
    if (this.#isOver) return;
    this.#isOver = true;
    const locks = this.#held.splice(0);
    if (this.#next !== undefined) locks.push(this.#next);
    this.#next = undefined;
    const released = await Promise.allSettled(locks.map((lock) => lock.release()));
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

/** Gives back what nobody worked under: that it was lost meanwhile hurts nobody. */
async function discard(lock: Lock): Promise<void> {
  await lock.release().catch(() => {});
}

/** The order in which all processes wait for keys, in whatever language: of their UTF-8. */
function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
