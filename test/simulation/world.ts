import type { Duration } from "../../runtime/duration";
import type { LockOptions } from "../../runtime/settings";
import { SeededRandom } from "../support/seeded-random";
import { VirtualClock } from "../support/virtual-clock";
import type { Caller } from "./caller";
import { Invariants } from "./invariants";
import { Machines } from "./machines";
import { noCounts, type Outcome } from "./outcome";
import type { SimulatedProcess } from "./process";
import { SimulatedServer } from "./server";
import type { Tamper } from "./tampering";
import { weatherOf, type Weather } from "./weather";

const LONGEST_LOCK_TIME_MS = 10_000;
/** A few commands. */
const CALM_IDLE_MS = 25;
/** A command that was lost before the weather cleared, and another. */
const HEALED_IDLE_MS = 1_250;

/**
 * One world, from its beginning to its end: all of it, and all that happens in it, follows from the seed.
 * Processes, callers and troubles come at random; `Invariants` looks at every step.
 */
export function simulate(seed: number, tamper: Tamper = (store) => store): Promise<Outcome> {
  return new World(seed, tamper).run();
}

type LockTimes = [Duration, ...Duration[]];

class World {
  readonly #seed: number;
  readonly #random: SeededRandom;
  readonly #clock = new VirtualClock();
  readonly #invariants: Invariants;
  readonly #server: SimulatedServer;
  readonly #isCalm: boolean;
  readonly #counts = noCounts();
  readonly #machines: Machines;
  readonly #callers = new Set<Caller>();
  readonly #keys: readonly string[];
  readonly #lockTimes: LockTimes;
  /** In many a world all callers want the same: then a lock is handed on inside a process again and again. */
  readonly #sameForAll: LockOptions | undefined;
  /** Most sections are shorter than this: many then run on one grant, or few. */
  readonly #briefMs: number;
  readonly #weather: Weather;
  #sectionsMs = 0;
  /** Calls that are still to come, or under way. */
  #underWay = 0;

