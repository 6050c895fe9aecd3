import { LockClosedError, LockOptionError, errorMessage, type LockErrorOptions } from "../base/errors";
import type { Sleeper } from "../queue/alarms";
import type { Lease } from "../queue/lease";
import type { KeyQueue } from "../queue/key-queue";
import { LEAST_COMMAND_TIME_MS, type Waiter } from "../queue/waiter";
import { lockOf, nameOf, type GiveUpOutcome, type LockEvent, namedError } from "./events";
import type { AnnouncedHolder, Locker, LockPart, Terms } from "./locker";
import { onAbort, reasonOf } from "./on-abort";
import { failWith } from "./on-failure";
import { OWN_WAIT_MS, warningOfOwnWait, type OwnCaller } from "./own-wait";
import { trackBodies } from "./reentrancy";
import { storeUnreachable, waitedFor, waitTimeout } from "./wait-timeout";

/** The error class that a waiter throws instead of `LockWaitTimeoutError`. */
export type FailureClass = new (message: string, options?: LockErrorOptions) => Error;

/** The lock that a caller waits for. */
export interface AwaitedLock extends LockEvent {
  readonly terms: Terms;
  /** Set if it is one of the locks of a `MultiLock`. */
  readonly part: LockPart | undefined;
  readonly isHeld: boolean;
  readonly fencingToken: number | undefined;
  /** The lock around the running code that holds the same key. See `Lock.ownCaller`. */
  readonly ownCaller: OwnCaller | undefined;
  /**
   * Makes it held, if its body may begin under the lease.
   *
   * @returns the time of the grant on the monotonic clock, or `undefined` if the lease is not certain. Then nothing has changed
   */
  begin(lease: Lease, fencingToken: number | undefined): number | undefined;
  /** Notes that its caller gives up. It will not be held. */
  onGaveUp(): void;
}

/**
 * The wait for one lock in a queue, until it is held or its caller gives up. The caller awaits one thing at a time: the end of a try, or the
 * time for the next one.
 *
 * Methods are `private` instead of `#`, because very many callers may wait, and each object with `#` methods takes more memory.
 */
export class Wait implements Waiter, Sleeper {
  readonly key: string;
  readonly terms: Terms;
  readonly joinedAt: number;
  readonly waitsSince: number;
  readonly isPatient: boolean;
  /** On the monotonic clock: when the wait budget ends. */
  readonly budgetEndsAt: number;
  readonly #lock: AwaitedLock;
  readonly #queue: KeyQueue;
  #hasStarted = false;
  /** Whether the lock is held, or the caller has given up. */
  #isOver = false;
  /** Whether a command was sent with the `requestId` of the lock. */
  #hasSent = false;
  /** Whether a try reached the store, instead of only queueing behind other waiters of this process. */
  #hasAsked = false;
  /** Whether the event for the wait was published. */
  #hasReported = false;
  /** The caller around this one that holds the key, until the warning about it. */
  #ownCaller: OwnCaller | undefined;
  #isWoken = false;
  #sleep: Promise<true> | undefined;
  #endSleep: ((how: true | Promise<never>) => void) | undefined;
  #alarmAt = 0;
  #try: Promise<boolean> | undefined;
  #endTry: ((how: boolean | Promise<never>) => void) | undefined;
  #failure: { readonly error: unknown } | undefined;
  #stopListening: (() => void) | undefined;

  /** Enters the queue of the lock. */
  constructor(lock: AwaitedLock) {
    const { key, terms, part } = lock;
    const { locker, budgetMs } = terms;
    this.#lock = lock;
    this.key = key;
    this.terms = terms;
    this.joinedAt = locker.clock.now();
    this.waitsSince = part?.waitsSince ?? this.joinedAt;
    this.isPatient = budgetMs > 0 && part?.asksOnceAt === undefined;
    this.budgetEndsAt = part?.asksOnceAt ?? this.waitsSince + budgetMs;
    this.#queue = locker.manager.join(this);
  }

  private get locker(): Locker {
    return this.terms.locker;
  }

  private get pastMs(): number {
    return this.locker.clock.now() - this.waitsSince;
  }

  // ---- questions of the queue --------------------------------------------------------------------------

  mayTryAgain(now: number): boolean {
    return this.isPatient && now < this.budgetEndsAt;
  }

  timeoutMs(now: number, usualTimeoutMs: number): number {
    // Without a budget, and for locks that are tried together, the caller waits for one reply only.
    const extraMs = this.isPatient ? 0 : usualTimeoutMs;
    const until = Math.min(this.budgetEndsAt + extraMs, this.waitsSince + (this.terms.budgetMs || Infinity));
    return Math.max(until - now, LEAST_COMMAND_TIME_MS);
  }

