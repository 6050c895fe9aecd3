import test from "ava";
import { add, noCounts } from "../outcome";
import { simulatePostgres } from "./simulate";

// Fleets of processes run the runtime's real code and the real store, in virtual time and in all kinds of weather. Bodies run transactions that
// guard their locks. The invariants are checked at every step. A failure names its seed, which repeats it:
//   SEED=123 npx ava test/simulation/postgres/simulation.test.ts
// `npm run proof -- simulate` runs any number of seeds.

const { SEED, SEEDS = "300" } = process.env;

/** Worlds in which the runtime once kept a lock that nobody used. */
const KNOWN: readonly number[] = [50_582, 50_933];

test.serial(
  "no caller overlaps, is overtaken, waits too long, misses a loss, or overwrites another caller's commit in PostgreSQL",
  async (t) => {
    const seeds = [...Array.from({ length: Number(SEEDS) }, (_, seed) => seed), ...KNOWN];
    const counts = noCounts();
    for (const seed of SEED === undefined ? seeds : [Number(SEED)]) {
      const outcome = await simulatePostgres(seed);
      if (outcome.problems.length > 0) t.fail(`SEED=${seed}: ${outcome.problems.join("; ")}`);
      add(counts, outcome.counts);
    }
    t.log(`${counts.served} served, ${counts.turnedAway} turned away`);
    t.true(SEED !== undefined || counts.served > seeds.length);
  },
);

test.serial("a seed with PostgreSQL gives the same result each time", async (t) => {
  for (let seed = 0; seed < 3; seed += 1)
    t.deepEqual(await simulatePostgres(seed), await simulatePostgres(seed));
});
