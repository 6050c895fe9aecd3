import test from "ava";
import { until } from "./until";

test("who waits in vain is told for what", async (t) => {
  let tries = 0;
  await t.throwsAsync(
    until(() => (tries += 1) < 0, 1_000),
    { message: /^Waited 1 s in vain until .*tries \+= 1/ },
  );
  t.true(tries > 1);
});
