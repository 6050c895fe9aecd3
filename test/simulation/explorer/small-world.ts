import type { LockOptions } from "../../../runtime/lock/settings";
import { reasonOf } from "../../../runtime/errors";
import type { Caller } from "../caller";
import { Invariants } from "../invariants";
import { SimulatedProcess } from "../process";
import { ProcessClock } from "../process-clock";
import { SimulatedServer } from "../server";
import type { Tamper } from "../tampering";
import { Fingerprint } from "./fingerprint";
import { withShortIds } from "./names";
import { Schedule, type Pending } from "./schedule";
import { Wire, type CarriedOut } from "./wire";

/** Who calls in a small world. */
export interface Plan {
  readonly name: string;
  /** One call each: in which process, when, and for how long it works once it is inside. */
  readonly calls: readonly {
    readonly process: number;
    readonly atMs: number;
    readonly workMs: number;
    readonly how: LockOptions;
  }[];
}

/** Which deviation was chosen at which step. */
export interface Choice {
  readonly step: number;
  readonly option: number;
}

/** What became of one schedule. */
export interface Story {
  readonly problems: readonly string[];
  /** How many deviations there were to choose from, at each step after the last choice. */
  readonly options: readonly number[];
  readonly steps: number;
  /** The same for two schedules in which each process and the server see the same, in the same order, at the same times. */
  readonly fingerprint: number;
  /** The same for two schedules in which each of them sees the same in the same order. */
  readonly orderFingerprint: number;
  readonly carriedOut: readonly CarriedOut[];
  readonly endedAfterMs: number;
  readonly trace: readonly string[];
}

const KEY = "LOCK_one";
const COMMAND_TIMEOUT_MS = 100;
const LATENCY_MS = 1;
const FREEZE_MS = 2_600;
/** Nobody waits so long; what goes on longer goes on for ever. */
const MOST_STEPS = 2_000;
const LONGEST_MS = 60_000;
/** Beside a waiter: the longest time for which a message is held back, and the look of the first in line. */
const IDLE_MS = 4_000;

/** How a schedule is lived. */
export interface Manner {
  /** Whether to tell what happens. */
  readonly isTraced?: boolean;
  /** Whether to count what could be chosen. */
  readonly countsOptions?: boolean;
  readonly tamper?: Tamper;
}

/**
 * Lives one schedule of a small world, from its beginning to its end: the runtime's real code in virtual time.
 *
 * @param choices the deviations from the plain order, in the order of their steps
 */
export function live(plan: Plan, choices: readonly Choice[], manner: Manner = {}): Promise<Story> {
  return new SmallWorld(plan, manner).run(choices, manner.countsOptions ?? false);
}

class SmallWorld {
  readonly #schedule = new Schedule();
  readonly #server: SimulatedServer;
  readonly #invariants: Invariants;
  readonly #processes: SimulatedProcess[] = [];
  readonly #carriedOut: CarriedOut[] = [];
  readonly #fingerprint = new Fingerprint();
  readonly #trace: string[] | undefined;
  readonly #callers = new Set<Caller>();
  /** Those who wait, or are inside. */
  #underWay = 0;

