/**
 * Compares Lockweave in PostgreSQL with a lease row by hand, and with advisory locks of sessions, in the same situations on the same server.
 * All processes stay open, and the contestants play in turns: one slice each, in a rotating order. Each result is compared with that of the
 * lock by hand in the same round.
 *
 *     npm run bench -- postgres [--rounds <n>] [--only <row>[,...]] [--before <folder>] [--quick]
 *
 * There are two servers: one with PostgreSQL's own settings, whose commits wait for the disk, and one with `fsync` off, which shows what the
 * statements cost. `--before` also measures another checkout that has been built.
 */
import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { BEFORE } from "./contestants/lockweave";
import { Crew } from "./crew";
import type { Loop } from "./loop";
import { installPeers } from "./peers";
import { databaseOf, LEASE_TABLE, urlOf, type PostgresContestant } from "./postgres-contestants";
import { describeDisk, startBenchServer, type BenchServer } from "./postgres-server";
import { quartiles } from "./quantiles";
import { judgeDistinctKeys, judgeOneKey } from "./referee";

const ROUNDS = 5;
const TIMES = { settlingMs: 300, durationMs: 1_300 };
const QUICK_TIMES = { settlingMs: 100, durationMs: 500 };
const LOCK_TIME_MS = 10_000;
const HELD = 10_000;
const WORKER = "postgres-worker.ts";
const FLEET_PROCESSES = 4;

interface Workload {
  readonly name: string;
  readonly title: string;
  readonly processes: number;
  readonly loop: Pick<Loop, "keys" | "callers" | "sectionMs" | "pauseMs">;
  /** The contestants beside the first two. A session has one connection, so it cannot hold 1,000 locks for 1,000 callers. */
  readonly others: readonly PostgresContestant[];
}

const SESSIONS = ["session", "advisory-lock"] as const;
const EMPTY = { sectionMs: 0, pauseMs: 0 };

const WORKLOADS: readonly Workload[] = [
  {
    name: "one-caller",
    title: "1 caller, distinct keys",
    processes: 1,
    loop: { keys: "distinct", callers: 1, ...EMPTY },
    others: SESSIONS,
  },
  {
    name: "distinct-keys",
    title: "1,000 callers, distinct keys",
    processes: 1,
    loop: { keys: "distinct", callers: 1_000, ...EMPTY },
    others: ["session"],
  },
  {
    name: "crowd",
    title: "64 callers, one key, one process, empty sections",
    processes: 1,
    loop: { keys: "one", callers: 64, ...EMPTY },
    others: SESSIONS,
  },
  {
    name: "fleet",
    title: "4 processes x 8 callers, one key, sections of 1.2 ms",
    processes: FLEET_PROCESSES,
    loop: { keys: "one", callers: 8, sectionMs: 1.2, pauseMs: 2 },
    others: SESSIONS,
  },
];

const HELD_ROW = "held";

/** A description of the contestants, for the output. */
const LEGEND = `
by hand        INSERT ... ON CONFLICT (key) DO UPDATE ... WHERE expires_at <= clock_timestamp(), until a row changes, every 10 ms.
               Then DELETE ... WHERE key = $1 AND token = $2. Over a Pool of pg with its default of 10 connections. All commits wait for the
               disk. It renews each lock with one UPDATE after 80% of the lock time.
lockweave      withLock() over configure({ postgres: pool }), with its default of 2 connections. Acquisitions and renewals wait for the
               disk. Releases do not.
session        pg_advisory_lock() and pg_advisory_unlock() on a connection of the same kind of pool. It writes nothing to the disk.
advisory-lock  The package. It opens a connection for each lock.

Advisory locks of a session have no lock time, no fencing token, and no report of a loss: if the connection breaks, the server gives the lock
to the next caller while the body still runs. They need a connection for each held lock and each waiter, and a pooler in transaction mode
breaks them.`;

/** The settings of each server. */
const SERVERS: readonly {
  readonly title: string;
  readonly settings: readonly string[];
  readonly sessions: boolean;
}[] = [
  { title: "Durable (fsync = on)", settings: [], sessions: true },
  { title: "fsync = off", settings: ["fsync=off"], sessions: false },
];

interface Figures {
  readonly perSecond: number;
  readonly statements: number;
  readonly cpuUs: number;
}

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string" },
    only: { type: "string" },
    before: { type: "string" },
    quick: { type: "boolean", default: false },
  },
});

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});

