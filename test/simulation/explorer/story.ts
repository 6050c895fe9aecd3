import type { LockOptions } from "../../../runtime/lock/settings";
import type { ModelTrace } from "../../spec/model-trace";
import type { Tamper } from "../tampering";
import { Fingerprint } from "./fingerprint";
import { withShortIds } from "./names";
import type { Deviation, Pending, Schedule } from "./schedule";
import type { Executed } from "./wire";

/** The calls of a small world. */
export interface Plan {
  readonly name: string;
  /** The number of masters in a quorum. Without it, there is one server. */
  readonly masters?: number;
  /** Whether a process may be stopped between any two reads of its clocks. */
  readonly mayStop?: boolean;
  /** Whether the holds of the key may be revoked at any time. */
  readonly mayBeRevoked?: boolean;
  /** The process, the time, and the length of the body of each call. */
  readonly calls: readonly {
    readonly process: number;
    readonly atMs: number;
    readonly workMs: number;
    readonly how: LockOptions;
    /** The keys of a multi-key call. Without them, the call is for one key. */
    readonly keys?: readonly string[];
  }[];
}

/** A deviation that is chosen at a step. */
export interface Choice {
  readonly step: number;
  readonly option: number;
}

/** The result of one schedule. */
export interface Story {
  readonly problems: readonly string[];
  /** The number of possible deviations at each step after the last choice. */
  readonly options: readonly number[];
  readonly steps: number;
  /** The same for two schedules in which each process and the server see the same, in the same order, at the same times. */
  readonly fingerprint: number;
  /** The same for two schedules in which each of them sees the same in the same order. */
  readonly orderFingerprint: number;
  readonly carriedOut: readonly Executed[];
  readonly endedAfterMs: number;
  readonly trace: readonly string[];
  /** The run in the steps of the model, if it was recorded and the model says something about it. */
  readonly modelTraces?: readonly ModelTrace[];
}

/** How a schedule runs. */
export interface Manner {
  /** Whether to record a trace. */
  readonly isTraced?: boolean;
  /** Whether to count the possible deviations. */
  readonly countsOptions?: boolean;
  readonly tamper?: Tamper;
  /** Whether to record the run in the steps of the model in `lock.pml`. */
  readonly isModeled?: boolean;
}

/** No schedule takes this long unless it never ends. */
const MOST_STEPS = 2_000;
const LONGEST_MS = 60_000;

/** Checks a world for problems. */
export interface Judge {
  readonly problems: readonly string[];
  report(problem: string): void;
  /** Called after each step, and in between. */
  checkBeliefs(): void;
  /** Called when all effects of a step have happened. */
  check(): void;
  checkTheEnd(): void;
}

/** Runs the schedule of a world step by step, and records what happens. */
export class Narrator {
  readonly #schedule: Schedule;
  readonly #carriedOut: Executed[] = [];
  readonly #fingerprint = new Fingerprint();
  readonly #trace: string[] | undefined;
  readonly #mayStop: boolean;
  /** Whether the schedule goes on after a problem, so that the model can judge it, too. */
  readonly #goesOn: boolean;

  constructor(schedule: Schedule, { isTraced = false, isModeled = false }: Manner, mayStop: boolean) {
    this.#schedule = schedule;
    this.#mayStop = mayStop;
    this.#goesOn = isModeled;
    this.#trace = isTraced ? [] : undefined;
  }

  async live(judge: Judge, choices: readonly Choice[], countsOptions: boolean): Promise<Story> {
    const options: number[] = [];
    const startedAt = this.#schedule.now();
    const { problems } = judge;
    let [step, chosen] = [0, 0];
    const isOver = (): boolean => problems.length > 0 && !this.#goesOn;
    for (; !isOver(); step += 1) {
      const next = this.#schedule.next();
      if (next === undefined) break;
      const choice = choices[chosen];
      const isChosen = choice?.step === step;
      const counts = choice === undefined && countsOptions;
      const deviations = counts ? this.#schedule.deviations(next).length : 0;
      this.#schedule.stops.arm(0);
      if (isChosen) chosen += 1;
      await this.#happens(judge, step, isChosen ? this.#deviate(next, choice) : next);
      // A process may also be stopped before any of the reads that it made in this step.
      if (counts) options[step] = deviations + (this.#mayStopIn(next) ? this.#schedule.stops.reads : 0);
      if (step > MOST_STEPS || this.#schedule.now() - startedAt > LONGEST_MS) {
        judge.report("it never ends");
        break;
      }
    }
    if (problems.length === 0) judge.checkTheEnd();
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

  /** Records a command and its reply. */
  notes(done: Executed): void {
    this.#carriedOut.push(done);
    if (this.#trace === undefined) return;
    this.#trace.push(`             => ${JSON.stringify(done.reply)}`);
  }

  log(what: string): void {
    this.#trace?.push(`             ${what}`);
  }

  #deviate(next: Pending, { step, option }: Choice): Pending {
    const deviations = this.#schedule.deviations(next);
    const deviation = deviations[option] ?? this.#stopBefore(option - deviations.length, next);
    if (deviation === undefined) throw new Error(`Expected step ${step} to have an option ${option}`);
    this.#trace?.push(`       * ${step}:${option} ${deviation.label()}`);
    deviation.apply(next);
    return this.#schedule.next() ?? next;
  }

  /** A step of a server is atomic. */
  #mayStopIn({ owner }: Pending): boolean {
    return this.#mayStop && typeof owner === "number";
  }

  #stopBefore(read: number, next: Pending): Deviation | undefined {
    if (!this.#mayStopIn(next)) return undefined;
    return {
      label: () => `the process is stopped before read ${read + 1} of its clocks`,
      apply: ({ owner }) => {
        this.#schedule.stops.arm(read + 1);
        this.#fingerprint.add(owner, `stopped before read ${read + 1}`, this.#schedule.now());
      },
    };
  }

  async #happens(judge: Judge, step: number, next: Pending): Promise<void> {
    this.#notesThat(step, this.#schedule.happen(next));
    judge.checkBeliefs();
    await allPromiseJobs(judge);
    this.#schedule.stops.ignoring(() => judge.check());
  }

  #notesThat(step: number, happened: readonly Pending[]): void {
    const at = this.#schedule.now();
    for (const { owner, label } of happened) {
      this.#fingerprint.add(owner, label, at);
      this.#trace?.push(`${(at - 5_000).toFixed(1).padStart(8)} ${step}: ${label}`);
    }
  }
}

/** Runs all effects of an event that need no time, and checks beliefs in between. */
async function allPromiseJobs(judge: Judge): Promise<void> {
  await nextTick();
  judge.checkBeliefs();
  await nextTick();
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
