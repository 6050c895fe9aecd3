import test from "ava";
import { palette } from "../../transformer/terminal/palette";

const ESCAPE = "\u001B[";

/** Whether the output has colors. */
function isPainted(isTTY: boolean, env: Record<string, string>): boolean {
  return palette({ isTTY }, env).red("text").startsWith(ESCAPE);
}

test("output to a terminal has colors, unless TERM is dumb", (t) => {
  t.true(isPainted(true, {}));
  t.false(isPainted(false, {}));
  t.false(isPainted(true, { TERM: "dumb" }));
});

test("an empty string gets no color", (t) => {
  t.is(palette({ isTTY: true }, {}).red(""), "");
});

test("FORCE_COLOR and NO_COLOR override what the terminal decides", (t) => {
  t.true(isPainted(false, { FORCE_COLOR: "1" }));
  t.true(isPainted(false, { FORCE_COLOR: "", NO_COLOR: "1" }));
  t.false(isPainted(true, { NO_COLOR: "1" }));
  t.true(isPainted(true, { NO_COLOR: "" }));
  t.false(isPainted(true, { FORCE_COLOR: "0" }));
});