async function main(): Promise<void> {
  const rounds = Number(options.rounds ?? (options.quick ? 1 : ROUNDS));
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("Expected --rounds to be 1 or more");
  if (options.before !== undefined) process.env[BEFORE] = resolve(options.before);
  const chosen = chosenRows();
  installPeers();
  console.log(`${cpus().length} x ${cpus()[0]?.model.trim() ?? "unknown CPU"}; disk: ${describeDisk()}`);
  const arenas: Arena[] = [];
  try {
    for (const setting of SERVERS) arenas.push(await openArena(setting, chosen));
    console.log(
      `Node ${process.versions.node}, PostgreSQL ${arenas[0]?.server.version}; ${rounds} rounds\n${LEGEND}\n`,
    );
    for (let round = 0; round < rounds; round += 1) {
      const startedAt = performance.now();
      for (const arena of arenas) await playRound(arena, round);
      console.log(
        `round ${round + 1} of ${rounds}: ${Math.round((performance.now() - startedAt) / 1_000)} s`,
      );
    }
    console.log("\nMedians (quartiles). The ratio is to the lock by hand in the same round.");
    for (const arena of arenas) printArena(arena);
    if (chosen.has(HELD_ROW)) await measureHeld(arenas);
  } finally {
    for (const { crews, server } of arenas) {
      for (const crew of crews.values()) await crew[Symbol.asyncDispose]();
      await server.stop();
    }
  }
}

/** A server, and the processes of all contestants. */
interface Arena {
  readonly title: string;
  readonly server: BenchServer;
  /** By contestant and number of processes. */
  readonly crews: ReadonlyMap<string, Crew>;
  readonly played: ReadonlyMap<Workload, Map<PostgresContestant, Figures[]>>;
}

async function openArena(
  { title, settings, sessions }: (typeof SERVERS)[number],
  chosen: ReadonlySet<string>,
): Promise<Arena> {
  const server = await startBenchServer(...settings);
  const workloads = WORKLOADS.filter(({ name }) => chosen.has(name));
  const contestants = new Set(workloads.flatMap((workload) => contestantsOf(workload, sessions)));
  if (chosen.has(HELD_ROW)) for (const name of OURS) contestants.add(name);
  for (const name of contestants) await createDatabase(server, name);
  const crews = new Map<string, Crew>();
  for (const workload of workloads) {
    for (const name of contestantsOf(workload, sessions)) {
      const { processes } = workload;
      if (crews.has(crewOf(name, workload))) continue;
      const crew = new Crew(name, processes, WORKER);
      crews.set(crewOf(name, workload), crew);
      await crew.open({ port: server.port, clients: processes, lockTimeMs: LOCK_TIME_MS });
    }
  }
  const played = new Map(
    workloads.map((workload) => [
      workload,
      new Map(contestantsOf(workload, sessions).map((name) => [name, [] as Figures[]])),
    ]),
  );
  return { title, server, crews, played };
}

async function createDatabase(server: BenchServer, name: PostgresContestant): Promise<void> {
  const database = databaseOf(name);
  await server.query("postgres", `CREATE DATABASE ${database}`);
  if (name === "by hand") await server.query(database, LEASE_TABLE);
  const checkout = name === "before" ? options.before : name === "lockweave" ? ".." : undefined;
  if (checkout === undefined) return;
  const cli = resolve(
    name === "before" ? checkout : join(__dirname, checkout),
    "dist/transformer/cli/main.js",
  );
  execFileSync(process.execPath, [cli, "postgres", "--apply", urlOf(server.port, database)]);
}

async function playRound(arena: Arena, round: number): Promise<void> {
  for (const [nth, [workload, scores]] of [...arena.played].entries()) {
    for (const name of rotated([...scores.keys()], round + nth)) {
      scores.get(name)?.push(await play(arena, workload, name));
    }
  }
}

async function play(
  { server, crews }: Arena,
  workload: Workload,
  name: PostgresContestant,
): Promise<Figures> {
  const { loop } = workload;
  const crew = crews.get(crewOf(name, workload));
  if (crew === undefined) throw new Error(`${name} has no processes for ${workload.name}`);
  await server.statements(databaseOf(name));
  const run = await crew.loop({ ...loop, ...(options.quick ? QUICK_TIMES : TIMES), waitsForCallers: true });
  const statements = await server.statements(databaseOf(name));
  const judge = loop.keys === "one" ? judgeOneKey : judgeDistinctKeys;
  const { sections, sectionsPerSecond, cpuMsPerSection } = judge(run);
  return { perSecond: sectionsPerSecond, statements: statements / sections, cpuUs: 1_000 * cpuMsPerSection };
}

