import { setImmediate as allPromiseJobs } from "node:timers/promises";
import type { CancelTimer, Clock } from "../../runtime/clock";

interface Timer {
  readonly dueAt: number;
  readonly callback: () => void;
}

/** Time that moves only when the test says so. */
export class VirtualClock implements Clock {
  /** Not zero, so that nobody mistakes "no time yet" for "never". */
  #now = 5_000;
  /** In the order in which they were set. */
  readonly #timers = new Set<Timer>();

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
    const timer = { dueAt: this.#now + Math.max(delayMs, 0), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  afterInBackground(delayMs: number, callback: () => void): CancelTimer {
    return this.after(delayMs, callback);
  }

  /** Lets `ms` pass: timers run when they are due, and between two of them all promise jobs settle. */
  async advance(ms: number): Promise<void> {
    await allPromiseJobs();
    const end = this.#now + ms;
    for (let timer = this.#nextUntil(end); timer !== undefined; timer = this.#nextUntil(end)) {
      this.#now = Math.max(this.#now, timer.dueAt);
      this.#timers.delete(timer);
      timer.callback();
      await allPromiseJobs();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    await this.advance(0);
  }

  /** The process stands still, as in a long garbage collection: time passes and no timer runs. */
  freeze(ms: number): void {
    this.#now += ms;
  }

  #nextUntil(end: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueAt <= end && timer.dueAt < (next?.dueAt ?? Infinity)) next = timer;
    }
    return next;
  }
}
