import test from "ava";
import * as runtime from "../../runtime";
import { compare, configureObserved } from "./compare";
import { ALL_KINDS, kindsOf } from "./kinds";
import { randomProgram } from "./random-program";

/** `npm run proof -- fuzz` runs many more. */
const SEEDS = 500;

test.before(configureObserved);
test.after.always(() => runtime.shutdown());

test("a random body behaves the same with and without the lock, and all its effects are under the lock", async (t) => {
  for (let seed = 0; seed < SEEDS; seed += 1) t.is(await compare(seed), "same");
});

test("at least ten of a thousand random programs contain each construct that a lock could affect", (t) => {
  const found = Array.from({ length: 1_000 }, (_, seed) => kindsOf(randomProgram(seed))).flat();
  for (const kind of ALL_KINDS) {
    const count = found.filter((one) => one === kind).length;
    t.true(count >= 10, `${count} with ${kind}`);
  }
});
