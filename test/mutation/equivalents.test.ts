import test from "ava";
import { changesOf } from "./change";
import { EQUIVALENTS } from "./score";

test("each mutant in equivalent.json exists in the code and is listed once", (t) => {
  const files = new Set(EQUIVALENTS.map(({ file }) => file));
  const mutants = new Set([...files].flatMap(changesOf).map(nameOf));
  t.deepEqual(
    EQUIVALENTS.map(nameOf).filter((name) => !mutants.has(name)),
    [],
  );
  t.is(new Set(EQUIVALENTS.map(nameOf)).size, EQUIVALENTS.length);
});

function nameOf({ file, from, to }: Pick<(typeof EQUIVALENTS)[number], "file" | "from" | "to">): string {
  return `${file}\n- ${from}\n+ ${to}`;
}
