import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { configure, shutdown } from "../../runtime";
import { monotonicMs } from "../support/monotonic";
import { DEFECT_NAMES, isDefect, type Defect } from "./defects";
import { runRound, type RoundResult } from "./round";
import { storyAround } from "./story";
import { isTopology, TOPOLOGIES, TOPOLOGY_NAMES, type TopologyName } from "./topologies";
import type { Topology } from "./topology";

// npm run proof -- torture <minutes> <seed> [--on quorum] [--defect any-release]
// Real processes contend for locks on real servers, under the faults that happen in production. Each topology gets the minutes. A round
// lasts some seconds. Its seed is the seed of the run plus its number: `npm run proof -- torture 0 <seed of the round>` repeats it.

const MINUTE_MS = 60_000;

/** The largest drift of the wall clock in a round. If it steps forward, locks expire early in the servers: see docs/guarantees.md. */
const STEP_MS = 100;

/** The lead of the wall clock of this machine, which its host sets after it was restored from a snapshot. */
function wallClockAheadMs(): number {
  return Date.now() - monotonicMs();
}

class Totals {
  rounds = 0;
  calls = 0;
  beliefs = 0;
  guards = 0;
  readonly faults = new Map<string, number>();
  readonly outcomes = new Map<string, number>();

  add({ calls, beliefs, guards, faults, outcomes }: RoundResult): void {
    this.rounds += 1;
    this.calls += calls;
    this.beliefs += beliefs;
    this.guards += guards;
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

interface Run {
  readonly on: TopologyName;
  readonly minutes: number;
  readonly seed: number;
  readonly defect: Defect | undefined;
}

/** Plays rounds until the time is over, or until a round has a problem. Returns whether none had one. */
async function torture(topology: Topology, { on, minutes, seed, defect }: Run): Promise<boolean> {
  const dir = await mkdtemp(join(tmpdir(), "torture-"));
  const startedAt = monotonicMs();
  const totals = new Totals();
  try {
    do {
      const nth = totals.rounds;
      const aheadMs = wallClockAheadMs();
      const ownDir = await mkdtemp(join(dir, "round-"));
      const result = await runRound(topology, { seed: seed + nth, dir: ownDir, defect });
      const isClean = result.violations.length === 0 && result.problems.length === 0;
      if (!isClean) printProblems(result);
      const stepMs = Math.round(wallClockAheadMs() - aheadMs);
      if (!isClean && stepMs > STEP_MS) {
        console.log(`The wall clock stepped forward by ${stepMs} ms during this round. It is played again.`);
        continue;
      }
      totals.add(result);
      if (!isClean) {
        const more = defect === undefined ? "" : ` --defect ${defect}`;
        console.log(`Repeat it: npm run proof -- torture 0 ${seed + nth} --on ${on}${more}`);
        return false;
      }
    } while (totals.rounds === 0 || monotonicMs() - startedAt < minutes * MINUTE_MS);
    return true;
  } finally {
    printTotals(on, totals, monotonicMs() - startedAt);
    await rm(dir, { recursive: true, force: true });
  }
}

function printProblems(result: RoundResult): void {
  const { violations, problems } = result;
  console.log(`${violations.length} violations, ${problems.length} other problems.`);
  for (const problem of problems.slice(0, 10)) console.log(`  ${problem}`);
  const [first] = violations;
  if (first !== undefined) console.log([first.message, ...storyAround(first, result)].join("\n  "));
}

function printTotals(
  on: TopologyName,
  { rounds, calls, beliefs, guards, faults, outcomes }: Totals,
  ms: number,
): void {
  const guarded = guards === 0 ? "" : `, ${guards} guarded transactions`;
  console.log(
    `${on}: ${rounds} rounds in ${Math.round(ms / 1_000)} s, ${calls} calls, ${beliefs} beliefs${guarded}.`,
  );
  console.log(`  Faults: ${listed(faults)}.`);
  console.log(`  Results: ${listed(outcomes)}.`);
}

/** Returns whether no round had a problem. */
async function tortureOn(run: Run): Promise<boolean> {
  const topology = await TOPOLOGIES[run.on]();
  configure({ ...topology.configuration, woven: false, logger: { warn: () => {} } });
  try {
    return await torture(topology, run);
  } finally {
    await shutdown();
    await topology.stop();
  }
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { defect: { type: "string" }, on: { type: "string" } },
  });
  const [minutes = "3", seed = String(Date.now() % 1_000_000)] = positionals;
  const { defect, on = "node" } = values;
  if (defect !== undefined && !isDefect(defect)) {
    throw new Error(`There is no defect ${defect}. The defects are ${DEFECT_NAMES.join(", ")}`);
  }
  if (on !== "all" && !isTopology(on)) {
    throw new Error(`There is no topology ${on}. The topologies are all, ${TOPOLOGY_NAMES.join(", ")}`);
  }
  const planted = defect === undefined ? "" : `, with the defect ${defect}`;
  console.log(`Torture on ${on} for ${minutes} minutes, seed ${seed}${planted}.`);
  const startedAt = monotonicMs();
  for (const name of on === "all" ? TOPOLOGY_NAMES : [on]) {
    const isClean = await tortureOn({ on: name, minutes: Number(minutes), seed: Number(seed), defect });
    if (isClean === (defect === undefined)) continue;
    if (defect !== undefined) console.log("The defect was not found.");
    process.exitCode = 1;
    return;
  }
  console.log(
    defect === undefined
      ? "No two processes believed in one lock at once, no fencing token fell, no waiter was overtaken, no call hung, no rejection was unhandled, and nothing was left behind."
      : `The defect was found after ${Math.round((monotonicMs() - startedAt) / 1_000)} s.`,
  );
}

void main();
