import test from "ava";
import { palette } from "../../transformer/cli/palette";

const ESCAPE = "\u001B[";

/** Whether there are colours. */
function isPainted(isTTY: boolean, env: Record<string, string>): boolean {
  return palette({ isTTY }, env).red("text").startsWith(ESCAPE);
}

test("there are colours when somebody looks", (t) => {
  t.true(isPainted(true, {}));
  t.false(isPainted(false, {}));
  t.false(isPainted(true, { TERM: "dumb" }));
});

test("FORCE_COLOR and NO_COLOR decide otherwise", (t) => {
  t.true(isPainted(false, { FORCE_COLOR: "1" }));
  t.true(isPainted(false, { FORCE_COLOR: "", NO_COLOR: "1" }));
  t.false(isPainted(true, { NO_COLOR: "1" }));
  t.true(isPainted(true, { NO_COLOR: "" }));
  t.false(isPainted(true, { FORCE_COLOR: "0" }));
});
