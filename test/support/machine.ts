import type { CancelTimer, Clock, Timer } from "../../runtime/base/clock";
import { PlainTimer } from "./plain-timer";
import type { VirtualClock } from "./virtual-clock";

/**
 * The clock of a process on a machine that can be suspended, as on Linux. During a suspension, the world's time and the
 * time since boot go on. The monotonic time and all timers stop.
 */
export class Machine implements Clock {
  readonly #world: VirtualClock;
  #suspendedMs = 0;
  /** How many of the next reads of the time since boot fail. */
  unreadable = 0;

  constructor(world: VirtualClock) {
    this.#world = world;
  }

  /** Suspends the machine for this long. */
  suspend(ms: number): void {
    this.#suspendedMs += ms;
    this.#world.freeze(ms);
  }

  now(): number {
    return this.#world.now() - this.#suspendedMs;
  }

  sinceBoot(): number {
    if (this.unreadable === 0) return this.#world.now();
    this.unreadable -= 1;
    throw new Error("EPERM");
  }

  epochMicroseconds(): number {
    return this.#world.epochMicroseconds();
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const dueAt = this.now() + Math.max(delayMs, 0);
    let cancel: CancelTimer = () => {};
    const arm = (): void => {
      cancel = this.#world.after(dueAt - this.now(), () => {
        if (this.now() < dueAt) arm();
        else callback();
      });
    };
    arm();
    return () => cancel();
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
}
