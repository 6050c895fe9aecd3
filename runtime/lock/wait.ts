import type { Clock } from "../clock";
import type { Alarms, Sleeper } from "../queue/alarms";
import type { LocalQueue } from "../queue/local-queue";
import { onAbort } from "./on-abort";

/**
 * One lock's stay in a queue, until it is held or gives up. Its caller awaits one thing at a time: how a try ends,
 * or when to try again.
 */
export class Wait implements Sleeper {
  readonly queue: LocalQueue;
  /** On the monotonic clock. */
  readonly since: number;
  /** Whether a command was sent under the lock's own `requestId`. */
  hasSent = false;
  /** Whether it was told that the lock waits. */
  hasTold = false;
  readonly #clock: Clock;
  readonly #alarms: Alarms;
  #isWoken = false;
  #sleep: Promise<void> | undefined;
  #alarmAt = 0;
  #endSleep: (() => void) | undefined;
  #failSleep: ((error: unknown) => void) | undefined;
  #try: Promise<boolean> | undefined;
  #endTry: ((isHeld: boolean) => void) | undefined;
  #failTry: ((error: unknown) => void) | undefined;
  #failure: { readonly error: unknown } | undefined;
  #stopListening: (() => void) | undefined;

  constructor(clock: Clock, alarms: Alarms, queue: LocalQueue, since = clock.now()) {
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

  /**
   * A try, begun by `begin` unless one is under way: then it is that one. Resolves when it ends, to whether the lock is
   * held.
   */
  try(begin: () => void): Promise<boolean> {
    if (this.#endTry !== undefined && this.#try !== undefined) return this.#try;
    this.#try = new Promise((resolve, reject) => {
      this.#endTry = resolve;
      this.#failTry = reject;
    });
    if (this.#failure === undefined) begin();
    else this.#failTry?.(this.#failure.error);
    return this.#try;
  }

  tryEnds(isHeld: boolean): void {
    this.#endTry?.(isHeld);
    this.#endTry = undefined;
  }

  // ---- between two tries ------------------------------------------------------------------------------

  /**
   * Sleeps until somebody wakes us, at most `ms`. Who was woken since the last sleep does not sleep at all; who comes
   * while we sleep sleeps along.
   */
  async sleep(ms: number): Promise<void> {
    if (!this.#isWoken) {
      await (this.#sleep ??= new Promise<void>((resolve, reject) => {
        this.#endSleep = resolve;
        this.#failSleep = reject;
        this.#alarmAt = this.#alarms.set(this, ms);
      }));
    }
    this.#sleep = undefined;
    this.#endSleep = undefined;
    this.#isWoken = false;
  }

  onAlarm(): void {
    this.#endSleep?.();
  }

  wake(): void {
    this.#isWoken = true;
    if (this.#endSleep === undefined) return;
    this.#alarms.cancel(this, this.#alarmAt);
    this.#endSleep();
  }

  // ---- the end ----------------------------------------------------------------------------------------

  /** The lock is held. */
  succeed(): void {
    this.end();
    this.tryEnds(true);
    this.wake();
  }

  /** The wait is over for this reason: the caller is told now, or when it comes next. */
  fail(error: unknown): void {
    this.end();
    this.#failure ??= { error };
    this.#failTry?.(error);
    this.#failSleep?.(error);
    this.#endTry = undefined;
    this.wake();
  }

  /** Throws the reason for which the wait is over. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  end(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
  }
}
