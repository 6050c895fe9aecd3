import test from "ava";
import type { Duration } from "../../runtime/duration";
import type { Lock } from "../../runtime/lock";
import type { LockOptions } from "../../runtime/settings";
import { Fleet, type FleetProcess } from "../support/fleet";
import { SeededRandom } from "../support/seeded-random";
import { lostOnTheWay, TamperedStore } from "../support/tampered-store";

// Whole fleets on networks of every kind, in virtual time. What must hold is checked all the time; a seed that
// breaks it is named in the failure, and breaks it again: SEED=123 npx ava test/runtime/simulation.test.ts.
// TIMES=100 looks at a hundred times as many.

/** How bad a network is. Probabilities, and milliseconds. */
interface Weather {
  readonly latencyMs: number;
  /** Whether a later command, or reply, may come before an earlier one. */
  readonly overtaking: boolean;
  readonly lost: number;
  readonly replyLost: number;
  readonly refused: number;
  readonly hintLost: number;
  /** Of a process, to fall silent for ever. */
  readonly crash: number;
  /** Of a caller, to go away while it waits. */
  readonly abort: number;
}

const CALM: Weather = {
  latencyMs: 3,
  overtaking: false,
  lost: 0,
  replyLost: 0,
  refused: 0,
  hintLost: 0,
  crash: 0,
  abort: 0,
};
const ROUGH: Weather = {
  latencyMs: 120,
  overtaking: false,
  lost: 0.03,
  replyLost: 0.03,
  refused: 0.03,
  hintLost: 0.2,
  crash: 0.3,
  abort: 0.1,
};
const STORM: Weather = {
  latencyMs: 400,
  overtaking: true,
  lost: 0.1,
  replyLost: 0.1,
  refused: 0.1,
  hintLost: 0.5,
  crash: 0.3,
  abort: 0.1,
};

const GRACE_MS = 250;
const LONGEST_LOCK_TIME_MS = 10_000;

interface Caller {
  readonly lock: Lock;
  readonly process: number;
  readonly joinedAt: number;
  readonly budgetMs: number;
  state: "waiting" | "inside" | "gone";
}

class Simulation {
  readonly fleet = new Fleet();
  readonly problems: string[] = [];
  #underWay = 0;
  #sectionsMs = 0;
  served = 0;
  turnedAway = 0;
  readonly #random: SeededRandom;
  readonly #weather: Weather;
  readonly #callers: Caller[] = [];
  readonly #lastTokens = new Map<string, number>();
  readonly #processes: FleetProcess[] = [];
  readonly #sameForAll: Duration;

  constructor(seed: number, weather: Weather) {
    this.#random = new SeededRandom(seed);
    this.#weather = weather;
    this.#sameForAll = this.#random.oneOf("2s", "600ms");
  }

  async run(): Promise<void> {
    const random = this.#random;
    const processCount = 1 + random.below(4);
    for (let n = 0; n < processCount; n += 1) this.#processes.push(this.#startProcess());
    const keys = ["LOCK_one", "LOCK_two"].slice(0, 1 + random.below(2));
    const spreadMs = random.oneOf(0, 100, 2_000);
    this.#underWay = 4 + random.below(24);
    const calls = Array.from({ length: this.#underWay }, async () => {
      await this.#passes(random.below(spreadMs + 1));
      await this.#call(random.oneOf("LOCK_one", ...keys.slice(1)), random.below(processCount));
      this.#underWay -= 1;
    });
    const startedAt = this.fleet.clock.now();
    const all = Promise.all(calls);
    while (this.#underWay > 0) {
      await this.fleet.clock.advance(5);
      this.#checkHolders();
    }
    await all;
    if (this.#weather === CALM) this.#checkSpeed(startedAt, spreadMs);
    // What was lost on the way is over with its lock time.
    await this.fleet.clock.advance(2 * LONGEST_LOCK_TIME_MS);
    for (const key of keys) {
      if (!(await this.fleet.isForgotten(key))) this.problems.push(`${key} is not forgotten at the end`);
    }
    this.#processes.forEach(({ locker }, n) => {
      if (!locker.lines.isEmpty) this.problems.push(`somebody stands in a line of process ${n} at the end`);
      if (locker.lines.givingBack.size > 0 && this.#weather === CALM)
        this.problems.push("something is being given back at the end");
    });
    const { pendingTimers } = this.fleet.clock;
    if (pendingTimers > 0) this.problems.push(`${pendingTimers} timers are left at the end`);
  }

