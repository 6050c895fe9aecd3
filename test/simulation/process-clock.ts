import { AsyncResource } from "node:async_hooks";
import type { CancelTimer, Clock, Timer } from "../../runtime/clock";
import { PlainTimer } from "../support/plain-timer";
import type { WorldTime } from "./server";

/** A timer of the system's is never early, not even by the rounding of a number. */
const NEVER_EARLY_MS = 0.001;

const UNNOTICED_MS = 20;

interface Event {
  readonly from: "timer" | "network";
  readonly run: () => void;
}

/** How the time of one process differs from the world's. */
export interface Pace {
  /** Its milliseconds in one of the world's. */
  readonly rate: number;
  /** What it says when the world says 0. */
  readonly startsAt: number;
  /** In what steps its time since boot goes on; 0: it has none. */
  readonly bootStepMs: number;
}

/**
 * The time as one process has it: from a start of its own, and a little faster or slower than the server's.
 * While the process is frozen nothing of it runs, and its time goes on all the same; while its machine is suspended, its
 * time stands still, too. Once it is dead nothing of it ever runs again.
 */
export class ProcessClock implements Clock {
  readonly #world: WorldTime;
  readonly #pace: Pace;
  #state: "running" | "frozen" | "suspended" | "dead" = "running";
  /** What would have run while it was frozen. */
  #missed: Event[] = [];
  /** Each time for which it was frozen, in its own time. The last may be going on. */
  readonly #frozen: { from: number; to: number }[] = [];
  /** Of the world's time, what it was suspended for, until now, and since when it is. */
  #suspendedMs = 0;
  #suspendedAt: number | undefined;
  /** When it was resumed last, in its own time. */
  resumedAt = -Infinity;

  constructor(world: WorldTime, pace: Pace) {
    this.#world = world;
    this.#pace = pace;
    if (pace.bootStepMs > 0) this.sinceBoot = () => this.#sinceBoot();
  }

  readonly sinceBoot?: () => number;

  /** Its milliseconds in one of the world's. */
  get rate(): number {
    return this.#pace.rate;
  }

  get isDead(): boolean {
    return this.#state === "dead";
  }

  get isRunning(): boolean {
    return this.#state === "running";
  }

  /** Whether it is suspended, or was so just now, after the runtime had looked for it: its next look notices it. */
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

  /** After what comes over the network at this moment, which includes what came while the process was frozen. */
  afterIo(callback: () => void): void {
    this.#world.after(0, () => this.#happen({ from: "timer", run: callback }));
  }

  /** Something comes over the network: a reply, a hint, the end of a connection. */
  arrive(run: () => void): void {
    this.#happen({ from: "network", run });
  }

  /** It is stopped for so long from now on, in the middle of what it does. */
  stopsFor(ms: number): void {
    const from = this.now();
    this.#frozen.push({ from, to: from + ms * this.#pace.rate });
  }

  freeze(): void {
    if (this.#state !== "running") return;
    this.#state = "frozen";
    this.#frozen.push({ from: this.now(), to: Infinity });
  }

  /** The machine under it is suspended: as it sees it, no time passes. */
  suspend(): void {
    if (this.#state !== "running") return;
    this.#state = "suspended";
    this.#suspendedAt = this.#world.now();
  }

  /**
   * What was missed happens now: the timers, and what came over the network, whichever the event loop has first.
   *
   * @param first which that is
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
    else if (this.#state !== "dead") this.#missed.push({ ...event, run: AsyncResource.bind(event.run) });
  }
}
