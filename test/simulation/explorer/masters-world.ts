import { errorMessage } from "../../../runtime/base/errors";
import type { Lock } from "../../../runtime/lock/lock";
import type { Member } from "../../../runtime/stores/quorum/master";
import { QuorumStore } from "../../../runtime/stores/quorum/quorum";
import { inContextOf } from "../contexts";
import { SimulatedProcess } from "../process";
import { ProcessClock } from "../process-clock";
import { SimulatedServer } from "../server";
import type { Tamper } from "../tampering";
import { Truth } from "../truth";
import { StoppingClock } from "../../support/stopping-clock";
import { Schedule } from "./schedule";
import { Narrator, type Choice, type Judge, type Manner, type Plan, type Story } from "./story";
import { Wire } from "./wire";

const KEY = "LOCK_one";
const COMMAND_TIMEOUT_MS = 100;
const LONGEST_LOCK_TIME_MS = 3_000;
const LATENCY_MS = 1;
const FREEZE_MS = 2_600;
/** Clocks return fractions. */
const ROUNDING_MS = 0.01;

/** Runs a schedule over a quorum. Each message between a process and a master is a separate event. */
export function liveOnMasters(
  plan: Plan,
  masters: number,
  choices: readonly Choice[],
  manner: Manner,
): Promise<Story> {
  return new MastersWorld(plan, masters, manner).run(choices, manner.countsOptions ?? false);
}

/** One of the masters, and the record of its replies. */
interface SimulatedMaster {
  readonly server: SimulatedServer;
  readonly truth: Truth;
  readonly wires: Wire[];
  /** In the world's time. */
  startedAt: number;
}

class MastersWorld implements Judge {
  readonly problems: string[] = [];
  readonly #schedule = new Schedule();
  readonly #narrator: Narrator;
  readonly #mayStop: boolean;
  readonly #masters: readonly SimulatedMaster[];
  readonly #processes: SimulatedProcess[] = [];
  /** The locks of the bodies that run, each with its process. */
  readonly #inside = new Map<Lock, SimulatedProcess>();
  readonly #underWay = new Map<string, SimulatedProcess>();
  #entries = 0;

