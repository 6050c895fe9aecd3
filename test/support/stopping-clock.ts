import type { CancelTimer, Clock, Timer } from "../../runtime/base/clock";

/** The clock of a process that can be stopped right before any read, as with SIGSTOP. */
export class StoppingClock implements Clock {
  readonly #clock: Clock;
  readonly #beforeRead: () => void;

  /** @param beforeRead called before each read of the monotonic clock and of the time since boot; may let time pass */
  constructor(clock: Clock, beforeRead: () => void) {
    this.#clock = clock;
    this.#beforeRead = beforeRead;
    const { sinceBoot } = clock;
    if (sinceBoot === undefined) return;
    this.sinceBoot = () => {
      beforeRead();
      return sinceBoot.call(clock);
    };
  }

  readonly sinceBoot?: () => number;

  now(): number {
    this.#beforeRead();
    return this.#clock.now();
  }

  epochMicroseconds(): number {
    return this.#clock.epochMicroseconds();
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    return this.#clock.after(delayMs, callback);
  }

  afterInBackground(delayMs: number, callback: () => void): CancelTimer {
    return this.#clock.afterInBackground(delayMs, callback);
  }

  timer(callback: () => void): Timer {
    return this.#clock.timer(callback);
  }

  timerInBackground(callback: () => void): Timer {
    return this.#clock.timerInBackground(callback);
  }
}

/** Counts the reads of clocks, and stops the process before one of them. */
export class Stops {
  readonly #stop: () => void;
  #reads = 0;
  #stopsAt = 0;
  #isIgnoring = false;

  /** @param stop advances the time by the length of the stop */
  constructor(stop: () => void) {
    this.#stop = stop;
  }

  /** Called before each read. */
  readonly beforeRead = (): void => {
    if (this.#isIgnoring) return;
    this.#reads += 1;
    if (this.#reads === this.#stopsAt) this.#stop();
  };

  /** The number of reads since the last call of `arm`. */
  get reads(): number {
    return this.#reads;
  }

  /** Resets the count, and stops the process before the nth read from now on. 0 means never. */
  arm(nth: number): void {
    this.#reads = 0;
    this.#stopsAt = nth;
  }

  /** From now on, reads neither count nor stop the process. */
  ignore(): void {
    this.#isIgnoring = true;
  }

  /** Runs a function of the test whose clock reads do not count. */
  ignoring<Result>(judge: () => Result): Result {
    const before = this.#isIgnoring;
    this.#isIgnoring = true;
    try {
      return judge();
    } finally {
      this.#isIgnoring = before;
    }
  }
}
