import { setImmediate as nextTurn } from "node:timers/promises";
import type { CancelTimer, Clock, Timer } from "../../runtime/clock";
import { PlainTimer } from "./plain-timer";
import { TimerQueue } from "./timer-queue";

/** Time that moves only when the test says so. */
export class VirtualClock implements Clock {
  /** Not zero, so that nobody mistakes "no time yet" for "never". */
  #now = 5_000;
  readonly #timers = new TimerQueue();

  /** What is still to come: a test proves by it that nothing is left behind. */
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

  /** What has arrived by now is among the events of this moment, which come first. */
  afterIo(callback: () => void): void {
    this.#timers.add(this.#now, callback);
  }

  /** Lets `ms` pass: timers run when they are due, and between two of them all promise jobs settle. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await this.advanceWhile(() => true, ms);
    this.#now = Math.max(this.#now, end);
  }

  /** The same, for `ms` at most, and only while `goOn`, which is asked after each timer, wants more. */
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

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    await this.advance(0);
  }

  /** The process stands still, as in a long garbage collection: time passes and no timer runs. */
  freeze(ms: number): void {
    this.#now += ms;
  }
}

/**
 * For one who is a promise job itself: ticks come when no other is left. A turn of the event loop costs more. The
 * second tick comes after those that the jobs asked for.
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
