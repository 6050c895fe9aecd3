import test from "ava";
import ts from "typescript";
import { ownExportsOf, type OwnExports } from "../../../transformer/read/own-calls";

const BARREL: OwnExports = new Map([
  ["configure", "configure"],
  ["setUp", "configure"],
  ["locks", "runtime"],
  ["default", "runtime"],
]);

function handedOnBy(text: string): Record<string, string> {
  const file = ts.createSourceFile("a.ts", text, ts.ScriptTarget.Latest);
  return Object.fromEntries(
    ownExportsOf(ts, file, (specifier) => (specifier === "./barrel" ? BARREL : undefined)),
  );
}

test("a file hands on our functions under the names that it gives them", (t) => {
  const cases: [string, Record<string, string>][] = [
    [`export { configure } from "lockweave";`, { configure: "configure" }],
    [`export { configure as setUp, memoryStore } from "lockweave/runtime";`, { setUp: "configure" }],
    [`import { configure as ours } from "lockweave"; export { ours as setUp };`, { setUp: "configure" }],
    [`import { configure } from "lockweave"; export default configure;`, { default: "configure" }],
    [`import * as locks from "lockweave"; export { locks };`, { locks: "runtime" }],
    [`export * as locks from "lockweave";`, { locks: "runtime" }],
    [`import locks from "lockweave"; export const setUp = locks.configure;`, { setUp: "configure" }],
    [`export const setUp = require("lockweave").configure;`, { setUp: "configure" }],
    [
      `import * as locks from "lockweave"; export const { configure, currentLock: held } = locks;`,
      { configure: "configure", held: "currentLock" },
    ],
    [`export { setUp as start, locks } from "./barrel";`, { start: "configure", locks: "runtime" }],
    [`export * as all from "./barrel";`, { all: "runtime" }],
  ];
  for (const [text, exported] of cases) t.deepEqual(handedOnBy(text), exported, text);
});

test("all of a module is handed on but its default", (t) => {
  t.deepEqual(handedOnBy(`export * from "lockweave";`), {
    configure: "configure",
    currentLock: "currentLock",
  });
  t.deepEqual(handedOnBy(`export * from "./barrel";`), {
    configure: "configure",
    setUp: "configure",
    locks: "runtime",
  });
});

test("nothing is handed on of what is not ours, or not exported", (t) => {
  for (const text of [
    `export * from "./other"; export * as other from "./other"; export { configure } from "./other";`,
    `import { configure } from "lockweave"; configure(); const setUp = configure;`,
    `import { configure } from "lockweave"; { const configure = 1; } export const x = () => configure();`,
    `const configure = 1; export { configure };`,
    `export default 1; export const a = {}.b, [c] = [];`,
  ]) {
    t.deepEqual(handedOnBy(text), {}, text);
  }
});
