import type { SeededRandom } from "../support/seeded-random";
import type { VirtualClock } from "../support/virtual-clock";
import type { ProcessObserver } from "./process-observer";
import type { Counts } from "./outcome";
import { SimulatedProcess } from "./process";
import { ProcessClock } from "./process-clock";
import type { SimulatedStore, Way } from "./simulated-store";
import { cleared, type Weather } from "./weather";

/** Faults come early, while there are callers that they can hit. */
const TROUBLES_WITHIN_MS = 5_000;

/** A shorter suspension is too short to be noticed. */
const NOTICED_SUSPENSION_MS = 3_000;

/** How a process ends. */
interface Ends {
  onCrash(process: SimulatedProcess): void;
  /** The process has shut down, and sends nothing more. */
  onClosed(process: SimulatedProcess): void;
}

/** The processes and the server of a world, and all that happens to them. */
export class Machines {
  /** All processes that ever ran. */
  readonly all: SimulatedProcess[] = [];
  hasCleared = false;
  readonly #clock: VirtualClock;
  readonly #random: SeededRandom;
  readonly #store: SimulatedStore;
  readonly #counts: Counts;
  readonly #ends: Ends;
  /** The current processes. Each may have replaced others that crashed or were closed. */
  readonly #present: SimulatedProcess[] = [];
  readonly #keys: readonly string[];
  readonly #observer: ProcessObserver;
  readonly #ways = new Map<SimulatedProcess, Way>();
  #weather: Weather;
  /** By how much the server's clock was set back, in all. */
  setBackMs = 0;

  constructor(
    clock: VirtualClock,
    random: SeededRandom,
    store: SimulatedStore,
    weather: Weather,
    counts: Counts,
    keys: readonly string[],
    observer: ProcessObserver,
    ends: Ends,
  ) {
    this.#keys = keys;
    this.#observer = observer;
    this.#clock = clock;
    this.#random = random;
    this.#store = store;
    this.#weather = weather;
    this.#counts = counts;
    this.#ends = ends;
    const slots = 1 + random.below(4);
    for (let slot = 0; slot < slots; slot += 1) this.#start(slot);
    this.#troubleTheServer();
  }

  /** Returns a random current process, or undefined if that one is frozen. */
  any(): SimulatedProcess | undefined {
    const process = this.#present[this.#random.below(this.#present.length)];
    return process?.clock.isRunning === true ? process : undefined;
  }

  /** Ends all faults for good. */
  clear(): void {
    this.hasCleared = true;
    this.#weather = cleared(this.#weather);
    this.#store.server.moveOn();
    // A machine that was resumed too soon would not notice that it was suspended.
    for (const { clock } of this.all)
      if (!clock.isSuspended) clock.thaw(this.#random.oneOf("timer", "network"));
  }

  #start(slot: number): void {
    const random = this.#random;
    const number = this.all.length + 1;
    const process = this.#newProcess(number);
    this.#present[slot] = process;
    this.all.push(process);
    const { crash, close, breaks, freezes, suspensions } = this.#weather;
    if (random.happens(crash)) this.#atSomeTime(() => this.#crash(slot, process));
    else if (random.happens(close)) this.#atSomeTime(() => this.#close(slot, process));
    for (let n = random.below(breaks + 1); n > 0; n -= 1) this.#atSomeTime(() => this.#break(process));
    for (let n = random.below(freezes + 1); n > 0; n -= 1) this.#atSomeTime(() => this.#freeze(process));
    for (let n = random.below(suspensions + 1); n > 0; n -= 1) this.#atSomeTime(() => this.#suspend(process));
  }

