import type { CancelTimer, Clock, Timer } from "../../runtime/clock";
import { PlainTimer } from "../support/plain-timer";
import type { SeededRandom } from "../support/seeded-random";
import type { VirtualClock } from "../support/virtual-clock";

/** A timer of the system's is never early, not even by the rounding of a number. */
const NEVER_EARLY_MS = 0.001;

interface Event {
  readonly from: "timer" | "network";
  readonly run: () => void;
}

/**
 * The time as one process has it: from a start of its own, and a little faster or slower than the server's.
 * While the process is frozen nothing of it runs, and its time goes on all the same. Once it is dead nothing
 * of it ever runs again.
 */
export class ProcessClock implements Clock {
  readonly #world: VirtualClock;
  readonly #random: SeededRandom;
  readonly #rate: number;
  readonly #startsAt: number;
  #state: "running" | "frozen" | "dead" = "running";
  /** What would have run while it was frozen. */
  #missed: Event[] = [];
  /** Each time for which it was frozen, in its own time. The last may be going on. */
  readonly #frozen: { from: number; to: number }[] = [];

  /** @param rate its milliseconds in one of the world's */
  constructor(world: VirtualClock, random: SeededRandom, rate: number) {
    this.#world = world;
    this.#random = random;
    this.#rate = rate;
    this.#startsAt = random.below(1_000_000) - world.now() * rate;
  }

  get isDead(): boolean {
    return this.#state === "dead";
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  now(): number {
    return this.#startsAt + this.#world.now() * this.#rate;
  }

  epochMicroseconds(): number {
    return this.#world.epochMicroseconds();
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    let isCancelled = false;
    const run = (): void => {
      if (!isCancelled) callback();
    };
    const cancel = this.#world.after(Math.max(delayMs, 0) / this.#rate + NEVER_EARLY_MS, () =>
      this.#happen({ from: "timer", run }),
    );
    return () => {
      isCancelled = true;
      cancel();
    };
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

  /** Something comes over the network: a reply, a hint, the end of a connection. */
  arrive(run: () => void): void {
    this.#happen({ from: "network", run });
  }

  freeze(): void {
    if (this.#state !== "running") return;
    this.#state = "frozen";
    this.#frozen.push({ from: this.now(), to: Infinity });
  }

  /** What was missed happens now: the timers, and what came over the network, whichever the event loop has first. */
  thaw(): void {
    if (this.#state !== "frozen") return;
    this.#state = "running";
    const last = this.#frozen.at(-1);
    if (last !== undefined) last.to = this.now();
    const first = this.#random.oneOf("timer", "network");
    const missed = this.#missed;
    this.#missed = [];
    const [early, late] = [true, false].map((isFirst) =>
      missed.filter(({ from }) => (from === first) === isFirst),
    );
    // Each in a turn of its own, all at this moment, and before anything that is set from now on.
    for (const event of [...(early ?? []), ...(late ?? [])]) this.#world.after(0, () => this.#happen(event));
  }

  die(): void {
    this.#state = "dead";
    this.#missed = [];
  }

  /** For how long it was awake between the two times. */
  awakeMs(from: number, to: number): number {
    const frozenMs = this.#frozen.map((time) =>
      Math.max(Math.min(time.to, to) - Math.max(time.from, from), 0),
    );
    return frozenMs.reduce((rest, ms) => rest - ms, Math.max(to - from, 0));
  }

  #happen(event: Event): void {
    if (this.#state === "running") event.run();
    else if (this.#state === "frozen") this.#missed.push(event);
  }
}
