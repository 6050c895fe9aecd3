import test from "ava";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nestOutputOf } from "../../../transformer/cli/init/nest-builders";
import type { Unproved } from "../../../transformer/verify/check";
import { fixesFor, type NestOutput } from "../../../transformer/verify/fixes";
import type { Project } from "../../../transformer/verify/project";

const UNWOVEN: Unproved = { file: "a.ts", line: 1, column: 1, reason: "unwoven", message: "" };

for (const [nest, fix] of [
  [
    "tsc",
    /^Run `npx lockweave init`, which patches TypeScript for `nest build`, .* run `ts-patch install`\.$/,
  ],
  ["swc", /^The output of swc never contains locks\. `lockweave\/register` weaves it .*`npx lockweave init`/],
  ["rspack", /^Run `npx lockweave init`, which adds Lockweave's plugin .*`--output`\.$/],
  [undefined, /^Compile with `tspc`\. Plain `tsc`,/],
] as const) {
  test(`the fix for an output without locks names how to weave, with ${nest ?? "no"} builder of NestJS`, (t) => {
    const [advice = "", ...others] = fixesFor([], [UNWOVEN], false, "npx lockweave init", nest);
    t.regex(advice, fix);
    t.deepEqual(others, []);
  });
}

for (const [nest, fix] of [
  ["tsc", "delete the `.tsbuildinfo` files"],
  [undefined, "Use `tspc -b --force`"],
] as const) {
  test(`the fixes name what an incremental build needs, with ${nest ?? "no"} builder of NestJS`, (t) => {
    const project = { builder: "tspc", config: "tsconfig.json", files: [], options: { incremental: true } };
    const advice = fixesFor([project as unknown as Project], [UNWOVEN], false, "npx lockweave init", nest);
    t.is(advice.length, 2);
    t.true(advice[1]?.includes(fix), advice[1]);
  });
}

for (const [what, files, expected] of [
  ["NestJS without settings", { "package.json": '{ "dependencies": { "@nestjs/core": "11" } }' }, "tsc"],
  ["webpack", { "package.json": "{}", "nest-cli.json": '{ "compilerOptions": { "webpack": true } }' }, "tsc"],
  ["swc", { "package.json": "{}", "nest-cli.json": '{ "compilerOptions": { "builder": "swc" } }' }, "swc"],
  [
    "rspack",
    { "package.json": '{ "scripts": { "b": "nest build -b rspack" } }', "nest-cli.json": "{}" },
    "rspack",
  ],
  ["another builder", { "package.json": "{}" }, undefined],
  ["an invalid package.json", { "package.json": "{", "nest-cli.json": "{}" }, undefined],
] as readonly [string, Readonly<Record<string, string>>, NestOutput | undefined][]) {
  test(`check finds what writes the output of NestJS, with ${what}`, (t) => {
    const dir = mkdtempSync(join(tmpdir(), "lockweave-nest-"));
    t.teardown(() => rmSync(dir, { recursive: true }));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
    t.is(nestOutputOf(dir), expected);
  });
}
