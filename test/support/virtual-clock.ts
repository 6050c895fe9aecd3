import { setImmediate as nextTurn } from "node:timers/promises";
import type { CancelTimer, Clock, Timer } from "../../runtime/base/clock";
import { PlainTimer } from "./plain-timer";
import { TimerQueue } from "./timer-queue";

/** A clock that advances only when the test advances it. */
export class VirtualClock implements Clock {
  /** Not zero, so that no code can confuse the start time with a missing time. */
  #now = 5_000;
  readonly #timers = new TimerQueue();

  /** The number of pending timers. Tests use it to prove that nothing is left behind. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#now;
  }

  epochMicroseconds(): number {
    return Math.round(1_700_000_000_000_000 + this.#now * 1_000);
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const timer = this.#timers.add(this.#now + Math.max(delayMs, 0), callback);
    return () => this.#timers.cancel(timer);
  }

  afterInBackground(delayMs: number, callback: () => void): CancelTimer {
    return this.after(delayMs, callback);
  }

  timer(callback: () => void): Timer {
    return new PlainTimer(this, callback);
  }

  timerInBackground(callback: () => void): Timer {
    return new PlainTimer(this, callback);
  }

  /** Runs the callback after all events of this moment, which include the data that has arrived. */
  afterIo(callback: () => void): void {
    this.#timers.add(this.#now, callback);
  }

  /** Advances the time by `ms`. Timers run when they are due, and all promise jobs settle between two timers. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.advanceWhile(() => true, ms);
    this.#now = Math.max(this.#now, end);
  }

  /** Advances the time by at most `ms`, while `goOn` is true. Calls `goOn` after each timer. */
  async advanceWhile(goOn: () => boolean | Promise<boolean>, ms: number): Promise<void> {
    await nextTurn();
    const end = this.#now + ms;
    while (await goOn()) {
      const timer = this.#timers.take(end);
      if (timer === undefined) return;
      this.#now = Math.max(this.#now, timer.dueAt);
      timer.callback();
      await allPromiseJobs();
    }
  }

  /** Runs everything that is due now. */
  async settle(): Promise<void> {
    await this.advance(0);
  }

  /** Stops the process, as in a long garbage collection. Time passes, and no timer runs. */
  freeze(ms: number): void {
    this.#now += ms;
  }
}

/**
 * Resolves when all promise jobs have run, even if the caller is a promise job. A tick runs when no job is left, and costs
 * less than a turn of the event loop. The second tick runs after the ticks that the jobs scheduled.
 */
export async function allPromiseJobs(): Promise<void> {
  await nextTick();
  await nextTick();
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
