import type { Clock } from "../clock";
import type { Alarms, Sleeper } from "../queue/alarms";
import type { LocalQueue } from "../queue/local-queue";
import type { SharedQueue } from "../queue/shared-queue";
import type { Waiter } from "../queue/waiter";
import { onAbort } from "./on-abort";

/**
 * The wait of one lock in a queue, until it is held or gives up. Its caller awaits one thing at a time: the end of a try, or the time for
 * the next one.
 */
export class Wait implements Sleeper {
  readonly queue: LocalQueue | SharedQueue;
  /** On the monotonic clock: when the wait began. */
  readonly since: number;
  /** Whether a command was sent with the `requestId` of the lock. */
  hasSent = false;
  /** Whether a try reached the store, instead of only queueing behind other waiters of this process. */
  hasAsked = false;
  /** Whether the event for the wait was published. */
  hasReported = false;
  readonly #clock: Clock;
  readonly #alarms: Alarms;
  #isWoken = false;
  #sleep: Promise<true> | undefined;
  #endSleep: ((how: true | Promise<never>) => void) | undefined;
  #alarmAt = 0;
  #try: Promise<boolean> | undefined;
  #endTry: ((how: boolean | Promise<never>) => void) | undefined;
  #failure: { readonly error: unknown } | undefined;
  #stopListening: (() => void) | undefined;

  constructor(clock: Clock, alarms: Alarms, queue: LocalQueue | SharedQueue, since = clock.now()) {
    this.#clock = clock;
    this.#alarms = alarms;
    this.queue = queue;
    this.since = since;
  }

  get pastMs(): number {
    return this.#clock.now() - this.since;
  }

  /** Calls `callback` when the signal aborts before the wait is over. */
  listen(signal: AbortSignal, callback: () => void): void {
    this.#stopListening = onAbort(signal, callback);
  }

  // ---- a try ------------------------------------------------------------------------------------------

  /** Starts a try for the waiter, or joins the one under way. Resolves when the try ends, to whether the lock is held. */
  try(waiter: Waiter): Promise<boolean> {
    if (this.#try !== undefined) return this.#try;
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    this.#isWoken = false; // A wake-up from before this try does not count.
    if (!this.queue.mayAsk(waiter)) return NOT_YET;
    this.hasAsked = true;
    const begun = new Promise<boolean>((resolve) => (this.#endTry = resolve));
    this.#try = begun;
    this.queue.ask(waiter);
    return begun;
  }

  tryEnds(how: boolean | Promise<never>): void {
    this.#endTry?.(how);
    this.#endTry = undefined;
    this.#try = undefined;
  }

  // ---- between two tries ------------------------------------------------------------------------------

  /**
   * Sleeps until a wake-up, or until a time on the monotonic clock. A waiter that was woken since its last try does not sleep. A second
   * call during a sleep joins it.
   */
  sleepUntil(at: number): Promise<true> {
    if (this.#isWoken) {
      this.#isWoken = false;
      return AWAKE;
    }
    return (this.#sleep ??= new Promise((resolve) => {
      this.#endSleep = resolve;
      this.#alarmAt = this.#alarms.set(this, at);
    }));
  }

  onAlarm(): void {
    this.#wakeUp(true);
  }

  wake(): void {
    if (this.#sleep === undefined) this.#isWoken = true;
    else this.#wakeUp(true);
  }

  #wakeUp(how: true | Promise<never>): void {
    this.#alarms.cancel(this, this.#alarmAt);
    this.#endSleep?.(how);
    this.#sleep = undefined;
    this.#endSleep = undefined;
  }

  // ---- the end ----------------------------------------------------------------------------------------

  /** Ends the wait, because the lock is held. */
  succeed(): void {
    this.end();
    this.tryEnds(true);
    this.wake();
  }

  /** Ends the wait with this error. The caller receives it now, or at its next call. */
  fail(reason: unknown): void {
    this.end();
    this.#failure ??= { error: reason };
    if (this.#try !== undefined) this.tryEnds(Promise.reject(reason));
    if (this.#sleep === undefined) this.#isWoken = true;
    else this.#wakeUp(Promise.reject(reason));
  }

  /** Throws the error with which the wait ended, if it did. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  end(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
  }
}

const AWAKE = Promise.resolve<true>(true);
const NOT_YET = Promise.resolve(false);
