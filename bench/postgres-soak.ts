/**
 * Shows that the tables of Lockweave in PostgreSQL stay small, and that its commands stay fast:
 *
 * 1. over many locks of all kinds, whose rows come and go. Some locks are never released, so only sweeps remove their rows.
 * 2. over many renewed locks, first alone, and then during a transaction that stays open. Its snapshot keeps VACUUM from removing anything.
 *
 *     npm run bench -- postgres-soak [--locks <n>] [--over <minutes>] [--held <n>] [--beside <minutes>]
 *
 * The defaults are 1,000,000 locks over 10 minutes, and 10,000 locks held for 30 minutes during a transaction. With 0 locks or 0 held, that part
 * is left out. Exits with 1 unless the first part is flat and no lock is lost. The first part needs several minutes, because autovacuum begins
 * once a minute.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Client, Pool } from "pg";
import type * as Lockweave from "../runtime";
import { migrationSql } from "../runtime/stores/postgres/migration";
import { SeededRandom } from "../test/support/seeded-random";
import { urlOf } from "./postgres-contestants";
import { startBenchServer, type BenchServer } from "./postgres-server";
import { quartiles } from "./quantiles";

const DATABASE = "soak";
const CALLERS = 200;
const INTERVALS = 10;
/** The intervals after which the tables have the size that they keep. */
const WARM_UP_INTERVALS = 3;
/** The growth, relative to the intervals after the warm-up, that is flat. Other programs on the machine disturb the time more than the size. */
const FLAT = { size: 1.25, time: 1.5 };
/** How long a lock that nobody releases stays. */
const LEFT_FOR = "2s";
const HELD_FOR = "30s";
const AT_ONCE = 500;
const TABLES = ["hold", "renewal_group", "waiter", "fence"] as const;

const { values: options } = parseArgs({
  options: {
    locks: { type: "string", default: "1000000" },
    over: { type: "string", default: "10" },
    held: { type: "string", default: "10000" },
    beside: { type: "string", default: "30" },
  },
});

type Package = Pick<typeof Lockweave, "withLock" | "obtain">;

/** The kinds of locks, with their shares in 100. */
const KINDS: readonly {
  readonly share: number;
  run(runtime: Package, random: SeededRandom, nth: number): unknown;
}[] = [
  { share: 5, run: ({ withLock }, random) => withLock(`hot:${random.below(8)}`, {}, () => {}) },
  {
    share: 5,
    run: ({ withLock }, random) => withLock(`fenced:${random.below(1_000)}`, { fencing: true }, () => {}),
  },
  {
    share: 3,
    run: ({ withLock }, random) => withLock(`read:${random.below(20)}`, { mode: "read" }, () => {}),
  },
  {
    share: 2,
    run: ({ withLock }, _random, nth) =>
      withLock(`left:${nth}`, { autoUnlock: false, lockTime: LEFT_FOR }, () => {}),
  },
];

interface Sample {
  readonly bytes: number;
  readonly medianMs: number;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1); // Other callers are still running.
});

async function main(): Promise<void> {
  const [locks = NaN, over = NaN, held = NaN, beside = NaN] = [
    options.locks,
    options.over,
    options.held,
    options.beside,
  ].map(Number);
  if (![locks, over, held, beside].every((value) => value >= 0)) {
    throw new Error("Expected --locks, --over, --held, and --beside to be numbers of at least 0");
  }
  const server = await startBenchServer();
  await server.query("postgres", `CREATE DATABASE ${DATABASE}`);
  await server.query(DATABASE, migrationSql());
  const { configure, shutdown, withLock, obtain } = require("../dist/runtime") as typeof Lockweave;
  const pool = new Pool({ connectionString: urlOf(server.port, DATABASE) });
  configure({ postgres: pool, woven: false, defaults: { retryTimes: 100 } });
  try {
    if (locks > 0) await manyLocks(server, { withLock, obtain }, locks, over);
    if (held > 0) await manyRenewals(server, obtain, held, beside);
  } finally {
    await shutdown();
    await pool.end();
    await server.stop();
  }
}

