import { rm } from "node:fs/promises";
import test from "ava";
import { lockweave } from "../../cli/command";
import type { Files, Finished, Project } from "../project";
import { isMatrix } from "../../support/suites";
import { example, projectWith } from "./tools";

// Tools that read comments. They must accept the tag and leave it unchanged.

const inMatrix = isMatrix ? test.serial : test.skip;

const TSDOC_CONFIG: Files = {
  "eslint.config.mjs": `import parser from "@typescript-eslint/parser";
import tsdoc from "eslint-plugin-tsdoc";

export default [
  { files: ["**/*.ts"], languageOptions: { parser }, plugins: { tsdoc }, rules: { "tsdoc/syntax": "error" } },
];
`,
};
const eslint = (project: Project): Promise<Finished> =>
  project.run("node_modules/eslint/bin/eslint.js", "src/keys.ts");

inMatrix(
  "eslint-plugin-tsdoc accepts the tag with lockweave/tsdoc.json, and every value in backticks",
  async (t) => {
    t.timeout(300_000);
    const text = `${example("TSDoc", "src/keys.ts")["src/keys.ts"]}
/**
 * Pays.
 *
 * @redisLock businessFlag=pay keyName=order.id,other[0],this?.x waitTime=5s when=\`"@x" < "}{"\`
 * @param order - The order.
 * @returns nothing
 */
export async function settle(order: { id: string }): Promise<void> {}
`;
    const files = { ...TSDOC_CONFIG, ...example("TSDoc", "tsdoc.json"), "src/keys.ts": text };
    const project = await projectWith("eslint-tsdoc", files);
    t.like(await eslint(project), { code: 0, stdout: "" });

    for (const [value, rule] of [
      ['"{ a }"', "malformed-inline-tag"],
      ['"a > b"', "escape-greater-than"],
      ['"a < b"', "malformed-html-name"],
      ["\"a + '@b'\"", "at-sign-in-word"],
    ] as const) {
      const tag = `/** @redisLock businessFlag=pay keyName=${value} */`;
      await project.write({ "src/keys.ts": `${tag}\nexport async function pay(): Promise<void> {}\n` });
      t.regex((await eslint(project)).stdout, new RegExp(`tsdoc-${rule}`), value);
    }
    await project.write({ "src/keys.ts": text });
    await rm(project.path("tsdoc.json"));
    t.regex((await eslint(project)).stdout, /tsdoc-undefined-tag.*"@redisLock"/);
  },
);

inMatrix("lockweave/tsdoc.json defines @needsLock, which a function may have several times", async (t) => {
  t.timeout(300_000);
  const text = `/**
 * @needsLock businessFlag=pay keyName=orderNo
 * @needsLock businessFlag=stock
 */
export async function post(orderNo: string): Promise<void> {}
`;
  const project = await projectWith("eslint-tsdoc", {
    ...TSDOC_CONFIG,
    ...example("TSDoc", "tsdoc.json"),
    "src/keys.ts": text,
  });
  t.like(await eslint(project), { code: 0, stdout: "" });
});

const TAGGED = `/** @redisLock businessFlag=pay keyName=orderNo waitTime=5s */
export async function pay(orderNo: string): Promise<void> {}
`;

async function formatted(config: Files, text: string, file = "src/pay.ts"): Promise<string> {
  const project = await projectWith("prettier-jsdoc", { ...config, [file]: text });
  const { code, stderr } = await project.run("node_modules/prettier/bin/prettier.cjs", "--write", file);
  if (code !== 0) throw new Error(stderr);
  return await project.read(file);
}

inMatrix("prettier-plugin-jsdoc deletes the first value of a tag, and the build fails", async (t) => {
  t.timeout(300_000);
  const config = { ".prettierrc": `{ "plugins": ["prettier-plugin-jsdoc"] }` };
  const text = await formatted(config, `// prettier-ignore\n${TAGGED}`);
  t.is(text, `// prettier-ignore\n${TAGGED.replace("businessFlag=pay", "businessFlag")}`);
  const project = await projectWith("prettier-jsdoc", { "src/pay.ts": text });
  t.regex((await project.tspc()).stdout, /LW1001: .*`businessFlag`/);
});

inMatrix("prettier-plugin-jsdoc leaves tags unchanged with the setting in docs/compilers.md", async (t) => {
  t.timeout(300_000);
  const config = example("prettier-plugin-jsdoc", "prettier.config.mjs");
  t.is(await formatted(config, TAGGED, "src/services/pay.ts"), TAGGED);
  t.not(await formatted(config, TAGGED, "src/pay.ts"), TAGGED);
});

for (const settings of [
  {},
  { tsdoc: true },
  { jsdocDescriptionWithDot: true, jsdocSeparateTagGroups: true },
]) {
  inMatrix(
    `prettier-plugin-jsdoc keeps attributes on the next line with ${JSON.stringify(settings)}`,
    async (t) => {
      t.timeout(300_000);
      const config = { ".prettierrc": JSON.stringify({ plugins: ["prettier-plugin-jsdoc"], ...settings }) };
      const text = example("prettier-plugin-jsdoc", "src/pay.ts")["src/pay.ts"] ?? "";
      t.is(await formatted(config, text), text);
    },
  );
}

/** Compiles the controller as `nest build` does with the plugin in `nest-cli.json`. */
const COMPILE = `const ts = require("typescript");
const plugin = require("@nestjs/swagger/plugin");
const options = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022, experimentalDecorators: true, removeComments: true };
const program = ts.createProgram(["src/orders.controller.ts"], options);
const before = [plugin.before({ introspectComments: true }, program)];
program.emit(undefined, (name, text) => console.log(text), undefined, false, { before });
`;

inMatrix(
  "the Swagger plugin of NestJS publishes no tag that is written as in docs/compilers.md",
  async (t) => {
    t.timeout(300_000);
    const file = "src/orders.controller.ts";
    const files: Files = { ...example("Swagger plugin of NestJS", file), "compile.cjs": COMPILE };
    const project = await projectWith("nest-11-swagger", files);
    const published = async (text: string): Promise<string> => {
      await project.write({ [file]: text });
      const { code, stdout, stderr } = await project.run("compile.cjs");
      t.is(code, 0, stderr);
      return /summary: "(.*?)"/.exec(stdout)?.[1] ?? "";
    };
    const text = files[file] ?? "";
    t.is(await published(text), "Pays an order.");
    t.regex((await lockweave(project, "list")).stdout, /LOCK_pay_\{orderNo\}/);

    const together = text.replace(". */\n  /** ", ".\n   * ");
    t.is(await published(together), "Pays an order.\\n@redisLock businessFlag=pay keyName=orderNo");
    const [, description = "", tag = "", decorator = ""] =
      /( +\/\*\* Pays.*?\n)(.*?\n)( +@Post.*?\n)/s.exec(text) ?? [];
    t.is(await published(text.replace(description, "")), "@redisLock businessFlag=pay keyName=orderNo");
    t.is(await published(text.replace(description + tag + decorator, decorator + tag)), "");
    t.regex((await lockweave(project, "list")).stdout, /LOCK_pay_\{orderNo\}/);
  },
);
