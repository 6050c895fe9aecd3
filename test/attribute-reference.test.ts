import { readFileSync } from "node:fs";
import test from "ava";
import { COMMAND, PAGE, withReference } from "../build/attribute-reference";

test("the attribute reference in docs/attributes.md matches the table of attributes", (t) => {
  const page = readFileSync(PAGE, "utf8");
  t.is(page, withReference(page), `Fix: run \`${COMMAND}\``);
});
