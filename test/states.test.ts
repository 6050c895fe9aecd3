import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test from "ava";

const root = resolve(__dirname, "..");
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

/** Returns the states in the diagram under a heading of runtime/README.md. */
function drawn(heading: string): readonly string[] {
  const [, section = ""] = textOf("runtime/README.md").split(`\n## ${heading}\n`);
  const [, diagram = ""] = /^```mermaid\nstateDiagram-v2\n(.*?)^```/ms.exec(section) ?? [];
  const states = [...diagram.matchAll(/^ {2}(\S+) --> ([^\s:]+)/gm)].flatMap(([, from = "", to = ""]) => [
    from,
    to,
  ]);
  return [...new Set(states)].filter((state) => state !== "[*]").toSorted();
}

/** Returns the states of a field, as its type lists them. */
function typed(file: string, field: string): readonly string[] {
  const [, type = ""] = new RegExp(`^  ${field}: ((?:"\\w+"(?: \\| )?)+)`, "m").exec(textOf(file)) ?? [];
  return [...type.matchAll(/"(\w+)"/g)].map(([, state = ""]) => state).toSorted();
}

for (const [heading, file, field] of [
  ["States of a lock", "runtime/lock/lock.ts", "#phase"],
  ["States of an acquisition", "runtime/queue/acquisition.ts", "#state"],
  ["States of a renewal", "runtime/queue/lease.ts", "renewal"],
] as const) {
  test(`${heading} in runtime/README.md match those in ${file}`, (t) => {
    t.true(typed(file, field).length > 2);
    t.deepEqual(drawn(heading), typed(file, field));
  });
}
