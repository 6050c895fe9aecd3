import type { LockOptions } from "../../../runtime/lock/settings";
import type { Tamper } from "../tampering";
import { Fingerprint } from "./fingerprint";
import { withShortIds } from "./names";
import type { Deviation, Pending, Schedule } from "./schedule";
import type { CarriedOut } from "./wire";

/** Who calls in a small world. */
export interface Plan {
  readonly name: string;
  /** Over a quorum of so many; without it, with one server. */
  readonly masters?: number;
  /** Whether a process may be stopped between any two reads of its clocks. */
  readonly mayStop?: boolean;
  /** Whether somebody may revoke what holds the key, at any time. */
  readonly mayBeRevoked?: boolean;
  /** One call each: in which process, when, and for how long it works once it is inside. */
  readonly calls: readonly {
    readonly process: number;
    readonly atMs: number;
    readonly workMs: number;
    readonly how: LockOptions;
    /** Several, which are had together or not at all; without them, one. */
    readonly keys?: readonly string[];
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

/** How a schedule is lived. */
export interface Manner {
  /** Whether to tell what happens. */
  readonly isTraced?: boolean;
  /** Whether to count what could be chosen. */
  readonly countsOptions?: boolean;
  readonly tamper?: Tamper;
}

/** Nobody waits so long; what goes on longer goes on for ever. */
const MOST_STEPS = 2_000;
const LONGEST_MS = 60_000;

/** What is wrong in a world, and when it is looked for. */
export interface Judge {
  readonly problems: readonly string[];
  report(problem: string): void;
  /** After each step, and in between. */
  checkBeliefs(): void;
  /** When all has happened that a step brings about. */
  check(): void;
  checkTheEnd(): void;
}

/** Lives the schedule of a world, step by step, and writes down what happens. */
export class Narrator {
  readonly #schedule: Schedule;
  readonly #carriedOut: CarriedOut[] = [];
  readonly #fingerprint = new Fingerprint();
  readonly #trace: string[] | undefined;
  readonly #mayStop: boolean;

  constructor(schedule: Schedule, isTraced: boolean, mayStop: boolean) {
    this.#schedule = schedule;
    this.#mayStop = mayStop;
    this.#trace = isTraced ? [] : undefined;
  }

  async live(judge: Judge, choices: readonly Choice[], countsOptions: boolean): Promise<Story> {
    const options: number[] = [];
    const startedAt = this.#schedule.now();
    const { problems } = judge;
    let [step, chosen] = [0, 0];
    for (; problems.length === 0; step += 1) {
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
        judge.report("it goes on for ever");
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

  /** What a command did. */
  notes(done: CarriedOut): void {
    this.#carriedOut.push(done);
    if (this.#trace === undefined) return;
    this.#trace.push(`             => ${JSON.stringify(done.reply)}`);
  }

  tell(what: string): void {
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

/** What happened brings about what it can without time; beliefs are looked at in between. */
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
