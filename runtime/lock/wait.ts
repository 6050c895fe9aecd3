import {
  LockClosedError,
  LockOptionError,
  LockUnreachableError,
  LockWaitTimeoutError,
  errorMessage,
  type LockErrorOptions,
} from "../base/errors";
import type { Sleeper } from "../queue/alarms";
import type { Lease } from "../queue/lease";
import type { KeyQueue, Obstacle } from "../queue/key-queue";
import type { LockTerms, Waiter } from "../queue/waiter";
import { FIX_OF_BUSY_LOCK, fixOfKey, stateOfKey } from "../stores/key-state";
import { nameOf, type LockEvent } from "./events";
import type { CallSite, Locker } from "./locker";
import { namedError } from "./named-error";
import { onAbort } from "./on-abort";
import { budgetMsOf, type Settings } from "./settings";

/** The error class that a waiter throws instead of `LockWaitTimeoutError`. */
export type FailureClass = new (message: string, options?: LockErrorOptions) => Error;

/** The lock that a caller waits for. */
export interface AwaitedLock extends LockEvent, LockTerms {
  readonly fencingToken: number | undefined;
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
  readonly joinedAt: number;
  readonly #lock: AwaitedLock;
  readonly #callSite: CallSite;
  readonly #queue: KeyQueue;
  /** Whether the lock is held, or the caller has given up. */
  #isOver = false;
  /** Whether a command was sent with the `requestId` of the lock. */
  #hasSent = false;
  /** Whether a try reached the store, instead of only queueing behind other waiters of this process. */
  #hasAsked = false;
  /** Whether the event for the wait was published. */
  #hasReported = false;
  #isWoken = false;
  #sleep: Promise<true> | undefined;
  #endSleep: ((how: true | Promise<never>) => void) | undefined;
  #alarmAt = 0;
  #try: Promise<boolean> | undefined;
  #endTry: ((how: boolean | Promise<never>) => void) | undefined;
  #failure: { readonly error: unknown } | undefined;
  #stopListening: (() => void) | undefined;

  /** Enters the queue of the lock. */
  constructor(lock: AwaitedLock, callSite: CallSite) {
    this.#lock = lock;
    this.#callSite = callSite;
    const { clock, queues } = callSite.locker;
    this.joinedAt = clock.now();
    this.#queue = queues.join(this);
  }

  private get locker(): Locker {
    return this.#callSite.locker;
  }

  private get settings(): Settings {
    return this.#callSite.settings;
  }

  private get pastMs(): number {
    return this.locker.clock.now() - this.waitsSince;
  }

  // ---- what the queue asks ----------------------------------------------------------------------------

  get key(): string {
    return this.#lock.key;
  }

  get lockTimeMs(): number {
    return this.#lock.lockTimeMs;
  }

  get fencing(): boolean {
    return this.#lock.fencing;
  }

  get replicas(): number {
    return this.#lock.replicas;
  }

  get permits(): number {
    return this.#lock.permits;
  }

  get isWatched(): boolean {
    return this.#lock.isWatched;
  }

  get isAutoUnlocked(): boolean {
    return this.#lock.isAutoUnlocked;
  }

  get mayShareHold(): boolean {
    return this.#lock.mayShareHold;
  }

  get waitsSince(): number {
    return this.#callSite.waitsSince ?? this.joinedAt;
  }

  get isPatient(): boolean {
    return this.#callSite.asksOnceAt === undefined && budgetMsOf(this.settings) > 0;
  }

  get budgetEndsAt(): number {
    return this.#callSite.asksOnceAt ?? this.waitsSince + budgetMsOf(this.settings);
  }

  /** The end of the wait budget. A caller with no wait budget waits as long as one command may take. */
  get answerBy(): number {
    const budgetMs = budgetMsOf(this.settings);
    return budgetMs > 0 ? this.waitsSince + budgetMs : Infinity;
  }

