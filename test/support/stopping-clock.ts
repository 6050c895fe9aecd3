import type { CancelTimer, Clock, Timer } from "../../runtime/clock";
import { PlainTimer } from "./plain-timer";
import type { VirtualClock } from "./virtual-clock";

/** The clock of a process that can be stopped right before any of its reads, as by SIGSTOP. */
export class StoppingClock implements Clock {
  /** How often the process read its monotonic clock or its time since boot. */
  reads = 0;
  readonly #world: VirtualClock;
  #ignoresReads = false;
  #stopBefore: { readonly read: number; readonly ms: number } | undefined;

  constructor(world: VirtualClock) {
    this.#world = world;
  }

  /** Stops the process for so long before its nth read from now on. */
  stopBefore(nth: number, ms: number): void {
    this.#stopBefore = { read: this.reads + nth, ms };
  }

  /** What the process reads from here on neither counts nor stops it. */
  ignoreFurtherReads(): void {
    this.#ignoresReads = true;
  }

  now(): number {
    this.#read();
    return this.#world.now();
  }

  sinceBoot(): number {
    this.#read();
    return 900_000 + this.#world.now();
  }

  #read(): void {
    if (this.#ignoresReads) return;
    this.reads += 1;
    if (this.#stopBefore?.read === this.reads) this.#world.freeze(this.#stopBefore.ms);
  }

  epochMicroseconds(): number {
    return this.#world.epochMicroseconds();
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    return this.#world.after(delayMs, callback);
  }

  afterInBackground(delayMs: number, callback: () => void): CancelTimer {
    return this.#world.after(delayMs, callback);
  }

  timer(callback: () => void): Timer {
    return new PlainTimer(this.#world, callback);
  }

  timerInBackground(callback: () => void): Timer {
    return new PlainTimer(this.#world, callback);
  }
}
