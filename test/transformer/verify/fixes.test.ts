import test from "ava";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nestOutputOf } from "../../../transformer/cli/init/nest-builders";
import type { Unproved } from "../../../transformer/verify/check";
import { fixesFor, type CheckedProject, type NestOutput } from "../../../transformer/verify/fixes";
import type { Project } from "../../../transformer/verify/project";

const CHECKED: CheckedProject = {
  cwd: "/app",
  isBundled: false,
  nest: undefined,
  running: (...words) => ["npx", ...words].join(" "),
};
const UNWOVEN: Unproved = { file: "a.ts", line: 1, column: 1, reason: "unwoven", message: "" };

for (const [nest, fix] of [
  [
    "tsc",
    /^Run `npx lockweave init`, which patches TypeScript for `nest build`, .* run `npx ts-patch install`\.$/,
  ],
  ["swc", /^The output of swc never contains locks\. `lockweave\/register` weaves it .*`npx lockweave init`/],
  [undefined, /^Compile with `tspc`\. Plain `tsc`,/],
] as const) {
  test(`the fix for an output without locks names how to weave, with ${nest ?? "no"} builder of NestJS`, (t) => {
    const [advice = "", ...others] = fixesFor([], [UNWOVEN], { ...CHECKED, nest });
    t.regex(advice, fix);
    t.deepEqual(others, []);
  });
}

for (const [nest, setup] of [
  ["webpack", /^Run `npx lockweave init`, which patches TypeScript for `nest build`/],
  ["rspack", /^Run `npx lockweave init`, which adds Lockweave's plugin/],
] as const) {
  test(`the fix for an output of NestJS with ${nest} names the bundles`, (t) => {
    const project = { builder: "tspc", config: "tsconfig.json", files: [], options: { incremental: true } };
    const fixes = (reason: Unproved["reason"], isBundled: boolean): readonly string[] =>
      fixesFor([project as unknown as Project], [{ ...UNWOVEN, reason }], { ...CHECKED, isBundled, nest });
    const name = `NestJS builds with ${nest}, which writes bundles. Name them with \`--output\`, for example: \`npx lockweave check --output dist\`.`;
    t.deepEqual(fixes("missing", false), [name]);
    const [first, second = "", ...others] = fixes("unwoven", false);
    t.is(first, name);
    t.regex(second, setup);
    t.deepEqual(others, []);
    t.true(fixes("unwoven", true).some((fix) => setup.test(fix)));
    t.false(fixes("unwoven", true).includes(name));
  });
}

test("the fix names each tsconfig that lost its plugins", (t) => {
  const project = (config: string, plugin?: object): Project =>
    ({ builder: "tspc", config: `/app/${config}`, files: [{}], options: {}, plugin }) as unknown as Project;
  const projects = [
    project("tsconfig.json", { transformProgram: true }),
    project("tsconfig.build.json"),
    project("packages/pay/tsconfig.lib.json", {}),
  ];
  t.is(
    fixesFor(projects, [UNWOVEN], CHECKED)[0],
    'Add { "transform": "lockweave/transformer", "transformProgram": true } to `plugins` in `tsconfig.build.json`, `packages/pay/tsconfig.lib.json`.',
  );
});

for (const [nest, fix] of [
  ["tsc", "delete the `.tsbuildinfo` files"],
  [undefined, "Use `npx tspc -b --force`"],
] as const) {
  test(`the fixes name what an incremental build needs, with ${nest ?? "no"} builder of NestJS`, (t) => {
    const project = { builder: "tspc", config: "tsconfig.json", files: [], options: { incremental: true } };
    const advice = fixesFor([project as unknown as Project], [UNWOVEN], { ...CHECKED, nest });
    t.is(advice.length, 2);
    t.true(advice[1]?.includes(fix), advice[1]);
  });
}

for (const [what, files, expected] of [
  ["NestJS without settings", { "package.json": '{ "dependencies": { "@nestjs/core": "11" } }' }, "tsc"],
  [
    "webpack",
    { "package.json": "{}", "nest-cli.json": '{ "compilerOptions": { "webpack": true } }' },
    "webpack",
  ],
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
