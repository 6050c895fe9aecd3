import type { SeededRandom } from "../support/seeded-random";
import type { VirtualClock } from "../support/virtual-clock";
import type { Counts } from "./outcome";
import { SimulatedProcess } from "./process";
import type { SimulatedServer } from "./server";
import { cleared, type Weather } from "./weather";

/** Troubles come early, while there is somebody whom they can hit. */
const TROUBLES_WITHIN_MS = 5_000;

/** The processes and the server of a world, and all that happens to them. */
export class Machines {
  /** All that ever were. */
  readonly all: SimulatedProcess[] = [];
  hasCleared = false;
  readonly #clock: VirtualClock;
  readonly #random: SeededRandom;
  readonly #server: SimulatedServer;
  readonly #counts: Counts;
  readonly #onCrash: (process: SimulatedProcess) => void;
  /** Those that are there. Each may have had others before it, that crashed or were closed. */
  readonly #present: SimulatedProcess[] = [];
  #weather: Weather;

  constructor(
    clock: VirtualClock,
    random: SeededRandom,
    server: SimulatedServer,
    weather: Weather,
    counts: Counts,
    onCrash: (process: SimulatedProcess) => void,
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#server = server;
    this.#weather = weather;
    this.#counts = counts;
    this.#onCrash = onCrash;
    const slots = 1 + random.below(4);
    for (let slot = 0; slot < slots; slot += 1) this.#start(slot);
    this.#troubleTheServer();
  }

  /** Any of those that are there, unless it stands still. */
  any(): SimulatedProcess | undefined {
    const process = this.#present[this.#random.below(this.#present.length)];
    return process?.clock.isRunning === true ? process : undefined;
  }

  /** From now on nothing bad happens any more. */
  clear(): void {
    this.hasCleared = true;
    this.#weather = cleared(this.#weather);
    this.#server.moveOn();
    for (const { clock } of this.all) clock.thaw();
  }

  #start(slot: number): void {
    const random = this.#random;
    const number = this.all.length + 1;
    const process = new SimulatedProcess(number, this.#clock, random, this.#server, () => this.#weather);
    this.#present[slot] = process;
    this.all.push(process);
    const { crash, close, breaks, freezes } = this.#weather;
    if (random.happens(crash)) this.#atSomeTime(() => this.#crash(slot, process));
    else if (random.happens(close)) this.#atSomeTime(() => this.#close(slot, process));
    for (let n = random.below(breaks + 1); n > 0; n -= 1) this.#atSomeTime(() => this.#break(process));
    for (let n = random.below(freezes + 1); n > 0; n -= 1) this.#atSomeTime(() => this.#freeze(process));
  }

  #atSomeTime(happen: () => void): void {
    const withinMs = Math.min(this.#weather.clearsAfterMs, TROUBLES_WITHIN_MS);
    this.#clock.after(this.#random.below(withinMs + 1), () => {
      if (!this.hasCleared) happen();
    });
  }

  // ---- of a process -----------------------------------------------------------------------------------

  #crash(slot: number, process: SimulatedProcess): void {
    process.clock.die();
    this.#counts.crashes += 1;
    this.#onCrash(process);
    this.#replace(slot);
  }

  #close(slot: number, process: SimulatedProcess): void {
    process.close();
    this.#replace(slot);
  }

  #replace(slot: number): void {
    this.#clock.after(this.#random.below(1_500), () => this.#start(slot));
  }

  #break(process: SimulatedProcess): void {
    if (process.clock.isDead) return;
    this.#counts.breaks += 1;
    process.connection.break();
  }

  #freeze({ clock }: SimulatedProcess): void {
    if (!clock.isRunning) return;
    clock.freeze();
    this.#counts.freezes += 1;
    const ms = this.#random.oneOf(50, 500, 2_000, 5_000) * this.#random.next();
    this.#clock.after(ms, () => clock.thaw());
  }

  // ---- of the server ----------------------------------------------------------------------------------

  #troubleTheServer(): void {
    const { restarts, stalls, jumps } = this.#weather;
    const random = this.#random;
    for (let n = random.below(restarts + 1); n > 0; n -= 1) this.#atSomeTime(() => this.#restart());
    for (let n = random.below(stalls + 1); n > 0; n -= 1)
      this.#atSomeTime(() => this.#server.stall(random.oneOf(100, 2_000) * random.next()));
    if (jumps === "none") return;
    const farthestMs = random.oneOf(10, 10_000, 10_000_000);
    for (let n = random.below(4); n > 0; n -= 1) {
      const ms = random.below(farthestMs) - (jumps === "both" ? farthestMs / 2 : 0);
      this.#atSomeTime(() => this.#server.jump(ms));
    }
  }

  #restart(): void {
    this.#counts.restarts += 1;
    this.#server.restartEmpty(20 + this.#random.below(1_000));
    for (const { connection } of this.all) connection.break();
  }
}