  /** Returns the `requestId` of the lock for the first command, and a new one for each later command. */
  nextRequestId(): string {
    if (this.#hasSent) return this.locker.newRequestId();
    this.#hasSent = true;
    return this.#lock.requestId;
  }

  // ---- the start --------------------------------------------------------------------------------------

  /**
   * Publishes that the caller asks for the lock.
   *
   * @param signal ends the wait when it aborts
   */
  start(signal: AbortSignal | undefined): void {
    if (signal !== undefined && !signal.aborted) this.listen(signal);
    this.locker.events.asks(this.#lock);
    if (signal?.aborted === true) this.abandon(signal);
  }

  private listen(signal: AbortSignal): void {
    try {
      this.#stopListening = onAbort(signal, () => this.abandon(signal));
    } catch (error) {
      const message = `Cannot listen to the option \`signal\`: ${errorMessage(error)}`;
      this.refuse(new LockOptionError(message, { cause: error }));
    }
  }

  private abandon({ reason }: AbortSignal): void {
    if (!this.#isOver) this.refuse(reason);
  }

  // ---- a try ------------------------------------------------------------------------------------------

  /** Starts a try, or joins the one under way. When the try ends, resolves to whether the lock is held. */
  try(): Promise<boolean> {
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
      this.outOfTime(Failure);
      return SKIPPED;
    }
    if (!this.#hasReported) this.locker.events.waits(this.#lock);
    this.#hasReported = true;
    const { waitTimeMs } = this.settings;
    const untilNextCheckMs = waitTimeMs - ((now - this.waitsSince) % waitTimeMs);
    const nextCheckAt = now + Math.min(untilNextCheckMs, this.#queue.retryInMs(this));
    return this.sleepUntil(Math.min(nextCheckAt, budgetEndsAt));
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
      this.#alarmAt = this.locker.queues.alarms.set(this, at);
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
    this.locker.queues.alarms.cancel(this, this.#alarmAt);
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
  giveUp(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#lock.onGaveUp();
    this.stopListening();
    this.#queue.giveUp(this);
    this.locker.events.givesUp(this.#lock, this.pastMs);
  }

  /** Gives up with this error. The caller receives it now, or at its next call. */
  refuse(reason: unknown): void {
    this.giveUp();
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
    this.refuse(new LockClosedError(message));
  }

  private stopListening(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  /** Gives up because the wait budget is over. Throws, unless `onFailure` is `"skip"` and another caller holds the lock. */
  private outOfTime(Failure: FailureClass | undefined): void {
    const obstacle = this.#queue.obstacle(this, this.#hasAsked);
    this.giveUp();
    const { retryTimes, waitTimeMs, onFailure } = this.settings;
    const waited = `within ${Math.round(this.pastMs)} ms (retryTimes=${retryTimes}, waitTime=${waitTimeMs}ms)`;
    const name = nameOf(this.#lock);
    if (obstacle.kind === "store") {
      const { error } = obstacle.trouble;
      const message = `${name}: the store did not grant the lock ${waited}: ${errorMessage(error)}`;
      throw new LockUnreachableError(message, { cause: error });
    }
    if (onFailure === "skip") return;
    const fix = obstacle.kind === "held elsewhere" ? fixOfKey(obstacle.value) : FIX_OF_BUSY_LOCK;
    const timeout = new LockWaitTimeoutError(
      `LOCK_WAIT_TIME_OUT: ${name} ${this.describe(obstacle)} and did not become free ${waited}. Fix: ${fix}`,
    );
    throw Failure === undefined ? timeout : new Failure(timeout.message, { cause: timeout });
  }

  private describe(obstacle: Exclude<Obstacle, { kind: "store" }>): string {
    if (obstacle.kind === "held elsewhere") return stateOfKey(obstacle.value);
    if (obstacle.kind === "asked for here") return "has an earlier waiter in this process";
    const { site, heldSince } = obstacle.holder;
    const forMs = Math.round(this.locker.clock.now() - heldSince);
    return `has been held in this process${site === undefined ? "" : ` by ${site}`} for ${forMs} ms`;
  }
}

const AWAKE = Promise.resolve<true>(true);
const NOT_YET = Promise.resolve(false);
const MAY_TRY = Promise.resolve(true);
const SKIPPED = Promise.resolve(false);
