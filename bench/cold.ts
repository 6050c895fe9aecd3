/**
 * Measures the first second of a process, as in a function of AWS Lambda, a cron job, or a command-line tool. Each measurement is a new
 * process with a connected client and cold code. The contestants play in turns on one Redis, and then through a proxy that delays bytes.
 *
 *     npm run bench -- cold [--rounds <n>] [--before <folder>] [--quick]
 *
 * `--before` also measures another checkout of Lockweave that has been built. `--quick` plays one round.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startRedis, type RedisServer } from "../test/support/redis-server";
import type { ContestantName } from "./contestants";
import { installPeers, peerVersions } from "./peers";
import { fullTable } from "./report/table";
import { scenarioResult } from "./results";
import { LOCK_TIME_MS, type Figure, type Scenario } from "./scenarios/scenario";
import { startWire } from "./wire";

const ROUNDS = 15;

interface Situation extends Pick<Scenario, "name" | "title" | "figures"> {
  readonly sections: number;
  /** How long bytes travel each way. */
  readonly delayMs: number;
  /** Whether the server has no scripts in its cache, as after a restart. */
  readonly isFresh?: boolean;
}

const SITUATIONS: readonly Situation[] = [
  {
    name: "near",
    title: "Redis on the same machine",
    sections: 1_000,
    delayMs: 0,
    figures: {
      import: ratio("import with ioredis"),
      firstGrant: ratio("configure() to first grant"),
      first1: ratio("first section"),
      first100: ratio("first 100"),
      first1000: ratio("first 1,000"),
      cpu: ratio("CPU of first 1,000"),
      wholeCpu: ratio("CPU of process"),
    },
  },
  { name: "far-1", title: "Redis 1 ms away", sections: 1, delayMs: 1, figures: firstLock() },
  { name: "far-20", title: "Redis 20 ms away", sections: 1, delayMs: 20, figures: firstLock() },
  {
    name: "fresh-20",
    title: "Redis 20 ms away, without scripts",
    sections: 1,
    delayMs: 20,
    isFresh: true,
    figures: firstLock(),
  },
];

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string" },
    before: { type: "string" },
    quick: { type: "boolean", default: false },
  },
});

type Figures = Readonly<Record<string, number>>;

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

async function main(): Promise<void> {
  const rounds = Number(options.rounds ?? (options.quick ? 1 : ROUNDS));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("Expected --rounds to be 1 or more");
  installPeers();
  const contestants: readonly ContestantName[] =
    options.before === undefined
      ? ["raw", "lockweave", "redis-semaphore"]
      : ["raw", "lockweave", "before", "redis-semaphore"];
  const redis = await startRedis();
  const scenarios = [];
  try {
    for (const situation of SITUATIONS) {
      const played = new Map(contestants.map((name) => [name, [] as Figures[]]));
      for (let round = 0; round < rounds; round += 1) {
        for (const name of rotated(contestants, round))
          played.get(name)?.push(await play(situation, name, redis));
      }
      console.log(`${situation.title}: played`);
      scenarios.push(scenarioResult(situation, played));
    }
  } finally {
    await redis.stop();
  }
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim() ?? "unknown CPU"}`;
  const versions = { node: process.versions.node, ...peerVersions() };
  console.log(`\n${machine}; Node ${versions.node}; ${rounds} rounds`);
  console.log("Medians and quartiles; `x`: times the value of raw in the same round.\n");
  console.log(fullTable({ machine, versions, rounds, scenarios }));
}

async function play(
  { sections, delayMs, isFresh = false }: Situation,
  contestant: ContestantName,
  redis: RedisServer,
): Promise<Figures> {
  const wire = delayMs === 0 ? undefined : await startWire(redis.port, delayMs);
  const admin = redis.client();
  let figures: Figures | undefined;
  try {
    if (isFresh) await admin.script("FLUSH");
    const order = {
      contestant,
      checkout: resolve(contestant === "before" ? (options.before ?? "") : join(__dirname, "..")),
      port: wire?.port ?? redis.port,
      lockTimeMs: LOCK_TIME_MS,
      sections,
    };
    const child = fork(join(__dirname, "cold-process.mjs"), [JSON.stringify(order)], { execArgv: [] });
    child.on("message", (sent) => (figures = sent as Figures));
    const [code] = (await once(child, "exit")) as [number | null];
    if (figures === undefined) throw new Error(`the process of ${contestant} ended: ${code}`);
    return figures;
  } finally {
    admin.disconnect();
    await wire?.stop();
  }
}

function ratio(title: string): Figure {
  return { title, unit: "ms", better: "less", show: "ratio" };
}

function firstLock(): Readonly<Record<string, Figure>> {
  return {
    firstGrant: { ...ratio("configure() to first grant"), show: "value" },
    first1: { ...ratio("first section"), show: "value" },
  };
}

function rotated<T>(items: readonly T[], by: number): T[] {
  const first = by % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}
