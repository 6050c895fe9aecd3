import { AsyncResource } from "node:async_hooks";
import type { CancelTimer, Clock, Timer } from "../../runtime/base/clock";
import { PlainTimer } from "../support/plain-timer";
import type { WorldTime } from "./world-server";

/** A system timer is never early, not even by a rounding error. */
const NEVER_EARLY_MS = 0.001;

const UNNOTICED_MS = 20;

interface Event {
  readonly from: "timer" | "network";
  readonly run: () => void;
}

/** The difference between the time of one process and the world's. */
export interface Pace {
  /** Its milliseconds per millisecond of the world. */
  readonly rate: number;
  /** Its time when the world's time is 0. */
  readonly startsAt: number;
  /** The resolution of its time since boot. With 0, it has none. */
  readonly bootStepMs: number;
}

/**
 * The clock of one process. It has its own start, and is a little faster or slower than the server's clock. While the process
 * is frozen, nothing of it runs, but its time goes on. While its machine is suspended, its time stops, too. Nothing of a dead
 * process ever runs again.
 */
export class ProcessClock implements Clock {
  readonly #world: WorldTime;
  readonly #pace: Pace;
  #state: "running" | "frozen" | "suspended" | "dead" = "running";
  /** The events that came while it was frozen. */
  #missed: Event[] = [];
  /** The periods in which it was frozen, in its own time. The last one may not have ended. */
  readonly #frozen: { from: number; to: number }[] = [];
  /** How long it has been suspended so far, in the world's time, and since when it is. */
  #suspendedMs = 0;
  #suspendedAt: number | undefined;
  /** The time of its last resume, in its own time. */
  resumedAt = -Infinity;

  constructor(world: WorldTime, pace: Pace) {
    this.#world = world;
    this.#pace = pace;
    if (pace.bootStepMs > 0) this.sinceBoot = () => this.#sinceBoot();
  }

  readonly sinceBoot?: () => number;

  /** Its milliseconds per millisecond of the world. */
  get rate(): number {
    return this.#pace.rate;
  }

  get isDead(): boolean {
    return this.#state === "dead";
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  /** Whether it is suspended, or was so just now, so that the runtime notices it only at its next check. */
  get mayNotKnowOfSuspension(): boolean {
    return this.isSuspended || this.now() - this.resumedAt < UNNOTICED_MS;
  }

  get isSuspended(): boolean {
    return this.#state === "suspended";
  }

  now(): number {
    const worldNow = this.#suspendedAt ?? this.#world.now();
    return this.#pace.startsAt + (worldNow - this.#suspendedMs) * this.#pace.rate;
  }

  #sinceBoot(): number {
    const { rate, bootStepMs } = this.#pace;
    return Math.floor((this.#world.now() * rate) / bootStepMs) * bootStepMs;
  }

  epochMicroseconds(): number {
    return this.#world.epochMicroseconds();
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    const dueAt = this.now() + Math.max(delayMs, 0);
    let cancel: CancelTimer = () => {};
    let isCancelled = false;
    const run = (): void => {
      if (isCancelled) return;
      if (this.now() < dueAt)
        arm(); // It was suspended meanwhile.
      else callback();
    };
    const arm = (): void => {
      const worldMs = (dueAt - this.now()) / this.#pace.rate + NEVER_EARLY_MS;
      cancel = this.#world.after(worldMs, () => this.#happen({ from: "timer", run }));
    };
    arm();
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

  /** Runs after all network events of this moment, including those that came while the process was frozen. */
  afterIo(callback: () => void): void {
    this.#world.after(0, () => this.#happen({ from: "timer", run: callback }));
  }

  /** Delivers a network event: a reply, a wake-up, or the end of a connection. */
  arrive(run: () => void): void {
    this.#happen({ from: "network", run });
  }

  /** Stops the process for this long from now on, in the middle of a step. */
  stopsFor(ms: number): void {
    const from = this.now();
    this.#frozen.push({ from, to: from + ms * this.#pace.rate });
  }

  freeze(): void {
    if (this.#state !== "running") return;
    this.#state = "frozen";
    this.#frozen.push({ from: this.now(), to: Infinity });
  }

  /** Suspends its machine. The process sees no time pass. */
  suspend(): void {
    if (this.#state !== "running") return;
    this.#state = "suspended";
    this.#suspendedAt = this.#world.now();
  }

  /**
   * Ends a freeze or a suspension, and runs the missed timers and network events.
   *
   * @param first which of the two the event loop runs first
   */
  thaw(first: Event["from"]): void {
    if (this.#state !== "frozen" && this.#state !== "suspended") return;
    this.#state = "running";
    const last = this.#frozen.at(-1);
    if (last?.to === Infinity) last.to = this.now();
    if (this.#suspendedAt !== undefined) {
      this.#suspendedMs += this.#world.now() - this.#suspendedAt;
      this.#suspendedAt = undefined;
      this.resumedAt = this.now();
    }
    const missed = this.#missed;
    this.#missed = [];
    const [early, late] = [true, false].map((isFirst) =>
      missed.filter(({ from }) => (from === first) === isFirst),
    );
    // Each event has its own turn, all at this moment, and before any new timer.
    for (const event of [...(early ?? []), ...(late ?? [])]) this.#world.after(0, () => this.#happen(event));
  }

  die(): void {
    this.#state = "dead";
    this.#missed = [];
  }

  /** Returns how long it was awake between the two times. */
  awakeMs(from: number, to: number): number {
    const frozenMs = this.#frozen.map((time) =>
      Math.max(Math.min(time.to, to) - Math.max(time.from, from), 0),
    );
    return frozenMs.reduce((rest, ms) => rest - ms, Math.max(to - from, 0));
  }

  #happen(event: Event): void {
    if (this.#state === "running") event.run();
    else if (this.#state !== "dead") this.#missed.push({ ...event, run: AsyncResource.bind(event.run) });
  }
}
