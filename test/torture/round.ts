import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import { startChild, type Child } from "../support/child";
import { monotonicMs } from "../support/monotonic";
import type { RedisServer } from "../support/redis-server";
import { SeededRandom } from "../support/seeded-random";
import { violationsAmong, type Violation } from "./beliefs";
import type { Defect } from "./defects";
import { Faults } from "./faults";
import { beliefsIn, complaintsIn, hungCallsIn, readHistory, type History } from "./history";
import { leftoversIn } from "./leftovers";
import { Keys } from "./plan";
import type { ProcessConfiguration, ProcessReport } from "./process";
import { openRoute, type Route } from "./route";

const PROCESSES = 3;
const CALLERS = 6;
const ROUND_MS = 12_000;
/** Longer than any call may take on a busy machine, so only a hanging call exceeds it. */
const FINISHED_WITHIN_MS = 90_000;

export interface Place {
  readonly server: RedisServer;
  readonly admin: Redis;
  readonly dir: string;
}

/** One process of the torture, and its way to Redis. */
export interface Member {
  readonly name: string;
  readonly child: Child<ProcessReport>;
  readonly route: Route;
  readonly file: string;
  /** No fault strikes a process that is still starting. */
  isReady: boolean;
  killedAt: number | undefined;
}

export interface RoundResult {
  readonly calls: number;
  readonly beliefs: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
  /** All other problems. */
  readonly problems: readonly string[];
  readonly histories: readonly History[];
  /** The faults, and when they were played. */
  readonly story: readonly { readonly at: number; readonly text: string }[];
}

/** Lets several processes contend for a few locks, plays faults on them, and checks their beliefs. */
export async function runRound(place: Place, seed: number, defect: Defect | undefined): Promise<RoundResult> {
  const round = new Round(place, seed, defect);
  try {
    return await round.run();
  } finally {
    await round.clear();
  }
}

class Round {
  readonly #place: Place;
  readonly #seed: number;
  readonly #defect: Defect | undefined;
  readonly #random: SeededRandom;
  readonly #members: Member[] = [];
  readonly #problems: string[] = [];
  #processes = 0;

  constructor(place: Place, seed: number, defect: Defect | undefined) {
    this.#place = place;
    this.#seed = seed;
    this.#defect = defect;
    this.#random = new SeededRandom(seed);
  }

  async run(): Promise<RoundResult> {
    await Promise.all(Array.from({ length: PROCESSES }, () => this.#add()));
    const keys = new Keys(String(this.#seed));
    const faults = new Faults(this.#place, keys, this.#random, this.#members, () => this.#add());
    const endsAt = monotonicMs() + ROUND_MS;
    while (monotonicMs() < endsAt) {
      await pause(this.#random.below(400));
      await faults.doOne();
    }
    await faults.heal();
    await this.#finish();
    const histories = this.#members.map(({ name, file, killedAt }) => readHistory(name, file, killedAt));
    const beliefs = histories.flatMap(beliefsIn);
    return {
      calls: numberOf(histories, "called"),
      beliefs: beliefs.length,
      faults: faults.counts,
      outcomes: outcomesOf(histories),
      violations: violationsAmong(beliefs),
      problems: [
        ...this.#problems,
        ...histories.flatMap(complaintsIn),
        ...histories.flatMap(hungCallsIn),
        ...(await leftoversIn(this.#place.admin)),
      ],
      histories,
      story: faults.story,
    };
  }

  async clear(): Promise<void> {
    for (const { child, route } of this.#members) {
      await child.kill();
      await route.stop();
    }
    await this.#place.admin.flushall();
  }

  async #add(): Promise<Member> {
    const { server, dir } = this.#place;
    const number = (this.#processes += 1);
    const hasClient = this.#random.happens(0.5);
    const route = await openRoute(server.port);
    const file = join(dir, `${this.#seed}-${number}.jsonl`);
    const child = startChild<ProcessReport>("../../torture/process.ts", {
      url: `redis://127.0.0.1:${route.port}`,
      hasClient,
      round: String(this.#seed),
      seed: this.#seed * 1_000 + number,
      callers: CALLERS,
      file,
      defect: this.#defect,
    } satisfies ProcessConfiguration);
    const member: Member = {
      name: `process ${number}`,
      child,
      route,
      file,
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