  constructor(seed: number, tamper: Tamper) {
    this.#seed = seed;
    this.#random = new SeededRandom(seed);
    this.#weather = weatherOf(seed, this.#random);
    this.#isCalm = this.#weather.name === "calm";
    this.#invariants = new Invariants(this.#clock, {
      isCalm: this.#isCalm,
      idleMs: () => this.#idleMs,
    });
    this.#server = new SimulatedServer(this.#clock, this.#invariants.truth, tamper);
    this.#keys = ["LOCK_one", "LOCK_two"].slice(0, 1 + this.#random.below(2));
    this.#lockTimes = this.#chooseLockTimes();
    this.#sameForAll = this.#random.happens(0.5) ? this.#chooseHow() : undefined;
    this.#briefMs = this.#random.oneOf(1, 5, 60);
    this.#machines = new Machines(
      this.#clock,
      this.#random,
      this.#server,
      this.#weather,
      this.#counts,
      (process) => this.#crashed(process),
    );
  }

  /** How long a key may be free beside a waiter. */
  get #idleMs(): number {
    if (this.#isCalm) return CALM_IDLE_MS;
    return this.#machines.hasCleared ? HEALED_IDLE_MS : Infinity;
  }

  async run(): Promise<Outcome> {
    const random = this.#random;
    const spreadMs = this.#isCalm ? random.oneOf(0, 100, 2_000) : random.oneOf(0, 100, 2_000, 6_000);
    const calls = 4 + random.below(random.oneOf(8, 24, 60));
    for (let n = 0; n < calls; n += 1) {
      this.#underWay += 1;
      this.#clock.after(random.below(spreadMs + 1), () => void this.#call());
    }
    const startedAt = this.#clock.now();
    await this.#steps(this.#weather.clearsAfterMs);
    this.#machines.clear();
    this.#invariants.healed();
    // Enough for every section that there was, and for all that was left behind to expire.
    await this.#steps(60_000 + calls * (3_000 + 3_000));
    const { problems } = this.#invariants;
    if (problems.length === 0) {
      if (this.#underWay > 0) this.#invariants.report(`${this.#underWay} callers wait for ever`);
      if (this.#isCalm) this.#checkSpeed(startedAt, spreadMs);
      await this.#clock.advance(2 * LONGEST_LOCK_TIME_MS);
      await this.#checkTheEnd();
    }
    const endedAt = this.#clock.now();
    return { seed: this.#seed, weather: this.#weather.name, problems, counts: this.#counts, endedAt };
  }

  async #steps(ms: number): Promise<void> {
    await this.#clock.advanceWhile(() => {
      this.#invariants.check();
      return this.#underWay > 0 && this.#invariants.problems.length === 0;
    }, ms);
  }

  // ---- callers ----------------------------------------------------------------------------------------

  async #call(): Promise<void> {
    const caller = this.#join();
    if (caller === undefined) {
      this.#underWay -= 1;
      return;
    }
    const { lock, goesAway } = caller;
    try {
      while (!(await lock.acquire(goesAway.signal))) await lock.retryCheck();
    } catch (error) {
      if (caller.state === "waiting") this.#turnAway(caller, error);
      return;
    }
    if (caller.state === "gone") return;
    this.#counts.served += 1;
    this.#invariants.entered(caller);
    const bodyFailed = await this.#work(caller);
    this.#invariants.leaves(caller, bodyFailed);
    let trouble: unknown;
    try {
      await lock.release();
    } catch (error) {
      trouble = error;
    }
    this.#invariants.left(caller, trouble);
    this.#forget(caller);
  }

  #join(): Caller | undefined {
    const random = this.#random;
    const process = this.#machines.any();
    const key = random.oneOf("LOCK_one", ...this.#keys.slice(1));
    const [retryTimes, waitMs] = this.#chooseWait();
    const how = this.#sameForAll ?? this.#chooseHow();
    const options: LockOptions = { ...how, retryTimes, waitTime: `${waitMs}ms` };
    const watchesSignal = random.happens(0.5);
    if (process === undefined) return undefined;
    const caller: Caller = {
      key,
      lock: process.lock(key, options),
      process,
      joinedAt: process.clock.now(),
      budgetMs: retryTimes * waitMs,
      watchesSignal,
      goesAway: new AbortController(),
      state: "waiting",
      grant: undefined,
      mustBeTold: false,
      silentSince: undefined,
    };
    this.#callers.add(caller);
    this.#invariants.joined(caller);
    if (!this.#machines.hasCleared && random.happens(this.#weather.abort))
      void this.#abort(caller, random.below(1_000));
    return caller;
  }

  #chooseWait(): [retryTimes: number, waitMs: number] {
    if (this.#isCalm) return [100, 10_000];
    return this.#random.oneOf<[number, number]>([0, 1_000], [1, 300], [3, 700], [3, 5_000], [100, 10_000]);
  }

  #chooseHow(): LockOptions {
    const random = this.#random;
    const lockTime = random.oneOf(...this.#lockTimes);
    return {
      lockTime,
      watchdog: random.happens(this.#isCalm ? 0.8 : 0.6),
      fencing: random.happens(0.5),
      autoUnlock: this.#isCalm || random.happens(0.9),
    };
  }

  #chooseLockTimes(): LockTimes {
    if (this.#isCalm) return ["10s", "5s", "4s"];
    // When a place is left to one with another lock time, the network must keep the order of the two requests.
    return this.#weather.overtaking ? [this.#random.oneOf("2s", "600ms")] : ["3s", "800ms", "300ms"];
  }

  /** Resolves to whether the body failed. */
  async #work({ lock, process, watchesSignal }: Caller): Promise<boolean> {
    const random = this.#random;
    const ms = random.happens(this.#isCalm ? 0.05 : 0.3) ? random.below(3_000) : random.below(this.#briefMs);
    this.#sectionsMs += ms;
    const { signal } = watchesSignal ? lock : {};
    await new Promise<void>((resolve) => {
      process.clock.after(ms, resolve);
      if (random.happens(0.5)) signal?.addEventListener("abort", () => resolve());
    });
    const bodyFails = random.happens(0.1);
    if (bodyFails) lock.fail(undefined);
    return bodyFails;
  }

  async #abort(caller: Caller, ms: number): Promise<void> {
    await caller.process.passes(ms);
    if (caller.state !== "waiting") return;
    this.#disappear(caller);
    if (this.#random.happens(0.5)) caller.goesAway.abort();
    else await caller.lock.release().catch(() => {});
  }

  #crashed(process: SimulatedProcess): void {
    for (const caller of this.#callers) if (caller.process === process) this.#disappear(caller);
  }

  #turnAway(caller: Caller, error: unknown): void {
    this.#counts.turnedAway += 1;
    this.#invariants.turnedAway(caller, error);
    this.#forget(caller);
  }

  #disappear(caller: Caller): void {
    this.#invariants.disappeared(caller);
    this.#forget(caller);
  }

  #forget(caller: Caller): void {
    if (this.#callers.delete(caller)) this.#underWay -= 1;
  }

  // ---- the end ----------------------------------------------------------------------------------------

  /** In calm weather nobody waits but for others' sections, and for a few commands between them. */
  #checkSpeed(startedAt: number, spreadMs: number): void {
    const tookMs = this.#clock.now() - startedAt;
    const allowedMs = spreadMs + this.#sectionsMs + this.#counts.served * 8 * this.#weather.latencyMs + 20;
    if (tookMs > allowedMs) this.#invariants.report(`it took ${tookMs} ms, where ${allowedMs} ms are enough`);
  }

  /** What was lost on the way is over with its lock time. */
  async #checkTheEnd(): Promise<void> {
    for (const key of this.#keys) {
      if (!(await this.#isForgotten(key))) this.#invariants.report(`${key} is not forgotten at the end`);
    }
    for (const process of this.#machines.all) {
      if (process.clock.isDead) continue;
      if (process.hasLines) this.#invariants.report(`process ${process.number} has a line at the end`);
      if (process.isGivingBack && this.#isCalm)
        this.#invariants.report(`process ${process.number} gives something back at the end`);
    }
    const { pendingTimers } = this.#clock;
    if (pendingTimers > 0) this.#invariants.report(`${pendingTimers} timers are left at the end`);
  }

  /** Whether nobody holds the key, and nobody has a place in its queue. */
  async #isForgotten(key: string): Promise<boolean> {
    const [probe, next] = ["e", "f"].map((digit) => ({
      key,
      requestId: digit.repeat(32),
      lockTimeMs: 1,
      fencing: false,
    }));
    if (probe === undefined || next === undefined) return false;
    if (!(await this.#server.acquire(probe)).granted) return false;
    const { handedOn } = await this.#server.release(key, probe.requestId, next);
    return handedOn !== undefined;
  }
}
