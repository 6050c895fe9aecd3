import test from "ava";
import * as runtime from "../../runtime";
import { compare, configureObserved } from "./compare";

/** `npm run fuzz` runs many more. */
const SEEDS = 500;

test.before(configureObserved);
test.after.always(() => runtime.shutdown());

test("whatever the body is, it does the same with the lock as without it, and all of it under the lock", async (t) => {
  for (let seed = 0; seed < SEEDS; seed += 1) t.is(await compare(seed), "same");
});