async function manyLocks(
  server: BenchServer,
  runtime: Package,
  locks: number,
  minutes: number,
): Promise<void> {
  const msPerLock = (minutes * 60_000) / locks;
  console.log(
    `${locks.toLocaleString("en")} locks, ${CALLERS} callers. Times are those of a whole section with a key of its own.`,
  );
  console.log(
    "     locks  seconds  median ms    p99 ms   hold rows   hold kB  group kB  waiter kB  fence kB  statements/lock",
  );
  const random = new SeededRandom(1);
  const samples: Sample[] = [];
  const startedAt = performance.now();
  let nth = 0;
  await server.statements(DATABASE);
  for (let interval = 1; interval <= INTERVALS; interval += 1) {
    const until = Math.round((locks * interval) / INTERVALS);
    const first = nth;
    const times: number[] = [];
    const call = async (): Promise<void> => {
      while (nth < until) {
        const own = (nth += 1);
        const earlyMs = startedAt + own * msPerLock - performance.now();
        if (earlyMs > 0) await pause(earlyMs);
        await runOne(runtime, random, own, times);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, call));
    const statements = (await server.statements(DATABASE)) / (nth - first);
    const sizes = await sizesOf(server);
    const sorted = times.toSorted((one, other) => one - other);
    const medianMs = sorted[Math.floor(sorted.length / 2)] ?? NaN;
    samples.push({ bytes: TABLES.reduce((sum, table) => sum + sizes[table], 0), medianMs });
    const columns: readonly [string, number][] = [
      [nth.toLocaleString("en"), 10],
      [((performance.now() - startedAt) / 1_000).toFixed(0), 8],
      [medianMs.toFixed(2), 10],
      [(sorted[Math.floor(sorted.length * 0.99)] ?? NaN).toFixed(2), 9],
      [String(await rowsOf(server)), 11],
      ...TABLES.map((table): [string, number] => [kilobytes(sizes[table]), table === "waiter" ? 10 : 9]),
      [statements.toFixed(3), 16],
    ];
    console.log(columns.map(([text, width]) => text.padStart(width)).join(" "));
  }
  const settled = samples.slice(WARM_UP_INTERVALS);
  const half = Math.floor(settled.length / 2);
  const growth = (figure: keyof Sample): number => {
    const values = settled.map((sample) => sample[figure]);
    return quartiles(values.slice(-half)).median / quartiles(values.slice(0, half)).median;
  };
  verdict(
    growth("bytes") <= FLAT.size,
    `the tables grew ${growth("bytes").toFixed(2)} x (up to ${FLAT.size} is flat)`,
  );
  verdict(
    growth("medianMs") <= FLAT.time,
    `the median grew ${growth("medianMs").toFixed(2)} x (up to ${FLAT.time} is flat)`,
  );
}

async function runOne(runtime: Package, random: SeededRandom, nth: number, times: number[]): Promise<void> {
  let dice = random.below(100);
  for (const kind of KINDS) {
    if (dice < kind.share) {
      await kind.run(runtime, random, nth);
      return;
    }
    dice -= kind.share;
  }
  const startedAt = performance.now();
  await runtime.withLock(`own:${nth}`, {}, () => {});
  times.push(performance.now() - startedAt);
}

/** Holds locks alone, and then during a transaction with a snapshot. */
async function manyRenewals(
  server: BenchServer,
  obtain: Package["obtain"],
  count: number,
  minutes: number,
): Promise<void> {
  const held: Lockweave.HeldLock[] = [];
  while (held.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - held.length) }, (_, index) =>
      obtain(`held:${held.length + index}`, { lockTime: HELD_FOR }),
    );
    held.push(...(await Promise.all(some)));
  }
  console.log(
    `\n${count.toLocaleString("en")} held locks of ${HELD_FOR}, renewed. "ms" is the server's mean time for one statement.`,
  );
  console.log(
    "   minutes   updates/s  statements/s      ms       HOT   hold kB  group kB  row versions that nobody can remove",
  );
  const lasting = (minutes * 60_000) / INTERVALS;
  await watchRenewals(server, count, Math.max(lasting, 60_000), "alone");
  const reader = new Client({ connectionString: urlOf(server.port, DATABASE) });
  await reader.connect();
  await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await reader.query("SELECT count(*) FROM lockweave.hold");
  for (let interval = 1; interval <= INTERVALS; interval += 1) {
    await watchRenewals(server, count, lasting, `${((interval * lasting) / 60_000).toFixed(1)} open`);
  }
  await reader.query("COMMIT");
  await reader.end();
  await watchRenewals(server, count, Math.max(lasting, 60_000), "closed");
  const lost = held.filter((lock) => lock.signal.aborted).length;
  verdict(lost === 0, `${lost} of ${count} locks were lost`);
  for (let first = 0; first < held.length; first += AT_ONCE) {
    await Promise.all(held.slice(first, first + AT_ONCE).map((lock) => lock.release()));
  }
}