  /** On a calm network nobody waits but for others' sections, and for a few commands between them. */
  #checkSpeed(startedAt: number, spreadMs: number): void {
    const tookMs = this.fleet.clock.now() - startedAt;
    const allowedMs = spreadMs + this.#sectionsMs + this.served * 8 * CALM.latencyMs + 20;
    if (tookMs > allowedMs) this.problems.push(`it took ${tookMs} ms, where ${allowedMs} ms are enough`);
  }

  #startProcess(): FleetProcess {
    const random = this.#random;
    const weather = this.#weather;
    const { clock, memory } = this.fleet;
    const store = new TamperedStore(memory);
    let hasCrashed = false;
    const journey = (): (() => Promise<void>) => {
      let lastArrival = 0;
      return async () => {
        const arrival = clock.now() + random.next() * weather.latencyMs;
        lastArrival = weather.overtaking ? arrival : Math.max(arrival, lastArrival);
        await this.#passes(lastArrival - clock.now());
        if (hasCrashed) await lostOnTheWay();
      };
    };
    const [there, back] = [journey(), journey()];
    store.onAny = async (send) => {
      const [lost, refused, replyLost] = [weather.lost, weather.refused, weather.replyLost].map(
        (probability) => random.happens(probability),
      );
      await there();
      if (lost) return await lostOnTheWay();
      if (refused) throw new Error("refused");
      const reply = await send();
      await back();
      return replyLost ? await lostOnTheWay() : reply;
    };
    store.onHint = (deliver) => {
      if (random.happens(weather.hintLost)) return;
      clock.after(random.next() * weather.latencyMs, () => {
        if (!hasCrashed) deliver();
      });
      if (random.happens(weather.hintLost / 4)) deliver(); // Once more, and out of its turn.
    };
    if (random.happens(weather.crash)) {
      clock.after(random.below(3_000), () => {
        hasCrashed = true;
      });
    }
    return this.fleet.process({ store, commandTimeout: random.oneOf("1s", "300ms") });
  }

  async #call(key: string, who: number): Promise<void> {
    const random = this.#random;
    const { clock } = this.fleet;
    const process = this.#processes[who];
    if (process === undefined) throw new Error("Expected a process");
    const isCalm = this.#weather === CALM;
    const wait = isCalm
      ? { retryTimes: 100, waitMs: 10_000 }
      : random.oneOf(
          { retryTimes: 0, waitMs: 1_000 },
          { retryTimes: 1, waitMs: 300 },
          { retryTimes: 3, waitMs: 700 },
          { retryTimes: 3, waitMs: 5_000 },
        );
    const options: LockOptions = {
      lockTime: this.#lockTime(),
      watchdog: random.happens(isCalm ? 0.8 : 0.6),
      fencing: random.happens(0.5),
      autoUnlock: isCalm || random.happens(0.9),
      retryTimes: wait.retryTimes,
      waitTime: `${wait.waitMs}ms`,
    };
    const lock = process.lock(key, options);
    const caller: Caller = {
      lock,
      process: who,
      joinedAt: clock.now(),
      budgetMs: wait.retryTimes * wait.waitMs,
      state: "waiting",
    };
    this.#callers.push(caller);
    if (random.happens(this.#weather.abort)) void this.#abort(caller, random.below(1_000));
    try {
      while (!(await lock.acquire())) await lock.retryCheck();
    } catch {
      if (caller.state === "waiting") this.#turnAway(caller);
      return;
    }
    if (caller.state === "gone") return;
    this.#enter(caller);
    const sectionMs = random.happens(isCalm ? 0.05 : 0.3) ? random.below(3_000) : random.below(60);
    this.#sectionsMs += sectionMs;
    await this.#passes(sectionMs);
    caller.state = "gone";
    await lock.release().catch(() => {});
  }

  #lockTime(): Duration {
    if (this.#weather === CALM) return this.#random.oneOf("10s", "5s", "4s");
    // When a place is left to one with another lock time, the network must keep the order of the two requests.
    return this.#weather.overtaking ? this.#sameForAll : this.#random.oneOf("3s", "800ms", "300ms");
  }

  async #abort(caller: Caller, ms: number): Promise<void> {
    await this.#passes(ms);
    if (caller.state !== "waiting") return;
    caller.state = "gone";
    await caller.lock.release().catch(() => {});
  }

  #turnAway(caller: Caller): void {
    caller.state = "gone";
    this.turnedAway += 1;
    this.#checkBudget(caller, "gave up");
    if (this.#weather === CALM) this.problems.push("a caller was turned away on a calm network");
  }

  #enter(caller: Caller): void {
    caller.state = "inside";
    this.served += 1;
    this.#checkBudget(caller, "entered");
    const { lock } = caller;
    for (const other of this.#callers) {
      if (other === caller) break;
      if (other.process === caller.process && other.lock.key === lock.key && other.state === "waiting")
        this.problems.push(`${lock.requestId} overtook ${other.lock.requestId}`);
    }
    this.#checkHolders();
    if (lock.fencingToken !== undefined) {
      const last = this.#lastTokens.get(lock.key) ?? 0;
      if (lock.fencingToken <= last && lock.remaining() > 0)
        this.problems.push(`token ${lock.fencingToken} after ${last}`);
      this.#lastTokens.set(lock.key, Math.max(last, lock.fencingToken));
    }
  }

  #checkBudget({ joinedAt, budgetMs }: Caller, what: string): void {
    const tookMs = this.fleet.clock.now() - joinedAt;
    if (tookMs > budgetMs + GRACE_MS) this.problems.push(`${what} after ${tookMs} ms of ${budgetMs} ms`);
  }

  #checkHolders(): void {
    for (const key of ["LOCK_one", "LOCK_two"]) {
      const sure = this.#callers.filter(({ lock }) => lock.key === key && lock.remaining() > 0);
      if (sure.length > 1) {
        const who = sure.map(({ lock, process }) => `${lock.requestId} of process ${process}`);
        this.problems.push(`${who.join(" and ")} are both sure to hold ${key}`);
      }
    }
  }

  #passes(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.fleet.clock.after(ms, resolve);
    });
  }
}

const { SEED, TIMES = "1" } = process.env;
const seeds = (count: number): number[] =>
  SEED === undefined ? Array.from({ length: count * Number(TIMES) }, (_, n) => n + 1) : [Number(SEED)];

for (const [name, weather, count] of [
  ["calm", CALM, 100],
  ["rough", ROUGH, 150],
  ["stormy", STORM, 150],
] as const) {
  test(`on a ${name} network nobody is in beside another, overtaken, kept too long or left behind`, async (t) => {
    let [served, turnedAway] = [0, 0];
    for (const seed of seeds(count)) {
      const simulation = new Simulation(seed, weather);
      await simulation.run();
      if (simulation.problems.length > 0)
        t.fail(`SEED=${seed}: ${simulation.problems.slice(0, 3).join("; ")}`);
      served += simulation.served;
      turnedAway += simulation.turnedAway;
    }
    t.log(`${served} served, ${turnedAway} turned away`);
    t.true(served > 0);
  });
}
