/**
 * Compares Lockweave, other libraries, and a hand-written lock in the same situations on the same Redis. In each round, every contestant
 * plays every scenario once, in a rotating order. Its result is compared with that of the hand-written lock in the same round.
 *
 *     npm run bench -- compare [--rounds <n>] [--only <scenario>[,...]] [--contestants <name>[,...]] [--quick]
 *         [--before <folder>] [--redraw]
 *
 * A whole benchmark writes `results/latest.json` and `results/plot.svg`. With `--only`, `--contestants`, `--before`, or `--quick`, it only
 * prints. `--before` measures Lockweave and, as the contestant `before`, another checkout of it that has been built, which shows the cost
 * of a change. `--redraw` prints and draws the latest results again, without a measurement.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startRedis, type RedisServer } from "../test/support/redis-server";
import { CONTESTANTS, isContestant, type ContestantName } from "./contestants";
import { BEFORE } from "./contestants/lockweave";
import { installPeers, peerVersions } from "./peers";
import { plot } from "./report/plot";
import { fullTable, shortTable } from "./report/table";
import { scenarioResult, type Results } from "./results";
import { SCENARIOS } from "./scenarios";
import type { Scenario } from "./scenarios/scenario";
import { startWire } from "./wire";

const DEFAULT_TIMES = { settlingMs: 1_000, durationMs: 2_000 };
const QUICK_TIMES = { settlingMs: 100, durationMs: 400 };
const ROUNDS = 5;
const DELAY_MS = 1;

type Figures = Readonly<Record<string, number>>;

const resultsFile = join(__dirname, "results/latest.json");
const plotFile = join(__dirname, "results/plot.svg");

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string" },
    only: { type: "string" },
    contestants: { type: "string" },
    before: { type: "string" },
    quick: { type: "boolean", default: false },
    redraw: { type: "boolean", default: false },
  },
});

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

async function main(): Promise<void> {
  const isWhole =
    !options.quick && [options.only, options.contestants, options.before].every((part) => part === undefined);
  const results = options.redraw ? (JSON.parse(readFileSync(resultsFile, "utf8")) as Results) : await bench();
  if (isWhole) {
    mkdirSync(join(__dirname, "results"), { recursive: true });
    writeFileSync(resultsFile, `${JSON.stringify(results, null, 1)}\n`);
    writeFileSync(plotFile, plot(results));
  }
  const versions = Object.entries(results.versions).map(([name, version]) => `${name} ${version}`);
  console.log(`\n${results.machine}; ${versions.join(", ")}; ${results.rounds} rounds\n`);
  console.log("Medians and quartiles; `x`: times the value of raw in the same round.\n");
  console.log(`${fullTable(results)}\n\n${shortTable(results)}`);
}

async function bench(): Promise<Results> {
  const rounds = options.quick && options.rounds === undefined ? 1 : Number(options.rounds ?? ROUNDS);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`Expected --rounds to be 1 or more`);
  const scenarios = chosenScenarios();
  const contestants = chosenContestants();
  installPeers();

  const played = new Map(
    scenarios.map((scenario) => [
      scenario,
      new Map(playersOf(scenario, contestants).map((name) => [name, [] as Figures[]])),
    ]),
  );
  const redis = await startRedis();
  try {
    for (let round = 0; round < rounds; round += 1) {
      const startedAt = performance.now();
      for (const [nth, [scenario, scores]] of [...played].entries()) {
        const plays: Map<ContestantName, Figures>[] = [];
        while (plays.length < (scenario.plays ?? 1)) {
          const order = rotated(playersOf(scenario, contestants), round + nth + plays.length);
          plays.push(await playAll(scenario, order, redis));
        }
        for (const [name, scored] of scores) {
          scored.push(mean(plays.map((figures) => figures.get(name) ?? {})));
        }
        const seconds = Math.round((performance.now() - startedAt) / 1_000);
        console.log(`round ${round + 1} of ${rounds}: ${scenario.name} played, ${seconds} s`);
      }
    }
    return {
      machine: `${cpus().length} x ${cpus()[0]?.model.trim() ?? "unknown CPU"}`,
      versions: { node: process.versions.node, redis: await redisVersion(redis), ...peerVersions() },
      rounds,
      scenarios: [...played].map(([scenario, scores]) => scenarioResult(scenario, scores)),
    };
  } finally {
    await redis.stop();
  }
}

async function playAll(
  scenario: Scenario,
  order: readonly ContestantName[],
  redis: RedisServer,
): Promise<Map<ContestantName, Figures>> {
  const played = new Map<ContestantName, Figures>();
  const playOne = async (contestant: ContestantName): Promise<void> => {
    played.set(contestant, await play(scenario, contestant, redis));
  };
  const admin = redis.client();
  if (scenario.atOnce === true) {
    await Promise.all(order.map(playOne));
    await admin.flushall();
  } else {
    for (const contestant of order) {
      await playOne(contestant);
      await admin.flushall(); // Deletes keys that the killed process still held.
    }
  }
  admin.disconnect();
  return played;
}

async function play(scenario: Scenario, contestant: ContestantName, redis: RedisServer): Promise<Figures> {
  const admin = redis.client();
  const counting = await startWire(redis.port);
  const far = await startWire(redis.port, DELAY_MS);
  try {
    return await scenario.play({
      contestant,
      redis: redis.port,
      counting,
      far,
      ...(options.quick ? QUICK_TIMES : DEFAULT_TIMES),
      quick: options.quick,
      countKeys: async (pattern) => (await admin.keys(pattern)).length,
    });
  } catch (error) {
    throw new Error(`${scenario.name} with ${contestant}`, { cause: error });
  } finally {
    await Promise.all([counting.stop(), far.stop()]);
    admin.disconnect();
  }
}

function chosenScenarios(): readonly Scenario[] {
  const names = options.only?.split(",");
  if (names === undefined) return SCENARIOS;
  return names.map((name) => {
    const scenario = SCENARIOS.find((candidate) => candidate.name === name);
    if (scenario !== undefined) return scenario;
    throw new Error(
      `There is no scenario \`${name}\`. The scenarios are ${SCENARIOS.map((known) => known.name).join(", ")}`,
    );
  });
}

/** Returns the chosen contestants. Raw is always included, because the others are compared with it. */
function chosenContestants(): readonly ContestantName[] {
  if (options.before !== undefined) process.env[BEFORE] = resolve(options.before);
  const names = options.contestants?.split(",") ?? (options.before === undefined ? undefined : ["lockweave"]);
  const unknown = names?.find((name) => !isContestant(name));
  if (unknown !== undefined) {
    throw new Error(`There is no contestant \`${unknown}\`. The contestants are ${CONTESTANTS.join(", ")}`);
  }
  return CONTESTANTS.filter((name) => {
    if (name === "raw") return true;
    return name === "before" ? options.before !== undefined : (names?.includes(name) ?? true);
  });
}

function playersOf(
  { players = CONTESTANTS }: Scenario,
  contestants: readonly ContestantName[],
): readonly ContestantName[] {
  return contestants.filter((name) => players.includes(name));
}

function mean(plays: readonly Figures[]): Figures {
  const names = Object.keys(plays[0] ?? {});
  return Object.fromEntries(
    names.map((name) => [
      name,
      plays.reduce((sum, figures) => sum + (figures[name] ?? NaN), 0) / plays.length,
    ]),
  );
}

function rotated<T>(items: readonly T[], by: number): T[] {
  const first = by % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

async function redisVersion(redis: RedisServer): Promise<string> {
  const info = await redis.client().info("server");
  return /redis_version:(\S+)/.exec(info)?.[1] ?? "unknown";
}