  #newProcess(number: number): SimulatedProcess {
    const random = this.#random;
    // The server's clock may differ from that of a process by less than the runtime allows for.
    const rate = this.#weather.name === "calm" ? 1 : 0.992 + random.next() * 0.016;
    const startsAt = random.below(1_000_000) + 1;
    const bootStepMs = random.oneOf(1, 10, 1_000);
    const clock = new ProcessClock(this.#clock, { rate, startsAt, bootStepMs });
    const way = this.#store.connect({
      random,
      process: clock,
      weather: () => this.#weather,
      observer: this.#observer,
    });
    const process = new SimulatedProcess(number, clock, way.store, random.oneOf(1_000, 300));
    this.#ways.set(process, way);
    return process;
  }

  #atSomeTime(happen: () => void): void {
    const timeoutMs = Math.min(this.#weather.clearsAfterMs, TROUBLES_WITHIN_MS);
    this.#clock.after(this.#random.below(timeoutMs + 1), () => {
      if (!this.hasCleared) happen();
    });
  }

  /** Shuts a process down, with some patience or none. */
  close(process: SimulatedProcess): void {
    void process.close(this.#random.oneOf(0, 100, 2_000)).then(() => this.#ends.onClosed(process));
  }

  // ---- of a process -----------------------------------------------------------------------------------

  #crash(slot: number, process: SimulatedProcess): void {
    process.clock.die();
    this.#counts.crashes += 1;
    this.#ends.onCrash(process);
    this.#replace(slot);
  }

  #close(slot: number, process: SimulatedProcess): void {
    this.close(process);
    this.#replace(slot);
  }

  #replace(slot: number): void {
    this.#clock.after(this.#random.below(1_500), () => this.#start(slot));
  }

  #break(process: SimulatedProcess): void {
    if (process.clock.isDead) return;
    this.#counts.breaks += 1;
    this.#ways.get(process)?.break();
  }

  #freeze({ clock }: SimulatedProcess): void {
    if (!clock.isRunning) return;
    clock.freeze();
    this.#counts.freezes += 1;
    const ms = this.#random.oneOf(50, 500, 2_000, 5_000) * this.#random.next();
    this.#clock.after(ms, () => clock.thaw(this.#random.oneOf("timer", "network")));
  }

  #suspend({ clock }: SimulatedProcess): void {
    if (!clock.isRunning) return;
    clock.suspend();
    this.#counts.freezes += 1;
    const ms = NOTICED_SUSPENSION_MS + this.#random.oneOf(100, 5_000, 20_000) * this.#random.next();
    this.#clock.after(ms, () => clock.thaw(this.#random.oneOf("timer", "network")));
  }

  // ---- of the server ----------------------------------------------------------------------------------

  #troubleTheServer(): void {
    const { restarts, stalls, jumps, deletions, revocations } = this.#weather;
    const random = this.#random;
    for (let n = random.below(restarts + 1); n > 0; n -= 1) this.#atSomeTime(() => this.#restart());
    for (let n = random.below(stalls + 1); n > 0; n -= 1)
      this.#atSomeTime(() => this.#store.server.stall(random.oneOf(100, 2_000) * random.next()));
    for (let n = random.below(deletions + 1); n > 0; n -= 1)
      this.#atSomeTime(() => void this.#store.server.delete(random.oneOf("", ...this.#keys)));
    for (let n = random.below(revocations + 1); n > 0; n -= 1)
      this.#atSomeTime(() => void this.#store.server.revoke(random.oneOf("", ...this.#keys)));
    if (jumps === "none") return;
    const farthestMs = random.oneOf(10, 3_000, 10_000);
    for (let n = random.below(4); n > 0; n -= 1) {
      const isBack = jumps === "backward" || (jumps === "both" && random.happens(0.5));
      const ms = random.below(isBack ? farthestMs : farthestMs * farthestMs);
      this.#atSomeTime(() => this.#jump(isBack ? -ms : ms));
    }
  }

  #jump(ms: number): void {
    if (ms < 0) this.setBackMs -= ms;
    this.#store.server.jump(ms);
  }

  #restart(): void {
    this.#counts.restarts += 1;
    this.#store.server.restart(20 + this.#random.below(1_000));
    for (const way of this.#ways.values()) way.break();
  }
}
