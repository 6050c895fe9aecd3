import test from "ava";
import { written } from "./choices";
import { explore } from "./explore";
import { live } from "./live";
import { planOf, PLANS } from "./plans";

// Small worlds, in which every schedule with one deviation from the plain order runs, and a sample of those with two deviations.
// `npm run test:matrix` runs more of them. To run a schedule with a problem again: npm run proof -- explore

/** Each plan has fewer schedules with one deviation. */
const SCHEDULES = 800;

for (const plan of PLANS) {
  test.serial(`no schedule of ${plan.name} leads to a wrong belief or leaves anything behind`, async (t) => {
    t.timeout(300_000);
    const seen = await explore(plan, { deviations: 2, mostSchedules: SCHEDULES });
    for (const { choices, problems } of seen.failures) {
      const { trace } = await live(plan, choices, { isTraced: true });
      t.fail(
        `--plan "${plan.name}" --replay ${written(choices)}: ${problems.join("; ")}\n${trace.join("\n")}`,
      );
    }
    t.log(
      `${seen.schedules} schedules, ${seen.distinct.size} of them distinct, up to ${seen.mostSteps} steps`,
    );
    t.is(seen.complete, 1, "all schedules with one deviation were seen");
    t.is(seen.schedules, SCHEDULES);
  });
}

test("a schedule gives the same result each time", async (t) => {
  const plan = planOf("two processes");
  const choices = [
    { step: 4, option: 9 },
    { step: 7, option: 2 },
  ];
  const run = (): ReturnType<typeof live> => live(plan, choices, { isTraced: true });
  t.deepEqual(await run(), await run());
});