  constructor(plan: Plan, { tamper = (store) => store, isTraced = false }: Manner) {
    this.#trace = isTraced ? [] : undefined;
    let invariants: Invariants | undefined;
    const schedule = this.#schedule;
    this.#server = new SimulatedServer(
      schedule.timeOf("server"),
      (serverNow) => {
        invariants = new Invariants(() => schedule.now(), serverNow, {
          isCalm: false,
          idleMs: () => IDLE_MS,
        });
        return invariants.truth;
      },
      tamper,
      () => this.#invariants.checkBeliefs(),
    );
    if (invariants === undefined) throw new Error("Expected the server to ask for the truth");
    this.#invariants = invariants;
    const wires: Wire[] = [];
    for (const number of new Set(plan.calls.map(({ process }) => process))) {
      const pace = { rate: 1, startsAt: 1_000_000 * number, bootStepMs: 0 };
      const clock = new ProcessClock(schedule.timeOf(number), pace);
      const wire = new Wire(schedule, number, clock, this.#server, {
        onCarriedOut: (done) => this.#notes(done),
        onAsk: (requestId) => this.#invariants.beliefs.asks(requestId),
        onGiveUp: (requestId) => this.#invariants.beliefs.givesUp(requestId),
        onNotDropped: (key, requestId) => this.#invariants.heardOfLoss(key, requestId),
      });
      wires.push(wire);
      const process = new SimulatedProcess(number, clock, wire, COMMAND_TIMEOUT_MS);
      this.#processes.push(process);
      const fault = (what: string, happen: () => void): void =>
        void schedule.add("fault", number, `process ${number} ${what}`, Infinity, happen);
      fault("crashes", () => this.#crash(process));
      fault("is frozen", () => this.#freeze(process));
      fault("shuts down at once", () => void process.close(0));
    }
    schedule.add("fault", "server", "the server loses its data", Infinity, () => {
      this.#server.loseEverything();
      this.#notes({ process: 0, at: schedule.now(), command: { name: "lose everything" }, reply: undefined });
      schedule.pass(LATENCY_MS); // It is not there again at the very same moment.
      for (const wire of wires) wire.reconnected();
    });
    plan.calls.forEach((call, index) => {
      const name = `caller ${String.fromCodePoint(65 + index)} of process ${call.process}`;
      const at = schedule.now() + call.atMs;
      schedule.add("act", call.process, `${name} comes`, at, () => void this.#call(name, call));
    });
  }

  async run(choices: readonly Choice[], countsOptions: boolean): Promise<Story> {
    const options: number[] = [];
    const startedAt = this.#schedule.now();
    const { problems } = this.#invariants;
    let [step, chosen] = [0, 0];
    for (; problems.length === 0; step += 1) {
      const next = this.#schedule.next();
      if (next === undefined) break;
      const choice = choices[chosen];
      if (choice?.step === step) {
        chosen += 1;
        await this.#happens(step, this.#deviate(next, choice));
      } else {
        if (choice === undefined && countsOptions) options[step] = this.#schedule.deviations(next).length;
        await this.#happens(step, next);
      }
      if (step > MOST_STEPS || this.#schedule.now() - startedAt > LONGEST_MS) {
        this.#invariants.report("it goes on for ever");
      }
    }
    if (problems.length === 0) this.#checkTheEnd();
    return {
      problems: problems.map(withShortIds),
      options,
      steps: step,
      fingerprint: this.#fingerprint.withTimes,
      orderFingerprint: this.#fingerprint.ofOrder,
      carriedOut: this.#carriedOut,
      endedAfterMs: this.#schedule.now() - startedAt,
      trace: (this.#trace ?? []).map(withShortIds),
    };
  }

  #deviate(next: Pending, { step, option }: Choice): Pending {
    const deviation = this.#schedule.deviations(next)[option];
    if (deviation === undefined) throw new Error(`Expected step ${step} to have an option ${option}`);
    this.#trace?.push(`       * ${step}:${option} ${deviation.label()}`);
    deviation.apply(next);
    return this.#schedule.next() ?? next;
  }

  async #happens(step: number, next: Pending): Promise<void> {
    this.#notesThat(step, this.#schedule.happen(next));
    this.#invariants.checkBeliefs();
    await this.#allPromiseJobs();
    this.#invariants.check();
  }

