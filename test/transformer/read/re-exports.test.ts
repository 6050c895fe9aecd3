import test from "ava";
import ts from "typescript";
import { ownExportsOf } from "../../../transformer/read/lockweave-calls";
import type { OwnExports } from "../../../transformer/read/meanings";

const BARREL: OwnExports = new Map<string, "configure" | { is: "module"; exported: () => undefined }>([
  ["configure", "configure"],
  ["setUp", "configure"],
  ["locks", { is: "module", exported: () => undefined }],
  ["default", { is: "module", exported: () => undefined }],
]);

function reExportsOf(text: string): Record<string, string> {
  const file = ts.createSourceFile("a.ts", text, ts.ScriptTarget.Latest);
  const exported = ownExportsOf({ ts, file }, (specifier) => (specifier === "./barrel" ? BARREL : undefined));
  return Object.fromEntries(
    [...exported].map(([name, meaning]) => [name, typeof meaning === "string" ? meaning : meaning.is]),
  );
}

test("a file re-exports Lockweave's functions under the names that it gives them", (t) => {
  const cases: [string, Record<string, string>][] = [
    [`export { configure } from "lockweave";`, { configure: "configure" }],
    [`export { configure as setUp, memoryStore } from "lockweave/runtime";`, { setUp: "configure" }],
    [`import { configure as ours } from "lockweave"; export { ours as setUp };`, { setUp: "configure" }],
    [`import { configure } from "lockweave"; export default configure;`, { default: "configure" }],
    [`import * as locks from "lockweave"; export { locks };`, { locks: "module" }],
    [`export * as locks from "lockweave";`, { locks: "module" }],
    [`import locks from "lockweave"; export const setUp = locks.configure;`, { setUp: "configure" }],
    [`export const setUp = require("lockweave").configure;`, { setUp: "configure" }],
    [
      `import * as locks from "lockweave"; export const { configure, currentLock: held } = locks;`,
      { configure: "configure", held: "currentLock" },
    ],
    [`export { setUp as start, locks } from "./barrel";`, { start: "configure", locks: "module" }],
    [`export * as all from "./barrel";`, { all: "module" }],
  ];
  for (const [text, exported] of cases) t.deepEqual(reExportsOf(text), exported, text);
});

test("`export *` re-exports everything except the default", (t) => {
  t.deepEqual(reExportsOf(`export * from "lockweave";`), {
    configure: "configure",
    currentLock: "currentLock",
  });
  t.deepEqual(reExportsOf(`export * from "./barrel";`), {
    configure: "configure",
    setUp: "configure",
    locks: "module",
  });
});

test("a module's own export takes precedence over `export *`", (t) => {
  for (const [where, text] of Object.entries({
    before: `export function configure() {} export * from "lockweave";`,
    behind: `export * from "lockweave"; export class configure {}`,
    "a variable": `export * from "lockweave"; export const configure = 1;`,
    "a list": `export * from "lockweave"; const other = 1; export { other as configure };`,
    "another module's": `export * from "lockweave"; export { configure } from "./other";`,
  })) {
    t.deepEqual(reExportsOf(text), { currentLock: "currentLock" }, where);
  }
});

test("functions that are not Lockweave's or are not exported are not re-exports", (t) => {
  for (const text of [
    `export * from "./other"; export * as other from "./other"; export { configure } from "./other";`,
    `import { configure } from "lockweave"; configure(); const setUp = configure;`,
    `import { configure } from "lockweave"; { const configure = 1; } export const x = () => configure();`,
    `const configure = 1; export { configure };`,
    `export default 1; export const a = {}.b, [c] = [];`,
    `import * as all from "./barrel"; export const currentLock = all.currentLock;`,
  ]) {
    t.deepEqual(reExportsOf(text), {}, text);
  }
});
