import test from "ava";
import { RUNNER, runnerFor } from "../../runtime/base/runner";

test("messages name the command that runs lockweave in this process", (t) => {
  t.is(RUNNER, "npx");
  t.is(runnerFor({ node: "24.0.0", bun: "1.4.5" }), "bunx");
  t.is(runnerFor({ node: "24.0.0", pnp: "3" }), "yarn");
});