  /** What happened brings about what it can without time; beliefs are looked at in between. */
  async #allPromiseJobs(): Promise<void> {
    await nextTick();
    this.#invariants.checkBeliefs();
    await nextTick();
  }

  #notesThat(step: number, happened: readonly Pending[]): void {
    const at = this.#schedule.now();
    for (const { owner, label } of happened) {
      this.#fingerprint.add(owner, label, at);
      this.#trace?.push(`${(at - 5_000).toFixed(1).padStart(8)} ${step}: ${label}`);
    }
  }

  #notes(done: CarriedOut): void {
    this.#carriedOut.push(done);
    if (this.#trace === undefined) return;
    this.#trace.push(`             => ${JSON.stringify(done.reply)}`);
  }

  // ---- callers ----------------------------------------------------------------------------------------

  async #call(name: string, { process: number, workMs, how }: Plan["calls"][number]): Promise<void> {
    const process = this.#processes.find((one) => one.number === number);
    if (process === undefined || process.clock.isDead) return;
    const caller = newCaller(process, how);
    const { lock, goesAway } = caller;
    const away = this.#schedule.add("act", number, `${name} goes away`, Infinity, () => {
      if (!process.clock.isRunning || caller.state !== "waiting") return;
      this.#over(caller);
      this.#invariants.disappeared(caller);
      goesAway.abort();
    });
    this.#callers.add(caller);
    this.#underWay += 1;
    this.#invariants.joined(caller);
    try {
      let isHeld = await lock.acquire(goesAway.signal);
      while (!isHeld && (await lock.retryCheck())) isHeld = await lock.acquire(goesAway.signal);
      if (!isHeld) throw undefined;
    } catch (error) {
      this.#schedule.cancel(away);
      if (caller.state === "waiting") this.#invariants.turnedAway(caller, error);
      this.#over(caller);
      return this.#tell(`${name} was turned away: ${reasonOf(error)}`);
    }
    this.#schedule.cancel(away);
    if (caller.state === "gone") return void lock.release().catch(() => {});
    if (lock.remaining() === 0 && process.isClosed) {
      // It was shut down between the grant and the first step of the body.
      this.#invariants.disappeared(caller);
      this.#over(caller);
      return void lock.release().catch(() => {});
    }
    this.#tell(`${name} is let in by ${lock.storeValue}, for ${lock.remaining()} ms`);
    this.#invariants.entered(caller);
    await this.#work(process, workMs);
    this.#tell(`${name} leaves`);
    this.#invariants.leaves(caller, false);
    const trouble: unknown = await lock.release().then(
      () => undefined,
      (error: unknown) => error,
    );
    this.#tell(`${name} has left${trouble === undefined ? "" : `: ${reasonOf(trouble)}`}`);
    this.#invariants.left(caller, trouble);
    this.#over(caller);
  }

  /** The shortest body has no turn of the event loop of its own. */
  async #work(process: SimulatedProcess, ms: number): Promise<void> {
    if (ms > 0) await process.passes(ms);
  }

  #over(caller: Caller): void {
    if (this.#callers.delete(caller)) this.#underWay -= 1;
  }

  #tell(what: string): void {
    this.#trace?.push(`             ${what}`);
  }

  // ---- troubles ---------------------------------------------------------------------------------------

  #crash(process: SimulatedProcess): void {
    process.clock.die();
    this.#invariants.crashed(process);
    for (const caller of this.#callers) if (caller.process === process) this.#over(caller);
  }

  #freeze({ clock, number }: SimulatedProcess): void {
    clock.freeze();
    const at = this.#schedule.now() + FREEZE_MS;
    this.#schedule.add("act", "world", `process ${number} goes on`, at, () => clock.thaw("timer"));
  }

  // ---- the end ----------------------------------------------------------------------------------------

  #checkTheEnd(): void {
    if (this.#underWay > 0) this.#invariants.report(`${this.#underWay} callers wait for ever`);
    for (const { clock, number, hasQueues, isGivingBack } of this.#processes) {
      if (clock.isDead) continue;
      if (hasQueues) this.#invariants.report(`process ${number} has a queue at the end`);
      if (isGivingBack) this.#invariants.report(`process ${number} gives something back at the end`);
    }
  }
}

function newCaller(process: SimulatedProcess, how: LockOptions): Caller {
  const lock = process.lock(KEY, how);
  return {
    key: KEY,
    lock,
    process,
    joinedAt: process.clock.now(),
    budgetMs: (how.retryTimes ?? 0) * Number.parseInt(String(how.waitTime ?? 0), 10),
    watchesSignal: true,
    isNested: false,
    isReentrant: false,
    isHeldToItsEnd: true,
    goesAway: new AbortController(),
    state: "waiting",
    grant: undefined,
    storeValue: undefined,
    wasKeptToItsEnd: false,
    mustBeTold: false,
    mayBeSilent: false,
    silentSince: undefined,
  };
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
