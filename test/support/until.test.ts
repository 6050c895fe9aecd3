import test from "ava";
import { until } from "./until";

test("until() throws after its timeout and names the condition", async (t) => {
  let tries = 0;
  await t.throwsAsync(
    until(() => (tries += 1) < 0, 1_000),
    { message: /^Waited 1 s in vain until .*tries \+= 1/ },
  );
  t.true(tries > 1);
});
