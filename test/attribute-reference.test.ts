import { readFileSync } from "node:fs";
import test from "ava";
import { COMMAND, PAGE, withReference } from "../build/attribute-reference";

test("docs/attributes.md has the attribute reference that the table of attributes gives", (t) => {
  const page = readFileSync(PAGE, "utf8");
  t.is(page, withReference(page), `Fix: run \`${COMMAND}\``);
});
