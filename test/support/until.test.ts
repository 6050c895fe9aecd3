import test from "ava";
import { until } from "./until";

test("who waits in vain is told for what", async (t) => {
  let tries = 0;
  await t.throwsAsync(
    until(() => (tries += 1) < 0, 20),
    { message: /^Waited 0\.02 s in vain until .*tries \+= 1/ },
  );
  t.true(tries > 1);
});