  /** Returns the `requestId` of the lock for the first command, and a new one for each later command. */
  nextRequestId(): string {
    if (this.#hasSent) return this.locker.newRequestId();
    this.#hasSent = true;
    return this.#lock.requestId;
  }

  // ---- the start --------------------------------------------------------------------------------------

  /**
   * Publishes that the caller asks for the lock, at its first call.
   *
   * @param signal ends the wait when it aborts
   * @returns whether the lock is held now, because a subscriber has released it in the meantime
   */
  private start(signal: AbortSignal | undefined): boolean {
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      if (signal !== undefined && !signal.aborted) this.listen(signal);
      this.locker.events.asks(this.#lock);
      if (signal?.aborted === true) this.abandon(signal);
    }
    if (this.#lock.isHeld) return true;
    if (this.locker.manager.isClosed) this.onClosed();
    return false;
  }

  private listen(signal: AbortSignal): void {
    try {
      this.#stopListening = onAbort(signal, () => this.abandon(signal));
    } catch (error) {
      const message = `Cannot listen to the option \`signal\`: ${errorMessage(error)}`;
      this.refuse(new LockOptionError(message, { cause: error }));
    }
  }

  private abandon(signal: AbortSignal): void {
    if (!this.#isOver) this.refuse(reasonOf(signal));
  }

  // ---- a try ------------------------------------------------------------------------------------------

  /**
   * Starts a try, or joins the one under way. When the try ends, resolves to whether the lock is held.
   *
   * @param signal ends the wait when it aborts. Only that of the first call counts
   */
  try(signal: AbortSignal | undefined): Promise<boolean> {
    if (this.start(signal)) return IS_HELD;
    if (this.#try !== undefined) return this.#try;
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    this.#isWoken = false; // A wake-up from before this try does not count.
    if (!this.#queue.mayAsk(this)) return NOT_YET;
    this.#hasAsked = true;
    const begun = new Promise<boolean>((resolve) => (this.#endTry = resolve));
    this.#try = begun;
    this.#queue.ask(this);
    return begun;
  }

  onTried(): void {
    this.endTry(false);
  }

  private endTry(how: boolean | Promise<never>): void {
    this.#endTry?.(how);
    this.#endTry = undefined;
    this.#try = undefined;
  }

  // ---- between two tries ------------------------------------------------------------------------------

  /** See `Lock.retryCheck`. */
  retryCheck(Failure: FailureClass | undefined): Promise<boolean> {
    if (this.start(undefined)) return IS_HELD;
    try {
      return this.untilNextTry(Failure);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Is not async, because each suspended async function takes memory, and many callers may wait here. */
  private untilNextTry(Failure: FailureClass | undefined): Promise<boolean> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const { budgetEndsAt } = this;
    const now = this.locker.clock.now();
    if (now >= budgetEndsAt) {
      // A caller with no wait budget may still ask once, if the waiters before it have left in the meantime.
      if (!this.#hasAsked && !this.isPatient && this.#queue.mayAsk(this)) return MAY_TRY;
      return this.outOfTime(Failure);
    }
    if (!this.#hasReported) {
      this.locker.events.waits(this.#lock);
      this.#ownCaller = this.#lock.ownCaller;
    }
    this.#hasReported = true;
    const { waitTimeMs } = this.terms;
    const untilNextCheckMs = waitTimeMs - ((now - this.waitsSince) % waitTimeMs);
    const nextCheckAt = now + Math.min(untilNextCheckMs, this.#queue.retryInMs(this));
    return this.sleepUntil(Math.min(nextCheckAt, budgetEndsAt, this.warnOfOwnWait(now)));
  }

  /**
   * Warns if the call still waits for a caller around it. A detached call may wait for its caller to end, which is no mistake, so this leaves
   * the caller some time.
   *
   * @returns when to check again, on the monotonic clock
   */
  private warnOfOwnWait(now: number): number {
    const caller = this.#ownCaller;
    if (caller === undefined) return Infinity;
    const dueAt = this.waitsSince + OWN_WAIT_MS;
    if (now < dueAt) return dueAt;
    this.#ownCaller = undefined;
    if (caller.isBodyInside) this.locker.logger.warnOnce(warningOfOwnWait(this.#lock, caller));
    return Infinity;
  }

  /**
   * Sleeps until a wake-up, or until a time on the monotonic clock. A waiter that was woken since its last try does not sleep. A second
   * call during a sleep joins it.
   */
  private sleepUntil(at: number): Promise<true> {
    if (this.#isWoken) {
      this.#isWoken = false;
      return AWAKE;
    }
    return (this.#sleep ??= new Promise((resolve) => {
      this.#endSleep = resolve;
      this.#alarmAt = this.locker.manager.alarms.set(this, at);
    }));
  }

  onAlarm(): void {
    this.endSleep(true);
  }

  wake(): void {
    if (this.#sleep === undefined) this.#isWoken = true;
    else this.endSleep(true);
  }

  private endSleep(how: true | Promise<never>): void {
    this.locker.manager.alarms.cancel(this, this.#alarmAt);
    this.#endSleep?.(how);
    this.#sleep = undefined;
    this.#endSleep = undefined;
  }

  // ---- the end ----------------------------------------------------------------------------------------

  onGranted(lease: Lease, fencingToken: number | undefined): number | undefined {
    if (this.#isOver) return undefined;
    const now = this.#lock.begin(lease, fencingToken);
    if (now === undefined) return undefined;
    this.#isOver = true;
    this.stopListening();
    this.endTry(true);
    this.wake();
    return now - this.waitsSince;
  }

  onEntered(waitedMs: number): void {
    this.locker.events.holds(this.#lock, waitedMs);
  }

  /** Leaves the queue without the lock. */
  giveUp(outcome: GiveUpOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#lock.onGaveUp();
    this.stopListening();
    this.#queue.giveUp(this);
    this.locker.events.givesUp(this.#lock, this.pastMs, outcome);
  }

  /** Gives up with this error. The caller receives it now, or at its next call. */
  refuse(reason: unknown): void {
    this.giveUp("failed");
    this.stopListening();
    this.#failure ??= { error: reason };
    if (this.#try !== undefined) this.endTry(Promise.reject(reason));
    if (this.#sleep === undefined) this.#isWoken = true;
    else this.endSleep(Promise.reject(reason));
  }

  onRefused(error: unknown): void {
    this.refuse(namedError(this.#lock, error));
  }

  onClosed(): void {
    const message = `${nameOf(this.#lock)}: shutdown() was called, so this process grants no more locks. Fix: stop incoming work before you call shutdown(), or set a longer patience`;
    this.refuse(new LockClosedError(message, lockOf(this.#lock)));
  }

  private stopListening(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  /** Gives up because the wait budget is over. Throws, unless `onFailure` or `onUnreachable` says to skip the body. */
  private outOfTime(Failure: FailureClass | undefined): Promise<false> {
    const obstacle = this.#queue.obstacle(this, this.#hasAsked);
    const { onFailure, onUnreachable, onTimeout } = this.terms;
    if (obstacle.kind === "store") this.giveUp(onUnreachable === "skip" ? "unreachable" : "failed");
    else this.giveUp(onFailure === "skip" ? "skipped" : "failed");
    const waited = waitedFor(this.terms, this.pastMs);
    if (obstacle.kind === "store") {
      if (onUnreachable === "skip") return SKIPPED;
      throw storeUnreachable(this.#lock, obstacle.trouble.error, waited);
    }
    if (onFailure === "skip") return SKIPPED;
    const now = this.locker.clock.now();
    const caller = obstacle.kind === "held elsewhere" ? undefined : this.#lock.ownCaller;
    // The holder may have awaited this call. Then the next such call learns that.
    const isSuspect = obstacle.kind === "held here" && obstacle.holder.heldSince <= this.waitsSince;
    if (isSuspect && this.pastMs >= OWN_WAIT_MS) trackBodies();
    const fail = (elsewhere?: AnnouncedHolder): Promise<never> => {
      const timeout = waitTimeout(this.#lock, obstacle, caller, waited, now, elsewhere);
      if (Failure !== undefined) throw new Failure(timeout.message, { cause: timeout });
      // A `MultiLock` first releases its other keys.
      if (onTimeout === undefined || this.#lock.part !== undefined) throw timeout;
      return failWith(timeout, this.#lock, onTimeout);
    };
    const { findHolder } = this.locker;
    const value = obstacle.kind === "held elsewhere" ? obstacle.value : undefined;
    return findHolder === undefined || value === undefined ? fail() : findHolder(this.key, value).then(fail);
  }
}

const AWAKE = Promise.resolve<true>(true);
const IS_HELD = Promise.resolve(true);
const NOT_YET = Promise.resolve(false);
const MAY_TRY = Promise.resolve(true);
const SKIPPED = Promise.resolve<false>(false);