async function watchRenewals(server: BenchServer, count: number, forMs: number, what: string): Promise<void> {
  const before = await updatesOf(server);
  await server.statements(DATABASE);
  const startedAt = performance.now();
  await pause(forMs);
  const seconds = (performance.now() - startedAt) / 1_000;
  const [renewal] = await server.query(
    "postgres",
    "SELECT sum(total_exec_time) / sum(calls) AS ms FROM pg_stat_statements WHERE query LIKE '%renew%_v1%'",
  );
  const statements = (await server.statements(DATABASE)) / seconds;
  const after = await updatesOf(server);
  const updates = after.updates - before.updates;
  const { hold, renewal_group: group } = await sizesOf(server);
  const columns: readonly [string, number][] = [
    [what, 10],
    [(updates / seconds).toFixed(0), 11],
    [statements.toFixed(1), 13],
    [Number(renewal?.["ms"]).toFixed(1), 7],
    [updates === 0 ? "-" : `${((100 * (after.hot - before.hot)) / updates).toFixed(1)}%`, 9],
    [kilobytes(hold), 9],
    [kilobytes(group), 9],
    [String(after.dead), 10],
  ];
  console.log(columns.map(([text, width]) => text.padStart(width)).join(" "));
  const kept = await rowsOf(server, "greatest(h.expires_at, g.expires_at) > clock_timestamp()");
  if (kept < count) verdict(false, `${count - kept} locks have expired`);
}

async function updatesOf(server: BenchServer): Promise<{ updates: number; hot: number; dead: number }> {
  const [row] = await server.query(
    DATABASE,
    "SELECT sum(n_tup_upd) AS n_tup_upd, sum(n_tup_hot_upd) AS n_tup_hot_upd, sum(n_dead_tup) AS n_dead_tup FROM pg_stat_user_tables WHERE relname IN ('hold', 'renewal_group')",
  );
  return {
    updates: Number(row?.["n_tup_upd"]),
    hot: Number(row?.["n_tup_hot_upd"]),
    dead: Number(row?.["n_dead_tup"]),
  };
}

async function rowsOf(server: BenchServer, condition = "true"): Promise<number> {
  const [row] = await server.query(
    DATABASE,
    `SELECT count(*) AS rows FROM lockweave.hold h LEFT JOIN lockweave.renewal_group g ON g.id = h.group_id WHERE ${condition}`,
  );
  return Number(row?.["rows"]);
}

/** Returns the sizes of the tables in bytes, with their indexes. */
async function sizesOf(server: BenchServer): Promise<Record<(typeof TABLES)[number], number>> {
  const [row] = await server.query(
    DATABASE,
    `SELECT ${TABLES.map((table) => `pg_total_relation_size('lockweave.${table}') AS ${table}`).join(", ")}`,
  );
  const bytesOf = (table: (typeof TABLES)[number]): number => Number(row?.[table]);
  return {
    hold: bytesOf("hold"),
    renewal_group: bytesOf("renewal_group"),
    waiter: bytesOf("waiter"),
    fence: bytesOf("fence"),
  };
}

function kilobytes(bytes: number): string {
  return Math.round(bytes / 1_024).toLocaleString("en");
}

function verdict(isGood: boolean, line: string): void {
  if (!isGood) process.exitCode = 1;
  console.log(`${isGood ? "ok  " : "FAIL"}  ${line}`);
}
