import { parseArgs } from "node:util";
import { parsed, written } from "./choices";
import { explore, type Failure } from "./explore";
import { live } from "./live";
import { PLANS, planOf } from "./plans";
import type { Choice, Plan } from "./story";

// npm run proof -- explore [--plan "two processes"] [--deviations 2] [--schedules 10000] [--failures 1]
// npm run proof -- explore --plan "two processes" --replay 12:3,27:1
// Without --schedules it continues until all schedules with that many deviations have run.

const { values } = parseArgs({
  options: {
    plan: { type: "string" },
    deviations: { type: "string", default: "2" },
    schedules: { type: "string", default: "Infinity" },
    failures: { type: "string", default: "1" },
    replay: { type: "string" },
  },
});

async function explorePlan(plan: Plan): Promise<readonly Failure[]> {
  const startedAt = performance.now();
  const seen = await explore(plan, {
    deviations: Number(values.deviations),
    mostSchedules: Number(values.schedules),
    mostFailures: Number(values.failures),
  });
  const { schedules, distinct, mostSteps, complete, failures } = seen;
  const seconds = (performance.now() - startedAt) / 1_000;
  console.log(
    `${plan.name}: ${schedules} schedules, ${distinct.size} of them distinct, ${mostSteps} steps deep at most; all with up to ${complete} deviations, ${failures.length} with problems (${seconds.toFixed(0)} s, ${(schedules / seconds).toFixed(0)} schedules per second)`,
  );
  return failures;
}

async function replay(plan: Plan, choices: readonly Choice[]): Promise<void> {
  const { trace, problems } = await live(plan, choices, { isTraced: true });
  console.log(trace.join("\n"));
  console.log(problems.length === 0 ? "No problem." : problems.join("\n"));
}

async function main(): Promise<void> {
  if (values.replay !== undefined) {
    await replay(planOf(values.plan ?? "two processes"), parsed(values.replay));
    return;
  }
  for (const plan of values.plan === undefined ? PLANS : [planOf(values.plan)]) {
    for (const { choices, problems } of await explorePlan(plan)) {
      process.exitCode = 1;
      console.log(`\n--plan "${plan.name}" --replay ${written(choices)}: ${problems.join("; ")}`);
      await replay(plan, choices);
    }
  }
}

void main();