  constructor(plan: Plan, masters: number, manner: Manner) {
    const { tamper = (store) => store } = manner;
    this.#mayStop = plan.mayStop ?? false;
    this.#schedule.onStop = () => {
      for (const { clock } of this.#processes) clock.stopsFor(FREEZE_MS);
      this.#schedule.pass(FREEZE_MS);
    };
    this.#narrator = new Narrator(this.#schedule, manner, this.#mayStop);
    this.#masters = Array.from({ length: masters }, () => this.#newMaster(tamper));
    for (const number of new Set(plan.calls.map(({ process }) => process))) this.#addProcess(number);
    this.#masters.forEach((master, index) => {
      this.#fault("server", `master ${index + 1} loses its data`, () => {
        master.server.loseEverything();
        master.startedAt = this.#schedule.now();
        this.#schedule.pass(LATENCY_MS); // It does not come back at the same moment.
        for (const wire of master.wires) wire.reconnected();
      });
    });
    plan.calls.forEach((call, index) => {
      const name = `caller ${String.fromCodePoint(65 + index)} of process ${call.process}`;
      const at = this.#schedule.now() + call.atMs;
      const context = { name, report: (problem: string) => this.report(problem) };
      const come = (): void => void inContextOf(context, () => this.#call(name, call));
      this.#schedule.add("act", call.process, `${name} comes`, at, come);
    });
  }

  run(choices: readonly Choice[], countsOptions: boolean): Promise<Story> {
    return this.#narrator.live(this, choices, countsOptions);
  }

  #newMaster(tamper: Tamper): SimulatedMaster {
    let truth: Truth | undefined;
    const server = new SimulatedServer(
      this.#schedule.timeOf("server"),
      (now) => (truth = new Truth(now, (problem) => this.report(problem), false)),
      tamper,
      () => this.checkBeliefs(),
    );
    if (truth === undefined) throw new Error("Expected the server to ask for the truth");
    return { server, truth, wires: [], startedAt: -Infinity };
  }

  #addProcess(number: number): void {
    const pace = { rate: 1, startsAt: 1_000_000 * number, bootStepMs: this.#mayStop ? 1 : 0 };
    const clock = new ProcessClock(this.#schedule.timeOf(number), pace);
    const runtimeClock = this.#mayStop ? new StoppingClock(clock, this.#schedule.stops.beforeRead) : clock;
    const members = this.#masters.map((master, index): Member => {
      const wire = new Wire(
        this.#schedule,
        number,
        clock,
        master.server,
        {
          onExecuted: (done) => this.#narrator.notes(done),
          onAcquireSent() {},
          onReleaseSent() {},
          onNotReleased() {},
        },
        ` at master ${index + 1}`,
      );
      master.wires.push(wire);
      return {
        store: wire,
        raiseFence: () => Promise.reject(new Error("Expected nobody to ask for a fencing token")),
        startedAt: async () => clock.now() - (this.#schedule.now() - master.startedAt),
        close: async () => {},
      };
    });
    const store = new QuorumStore(members, runtimeClock, LONGEST_LOCK_TIME_MS);
    const process = new SimulatedProcess(number, clock, store, COMMAND_TIMEOUT_MS, runtimeClock);
    this.#processes.push(process);
    this.#fault(number, `process ${number} crashes`, () => clock.die());
    this.#fault(number, `process ${number} is frozen`, () => {
      clock.freeze();
      const at = this.#schedule.now() + FREEZE_MS;
      this.#schedule.add("act", "world", `process ${number} goes on`, at, () => clock.thaw("timer"));
    });
    this.#fault(number, `process ${number} shuts down at once`, () => void process.close(0));
  }

  #fault(owner: number | "server", what: string, happen: () => void): void {
    this.#schedule.add("fault", owner, what, Infinity, happen);
  }

  // ---- callers ----------------------------------------------------------------------------------------

  async #call(name: string, { process: number, workMs, how }: Plan["calls"][number]): Promise<void> {
    const process = this.#processes.find((one) => one.number === number);
    if (process === undefined || process.clock.isDead) return;
    this.#underWay.set(name, process);
    const lock = process.lock(KEY, how);
    try {
      while (!(await lock.acquire())) if (!(await lock.retryCheck())) throw undefined;
      this.#schedule.stops.ignoring(() =>
        this.#narrator.log(`${name} is let in by ${lock.storeValue}, for ${lock.remaining()} ms`),
      );
      this.#inside.set(lock, process);
      const entries = (this.#entries += 1);
      await process.passes(workMs);
      this.#inside.delete(lock);
      const wasAlone = this.#entries === entries;
      this.#narrator.log(`${name} leaves`);
      await lock.release();
      if (!wasAlone)
        this.report(`${lock.storeValue} was reported as held to its end, and another body entered`);
      this.#narrator.log(`${name} has left`);
    } catch (error) {
      this.#narrator.log(`${name}: ${errorMessage(error)}`);
    }
    this.#underWay.delete(name);
  }

  // ---- what is wrong ----------------------------------------------------------------------------------

  report(problem: string): void {
    this.problems.push(problem);
  }

  /** Checks that no caller trusts more than a majority has for it. A master that lost its data counts as having it. */
  checkBeliefs(): void {
    let sure: Lock | undefined;
    for (const [lock, { clock }] of this.#inside) {
      const believedMs = lock.remaining();
      if (clock.isDead || believedMs === 0) continue;
      if (sure !== undefined)
        this.report(`${sure.storeValue} and ${lock.storeValue} both believe they hold it`);
      sure = lock;
      const { storeValue = "" } = lock;
      const has = this.#masters.filter(
        ({ truth }) =>
          !truth.hasKeptPromise(KEY, storeValue) || truth.leftMs(KEY, storeValue) + ROUNDING_MS >= believedMs,
      );
      if (has.length <= this.#masters.length / 2)
        this.report(
          `${storeValue} trusts its hold for ${believedMs.toFixed(1)} ms, and ${has.length} masters hold it`,
        );
    }
  }

  check(): void {
    this.checkBeliefs();
  }

  checkTheEnd(): void {
    for (const [name, { clock }] of this.#underWay) {
      if (!clock.isDead) this.report(`${name} waits forever`);
    }
    for (const { clock, number, hasQueues, isRetryingReleases } of this.#processes) {
      if (clock.isDead) continue;
      if (hasQueues) this.report(`process ${number} has a queue at the end`);
      if (isRetryingReleases) this.report(`process ${number} still retries a release at the end`);
    }
  }
}
