import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startChild, type Child } from "../support/child";
import { monotonicMs } from "../support/monotonic";
import { SeededRandom } from "../support/seeded-random";
import { violationsAmong, type Violation } from "./beliefs";
import type { Defect } from "./defects";
import { Faults } from "./faults";
import { beliefsIn, complaintsIn, hungCallsIn, readHistory, unprovenIn, type History } from "./history";
import { longTurnsIn, overtakingIn } from "./order";
import { Keys } from "./plan";
import type { ProcessConfiguration, ProcessReport } from "./process";
import type { Route } from "./route";
import type { Topology } from "./topology";
import { openWallClock } from "./wall-clock";

/** A round without faults, in which the order of waiters between processes is checked, too. */
const CALM_SHARE = 0.2;
/** The longest time between the starts of two faults. */
const LONGEST_PAUSE_MS = 800;
/** Longer than any call may take on a busy machine, so only a hanging call exceeds it. */
const FINISHED_WITHIN_MS = 90_000;

/** One process of the torture, and its way to the servers. */
export interface Member {
  readonly name: string;
  readonly child: Child<ProcessReport>;
  readonly routes: readonly Route[];
  readonly file: string;
  /** Sets the difference between the wall clock of the process and the real one, in milliseconds. */
  readonly setWallClock: (differenceMs: number) => void;
  /** No fault strikes a process that is still starting. */
  isReady: boolean;
  killedAt: number | undefined;
}

export interface RoundOptions {
  readonly seed: number;
  /** The folder for the histories. */
  readonly dir: string;
  readonly processes?: number;
  /** The number of callers in each process. */
  readonly callers?: number;
  readonly lastsMs?: number;
  /** A defect that the checker must find. */
  readonly defect?: Defect | undefined;
  /** Whether all calls are of a kind that often outlives its lock. */
  readonly overruns?: boolean;
}

export interface RoundResult {
  readonly calls: number;
  readonly beliefs: number;
  /** The transactions that guarded a lock and committed. */
  readonly guards: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
  /** All other problems. */
  readonly problems: readonly string[];
  readonly histories: readonly History[];
  /** The faults, and when they were played. */
  readonly story: readonly { readonly at: number; readonly text: string }[];
}

/** Lets several processes contend for a few locks, plays faults on them and on the servers, and checks their histories. */
export async function runRound(topology: Topology, options: RoundOptions): Promise<RoundResult> {
  const round = new Round(topology, options);
  try {
    return await round.run();
  } finally {
    await round.clear();
  }
}

class Round {
  readonly #topology: Topology;
  readonly #options: RoundOptions;
  readonly #random: SeededRandom;
  readonly #members: Member[] = [];
  readonly #problems: string[] = [];
  #processes = 0;

  constructor(topology: Topology, options: RoundOptions) {
    this.#topology = topology;
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  async run(): Promise<RoundResult> {
    const { seed, processes = 3, lastsMs = 15_000, defect } = this.#options;
    const isCalm = this.#random.happens(CALM_SHARE) && defect === undefined;
    await Promise.all(Array.from({ length: processes }, () => this.#add()));
    const keys = new Keys(String(seed));
    const faults = new Faults(this.#topology, keys, this.#random, this.#members, () => this.#add());
    if (isCalm) await pause(lastsMs);
    else await this.#play(faults, lastsMs);
    await this.#finish();
    const histories = this.#members.map(({ name, file, killedAt }) => readHistory(name, file, killedAt));
    const beliefs = histories.flatMap(beliefsIn);
    return {
      calls: numberOf(histories, "called"),
      beliefs: beliefs.length,
      guards: numberOf(histories, "committed"),
      faults: isCalm ? { "calm round": 1 } : faults.counts,
      outcomes: outcomesOf(histories),
      violations: [...violationsAmong(beliefs), ...histories.flatMap(unprovenIn)],
      problems: [
        ...this.#problems,
        ...histories.flatMap(overtakingIn),
        ...(isCalm ? longTurnsIn(histories) : []),
        ...histories.flatMap(complaintsIn),
        ...histories.flatMap(hungCallsIn),
        ...(await this.#topology.leftovers()),
      ],
      histories,
      story: faults.story,
    };
  }

  async #play(faults: Faults, lastsMs: number): Promise<void> {
    for (const endsAt = monotonicMs() + lastsMs; monotonicMs() < endsAt;) {
      await pause(this.#random.below(LONGEST_PAUSE_MS));
      faults.doOne();
    }
    await faults.heal();
  }

  async clear(): Promise<void> {
    for (const { child, routes } of this.#members) {
      await child.kill();
      for (const route of routes) await route.stop();
    }
    await this.#topology.clear();
  }

  async #add(): Promise<Member> {
    const { seed, dir, callers = 6, defect, overruns = false } = this.#options;
    const number = (this.#processes += 1);
    const { options, hasSharedLocks } = this.#topology;
    const { routes, target } = await this.#topology.connect(this.#random);
    const file = join(dir, `${seed}-${number}.jsonl`);
    const wallClock = openWallClock(`${file}.clock`, this.#random);
    const configuration: ProcessConfiguration = {
      target,
      round: String(seed),
      seed: seed * 1_000 + number,
      callers,
      file,
      options,
      hasSharedLocks,
      defect,
      overruns,
    };
    const child = startChild<ProcessReport>(
      "../../torture/process.ts",
      configuration,
      () => {},
      wallClock.environment,
    );
    const member: Member = {
      name: `process ${number}`,
      child,
      routes,
      file,
      setWallClock: (differenceMs) => wallClock.set(differenceMs, child),
      isReady: false,
      killedAt: undefined,
    };
    this.#members.push(member);
    await child.reported(({ event }) => event === "ready");
    member.isReady = true;
    return member;
  }

  /** Makes the living processes finish their calls, close their connections, and end. */
  async #finish(): Promise<void> {
    const living = this.#members.filter(({ killedAt }) => killedAt === undefined);
    const ended = living.map(async ({ name, child }) => {
      child.tell("finish");
      const { code, signal } = await child.ended;
      await child.closed;
      if (code !== 0) this.#problems.push(`${name} ended with ${code ?? signal}: ${child.complaints}`);
    });
    const late = new AbortController();
    const isLate = pause(FINISHED_WITHIN_MS, true, { signal: late.signal }).catch(() => false);
    if ((await Promise.race([Promise.all(ended), isLate])) === true) {
      const running = living.filter(({ child }) => !child.reports.some(({ event }) => event === "finished"));
      this.#problems.push(`${running.map(({ name }) => name).join(", ") || "a process"} did not end`);
    }
    late.abort();
  }
}

function numberOf(histories: readonly History[], event: string): number {
  return histories.reduce(
    (sum, { entries }) => sum + entries.filter((entry) => entry.event === event).length,
    0,
  );
}

function outcomesOf(histories: readonly History[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { entries } of histories) {
    for (const entry of entries) {
      if (entry.event === "ended") counts[entry.with] = (counts[entry.with] ?? 0) + 1;
    }
  }
  return counts;
}
