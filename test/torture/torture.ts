import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { configure, shutdown } from "../../runtime";
import { monotonicMs } from "../support/monotonic";
import { startRedis } from "../support/redis-server";
import { until } from "../support/until";
import { DEFECT_NAMES, isDefect, type Defect } from "./defects";
import { runRound, type Place, type RoundResult } from "./round";
import { storyAround } from "./story";

// npm run proof -- torture <minutes> <seed> [--defect any-release]
// Real processes contend for locks on a real Redis, under the faults that happen in production. A round lasts some seconds.
// Its seed is the seed of the run plus its number: `npm run proof -- torture 0 <seed of the round>` repeats it.

const MINUTE_MS = 60_000;

class Totals {
  rounds = 0;
  calls = 0;
  beliefs = 0;
  readonly faults = new Map<string, number>();
  readonly outcomes = new Map<string, number>();

  add({ calls, beliefs, faults, outcomes }: RoundResult): void {
    this.rounds += 1;
    this.calls += calls;
    this.beliefs += beliefs;
    addTo(this.faults, faults);
    addTo(this.outcomes, outcomes);
  }
}

function addTo(totals: Map<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) totals.set(name, (totals.get(name) ?? 0) + count);
}

function listed(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

async function torture(
  place: Place,
  minutes: number,
  seed: number,
  defect: Defect | undefined,
): Promise<boolean> {
  const endsAt = monotonicMs() + minutes * MINUTE_MS;
  const totals = new Totals();
  for (let nth = 0; nth === 0 || monotonicMs() < endsAt; nth += 1) {
    const result = await runRound(place, seed + nth, defect);
    totals.add(result);
    const { violations, problems } = result;
    if (violations.length === 0 && problems.length === 0) continue;
    console.log(
      `Round with seed ${seed + nth}: ${violations.length} violations, ${problems.length} other problems.`,
    );
    for (const problem of problems.slice(0, 10)) console.log(`  ${problem}`);
    const [first] = violations;
    if (first !== undefined) console.log([first.message, ...storyAround(first, result)].join("\n  "));
    console.log(
      `Repeat it: npm run proof -- torture 0 ${seed + nth}${defect === undefined ? "" : ` --defect ${defect}`}`,
    );
    printTotals(totals);
    return false;
  }
  printTotals(totals);
  console.log(
    "No two processes believed in one lock at once, no fencing token fell, no call hung, no rejection was unhandled, and nothing was left behind.",
  );
  return true;
}

function printTotals({ rounds, calls, beliefs, faults, outcomes }: Totals): void {
  console.log(`${rounds} rounds, ${calls} calls, ${beliefs} times inside a lock.`);
  console.log(`Faults: ${listed(faults)}.`);
  console.log(`Results: ${listed(outcomes)}.`);
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { defect: { type: "string" } },
  });
  const [minutes = "3", seed = String(Date.now() % 1_000_000)] = positionals;
  const { defect } = values;
  if (defect !== undefined && !isDefect(defect)) {
    throw new Error(`There is no defect ${defect}. The defects are ${DEFECT_NAMES.join(", ")}`);
  }
  console.log(
    `Torture for ${minutes} minutes, seed ${seed}${defect === undefined ? "" : `, with the defect ${defect}`}.`,
  );
  const server = await startRedis("--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0");
  const replica = await startRedis("--replicaof", "127.0.0.1", String(server.port));
  const dir = await mkdtemp(join(tmpdir(), "torture-"));
  configure({ redis: server.url, woven: false, logger: { warn: () => {} } });
  try {
    const admin = server.client();
    await until(async () => (await admin.info("replication")).includes("state=online"));
    const isClean = await torture({ server, admin, dir }, Number(minutes), Number(seed), defect);
    const isFound = defect !== undefined && !isClean;
    if (defect !== undefined) console.log(isFound ? "The defect was found." : "The defect was not found.");
    process.exitCode = isClean === (defect === undefined) ? 0 : 1;
  } finally {
    await shutdown();
    await replica.stop();
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

void main();
