import { fork } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { parsed, written } from "./choices";
import { explore } from "./explore";
import { live } from "./live";
import { PLANS, planOf } from "./plans";
import type { Choice, Plan } from "./story";

// npm run proof -- explore [--plan "two processes"] [--deviations 2] [--schedules 10000] [--minutes 5] [--failures 1]
// npm run proof -- explore --plan "two processes" --replay 12:3,27:1
// Without --schedules and --minutes it continues until all schedules with that many deviations have run. Each core explores a plan at a
// time, in its own process. The plans share the minutes equally.

const { values } = parseArgs({
  options: {
    plan: { type: "string" },
    deviations: { type: "string", default: "2" },
    schedules: { type: "string", default: "Infinity" },
    minutes: { type: "string", default: "Infinity" },
    failures: { type: "string", default: "1" },
    replay: { type: "string" },
  },
});

const AT_ONCE = Math.min(availableParallelism(), PLANS.length);
/** The share of the minutes for each plan, in milliseconds. */
const LONGEST_MS = (Number(values.minutes) * 60_000 * AT_ONCE) / PLANS.length;

/** Explores the plan. Prints the result and the failures in one piece, because other processes print at the same time. */
async function explorePlan(plan: Plan): Promise<void> {
  const startedAt = performance.now();
  const seen = await explore(plan, {
    deviations: Number(values.deviations),
    mostSchedules: Number(values.schedules),
    mostFailures: Number(values.failures),
    isEnough: () => performance.now() - startedAt > LONGEST_MS,
  });
  const { schedules, distinct, mostSteps, complete, failures } = seen;
  const seconds = (performance.now() - startedAt) / 1_000;
  const lines = [
    `${plan.name}: ${schedules} schedules, ${distinct.size} of them distinct, ${mostSteps} steps deep at most; all with up to ${complete} deviations, ${failures.length} with problems (${seconds.toFixed(0)} s, ${(schedules / seconds).toFixed(0)} schedules per second)`,
  ];
  for (const { choices, problems } of failures) {
    process.exitCode = 1;
    lines.push(
      `\n--plan "${plan.name}" --replay ${written(choices)}: ${problems.join("; ")}`,
      await replayed(plan, choices),
    );
  }
  console.log(lines.join("\n"));
}

/** Returns the trace and the problems of a schedule. */
async function replayed(plan: Plan, choices: readonly Choice[]): Promise<string> {
  const { trace, problems } = await live(plan, choices, { isTraced: true });
  return [...trace, problems.length === 0 ? "No problem." : problems.join("\n")].join("\n");
}

/** Explores the plans that the leading process names, one after the other. */
function work(): void {
  process.on("message", (name: string) => {
    void explorePlan(planOf(name)).then(() => process.send?.(name));
  });
}

async function lead(): Promise<void> {
  const waiting = PLANS.map(({ name }) => name);
  const hand = async (): Promise<void> => {
    const worker = fork(__filename, process.argv.slice(2));
    const ended = once(worker, "exit") as Promise<[number | null]>;
    const next = (): void => {
      const name = waiting.shift();
      if (name === undefined) worker.disconnect();
      else worker.send(name);
    };
    worker.on("message", next);
    next();
    const [code] = await ended;
    if (code !== 0) process.exitCode = 1;
  };
  await Promise.all(Array.from({ length: AT_ONCE }, hand));
  if (waiting.length > 0) throw new Error(`not explored: ${waiting.join(", ")}`);
}

async function main(): Promise<void> {
  if (values.replay !== undefined) {
    console.log(await replayed(planOf(values.plan ?? "two processes"), parsed(values.replay)));
  } else if (process.send !== undefined) {
    work();
  } else if (values.plan === undefined) {
    await lead();
  } else {
    await explorePlan(planOf(values.plan));
  }
}

void main();
