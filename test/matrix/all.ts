import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { installed, type SetName } from "../hosts/installed";
import { before, sets } from "./packages.json";
import { PARTS, type Part } from "./parts";
import { raise } from "./raise";

// npm run test:matrix, or some of its parts: npm run test:matrix -- peers servers
//
//   --from <part>    runs this part and those after it
//   --minutes <n>    lets `explore` run for that long, and `torture` on each topology
//   --raise          runs nothing, but raises the versions in packages.json, and prints what changed
//
// First obtains what all parts need. If that fails, the part is not run, which is neither a failure nor a success. Then runs the parts whose
// tests depend on time, one after the other, and the others two at once, because most parts wait often or use one core. Runs all parts, even
// after a failure. Each line begins with the name of its part. The output ends with the last lines of each part that failed, because a CI
// service may show only that, and with a table of results and durations.
//
// Exits with 1 if a part failed, or else with 75 if a part was not run.

const NOT_RUN = 75; // EX_TEMPFAIL of sysexits.h. A part may exit with it, too.

/** More would make tests on a machine with two cores too slow for the times that they wait for Redis. */
const AT_ONCE = 2;

/** The programs that all parts may use. */
const PROGRAMS = ["redis-server", "postgres", "pgbouncer", "openssl"];

/** How many lines of a failed part the end of the output repeats, without those about tests that passed or were skipped. */
const REPEATED_LINES = 60;
const UNREMARKABLE = /^\s*(?:$|✔ |- \[skip\] |ℹ )/;

type Outcome = "passed" | "failed" | "not run";

interface Result {
  readonly outcome: Outcome;
  readonly seconds: number;
  /** The last remarkable lines, or why it was not run. */
  readonly lines: readonly string[];
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { from: { type: "string" }, minutes: { type: "string" }, raise: { type: "boolean" } },
  });
  if (values.raise === true) return await raise();
  const names = chosen(positionals, values.from);
  const { minutes } = values;
  if (minutes !== undefined && !(Number(minutes) > 0)) fail(`--minutes ${minutes} is not a positive number`);

  const results = new Map<string, Result>();
  for (const name of names) {
    const reason = await reasonAgainst(name);
    if (reason !== undefined) results.set(name, { outcome: "not run", seconds: 0, lines: [reason] });
  }
  const work = async (waiting: string[]): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const result = await run(name, minutes);
      results.set(name, result);
      console.log(rowOf(name, result));
    }
  };
  const obtained = names.filter((name) => !results.has(name));
  const alone = obtained.filter((name) => partOf(name).isAlone === true);
  const others = obtained.filter((name) => !alone.includes(name));
  await work(alone);
  await Promise.all(Array.from({ length: AT_ONCE }, () => work(others)));
  printTable(names, results);
}

/** Returns the parts that the command line names, in the order in which they begin. */
function chosen(positionals: readonly string[], from: string | undefined): readonly string[] {
  const all = Object.keys(PARTS);
  const named = from === undefined ? positionals : [...positionals, from];
  const unknown = named.filter((name) => !Object.hasOwn(PARTS, name));
  if (unknown.length > 0) fail(`No part ${unknown.join(", ")}. The parts are ${all.join(", ")}`);
  const rest = from === undefined ? all : all.slice(all.indexOf(from));
  const found = positionals.length === 0 ? rest : rest.filter((name) => positionals.includes(name));
  if (found.length === 0) fail(`No part that you named comes after ${from}. The order is ${all.join(", ")}`);
  return found;
}

function fail(message: string): never {
  console.error(`${message}.`);
  process.exit(2);
}

// ---- preparations ---------------------------------------------------------------------------------------

/** Obtains what the part needs. Returns the reason if that is not possible. */
async function reasonAgainst(name: string): Promise<string | undefined> {
  const { programs = [], installs = [], prepare } = partOf(name);
  console.log(`${name}: obtains what it needs`);
  try {
    const needed = [...PROGRAMS, ...programs];
    const ensured = spawnSync(process.execPath, ["test/support/ensure.mjs", ...needed], { stdio: "inherit" });
    if (ensured.status !== 0) return `it needs ${needed.join(", ")}`;
    for (const group of installs) {
      for (const set of Object.keys(sets[group]) as SetName[]) await installed(set);
    }
    await prepare?.();
    return undefined;
  } catch (error) {
    return textOf(error);
  }
}

/** Returns the messages of the error and its causes. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}\n${textOf(error.cause)}`;
}

function partOf(name: string): Part {
  const part = PARTS[name];
  if (part === undefined) throw new Error(`there is no part ${name}`);
  return part;
}

// ---- parts ----------------------------------------------------------------------------------------------

/** Runs the part, and prints its lines with its name. */
async function run(name: string, minutes: string | undefined): Promise<Result> {
  const { command, env = {}, isOnline = false } = partOf(name);
  const [program, ...args] = typeof command === "function" ? command(minutes) : command;
  // What npm installs while the part runs comes from its cache, unless somebody has emptied that.
  const cached = isOnline ? {} : { npm_config_prefer_offline: "true" };
  const startedAt = performance.now();
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, npm_config_before: before, ...cached, ...env },
  });
  const lines: string[] = [];
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ] as const) {
    createInterface({ input: from }).on("line", (line) => {
      to.write(`${name}: ${line}\n`);
      if (UNREMARKABLE.test(line)) return;
      lines.push(line);
      if (lines.length > REPEATED_LINES) lines.shift();
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  const outcome = code === 0 ? "passed" : code === NOT_RUN ? "not run" : "failed";
  return { outcome, seconds: Math.round((performance.now() - startedAt) / 1_000), lines };
}

function printTable(names: readonly string[], results: ReadonlyMap<string, Result>): void {
  const found = names.flatMap((name) => {
    const result = results.get(name);
    return result === undefined ? [] : [{ name, result }];
  });
  for (const { name, result } of found) {
    if (result.outcome === "passed") continue;
    const title = result.outcome === "failed" ? `The end of ${name}` : `Why ${name} was not run`;
    console.log(["", `# ${title}`, ...result.lines].join("\n"));
  }
  console.log(
    ["\n# The parts of the matrix", ...found.map(({ name, result }) => rowOf(name, result))].join("\n"),
  );
  const outcomes = new Set(found.map(({ result }) => result.outcome));
  process.exitCode = outcomes.has("failed") ? 1 : outcomes.has("not run") ? NOT_RUN : 0;
}

const MARKS: Readonly<Record<Outcome, string>> = { passed: "✔", failed: "✘", "not run": "–" };

function rowOf(name: string, { outcome, seconds }: Result): string {
  return `  ${MARKS[outcome]} ${name.padEnd(10)}  ${outcome.padEnd(7)}  ${String(seconds).padStart(5)} s`;
}

void main();
