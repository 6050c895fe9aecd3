import test from "ava";
import { add, noCounts } from "./outcome";
import { KINDS } from "./weather";
import { simulate } from "./world";

// Fleets of processes run the runtime's real code, in virtual time and in all kinds of weather. The invariants are checked at
// every step. A failure names its seed, which repeats it:
//   SEED=123 npx ava test/simulation/simulation.test.ts
// `npm run proof -- simulate` runs any number of seeds.

const { SEED, SEEDS = "300" } = process.env;

for (const [kind, name] of KINDS.entries()) {
  test(`no caller overlaps, is overtaken, waits too long, misses a loss, or leaves anything in ${name} weather`, async (t) => {
    const seeds = Array.from({ length: Number(SEEDS) }, (_, seed) => seed).filter(
      (seed) => seed % KINDS.length === kind,
    );
    const counts = noCounts();
    for (const seed of SEED === undefined ? seeds : [Number(SEED)].filter((n) => n % KINDS.length === kind)) {
      const outcome = await simulate(seed);
      t.is(outcome.weather, name);
      if (outcome.problems.length > 0) t.fail(`SEED=${seed}: ${outcome.problems.join("; ")}`);
      add(counts, outcome.counts);
    }
    t.log(`${counts.served} served, ${counts.turnedAway} turned away`);
    t.true(SEED !== undefined || counts.served > seeds.length);
  });
}

test("a seed gives the same result each time", async (t) => {
  for (let seed = 0; seed < 3 * KINDS.length; seed += 1)
    t.deepEqual(await simulate(seed), await simulate(seed));
});