function printArena({ title, played }: Arena): void {
  for (const [workload, scores] of played) {
    console.log(`\n${title}: ${workload.title}`);
    console.log(
      `  ${" ".repeat(14)} ${"sections/s".padEnd(26)} ${"ratio".padEnd(26)} ${"statements/section".padEnd(24)} client CPU`,
    );
    const hand = scores.get("by hand") ?? [];
    for (const [name, figures] of scores) {
      const ratios = figures.map(({ perSecond }, round) => perSecond / (hand[round]?.perSecond ?? NaN));
      const cells = [
        `  ${name.padEnd(14)}`,
        spread(
          figures.map(({ perSecond }) => perSecond),
          0,
        ).padEnd(26),
        `${spread(ratios, 2)} x`.padEnd(26),
        spread(
          figures.map(({ statements }) => statements),
          3,
        ).padEnd(24),
        `${median(figures.map(({ cpuUs }) => cpuUs)).toFixed(0)} µs`,
      ];
      console.log(cells.join(" "));
    }
  }
}

/**
 * Counts the statements of processes that hold many locks for one lock time. Afterwards the rows must still be valid, which shows that the
 * statements renewed them.
 */
async function measureHeld(arenas: readonly Arena[]): Promise<void> {
  console.log(`\n${HELD.toLocaleString("en")} held locks of ${LOCK_TIME_MS / 1_000} s, renewed`);
  for (const { title, server } of arenas) {
    for (const name of OURS) {
      const database = databaseOf(name);
      await using crew = new Crew(name, 1, WORKER);
      await crew.open({ port: server.port, clients: 1, lockTimeMs: LOCK_TIME_MS });
      await crew.hold({ count: HELD, keyPrefix: "held" });
      await server.statements(database);
      await pause(LOCK_TIME_MS);
      const perSecond = (await server.statements(database)) / (LOCK_TIME_MS / 1_000);
      const table = name === "by hand" ? "lease" : ENDS_OF_HOLDS;
      const [kept] = await server.query(
        database,
        `SELECT count(*) AS count FROM ${table} h WHERE expires_at > clock_timestamp() AND key LIKE '%held:%'`,
      );
      if (Number(kept?.["count"]) < HELD) throw new Error(`${name} kept ${kept?.["count"]} of ${HELD} locks`);
      console.log(`  ${title}: ${name.padEnd(10)} ${perSecond.toFixed(1)} statements/s`);
    }
  }
}

/** A hold ends no earlier than its renewal group. */
const ENDS_OF_HOLDS = `(SELECT h.key, greatest(h.expires_at, g.expires_at) AS expires_at
  FROM lockweave.hold h LEFT JOIN lockweave.renewal_group g ON g.id = h.group_id)`;

/** The contestants that every workload has. */
const OURS: readonly PostgresContestant[] =
  options.before === undefined ? ["by hand", "lockweave"] : ["by hand", "lockweave", "before"];

function contestantsOf({ others }: Workload, sessions: boolean): readonly PostgresContestant[] {
  return sessions && options.before === undefined ? [...OURS, ...others] : OURS;
}

function crewOf(name: PostgresContestant, { processes }: Workload): string {
  return `${name} ${processes}`;
}

function chosenRows(): ReadonlySet<string> {
  const names = [...WORKLOADS.map(({ name }) => name), HELD_ROW];
  const only = options.only?.split(",") ?? names;
  const unknown = only.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(`There is no row \`${unknown}\`. The rows are ${names.join(", ")}`);
  return new Set(only);
}

function rotated<T>(items: readonly T[], by: number): readonly T[] {
  const first = by % items.length;
  return [...items.slice(first), ...items.slice(0, first)];
}

function median(values: readonly number[]): number {
  return quartiles(values).median;
}

function spread(values: readonly number[], digits: number): string {
  const { low, median: middle, high } = quartiles(values);
  const text = (value: number): string =>
    value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${text(middle)} (${text(low)} to ${text(high)})`;
}
