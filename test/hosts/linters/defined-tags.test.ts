import { readFile } from "node:fs/promises";
import test from "ava";
import { lockweave } from "../../cli/command";
import { isMatrix } from "../../support/suites";
import type { Files, Finished, Project } from "../project";
import { example, projectWith } from "./tools";

// Tools that check the names of tags, or that format comments. They must know our tags, and keep every lock.

const inMatrix = isMatrix ? test.serial : test.skip;

/** Tags in every form, in comments that formatters change. */
const TAGGED = `class OrderBusy extends Error {}

/**
* Pays an order.
*
 * @param orderNo The order.
 * @redisLock businessFlag=pay   keyName=orderNo waitTime=5s onFailure=OrderBusy
 */
export async function pay(orderNo: string): Promise<void> { void orderNo; }

/**
 *  Settles.
 * @redisLock key=\`pay:\${order.id}\` when=\`order.total > 100\`
 * @param order - The order.
 */
export async function settle(order: { id: string; total: number }): Promise<void> {}

/** @needsLock businessFlag=pay keyName=orderNo */
export async function post(orderNo: string): Promise<void> {}

/** @redisLock businessFlag=tick */ export const tick = async (): Promise<void> => {}

export class Orders {
      /**
       * Refunds.
       *
       * @redisLock
       *   businessFlag=pay keyName=orderNo,kind
       *            lockTime=20s
       */
  async refund(orderNo: string, kind: string): Promise<void> {}
}
`;

/** Runs the tool on {@link TAGGED}. Returns the changed text, after a check that every lock is the same. */
async function keepsLocks(
  project: Project,
  run: () => Promise<Finished>,
): Promise<{ readonly text: string; readonly locks: string }> {
  await lockweave(project, "list", "--write", "LOCKS.md");
  await run();
  const { stdout, stderr } = await lockweave(project, "list", "--write", "LOCKS.md");
  return { text: await project.read("src/pay.ts"), locks: stdout + stderr };
}
const SAME = "LOCKS.md is up to date.\n";

const jsdoc = (project: Project, ...args: readonly string[]): Promise<Finished> =>
  project.run("node_modules/eslint/bin/eslint.js", "src/pay.ts", ...args);
const OURS: Files = {
  "eslint.config.mjs": `import lockweave from "lockweave/eslint";
import jsdoc from "eslint-plugin-jsdoc";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

export default defineConfig(
  tseslint.configs.recommended,
  jsdoc.configs["flat/recommended-typescript"],
  lockweave.configs.recommended,
);
`,
};

inMatrix(
  "eslint-plugin-jsdoc knows the tags by the recommended configuration, or by definedTags",
  async (t) => {
    t.timeout(300_000);
    const documented = example("eslint-plugin-jsdoc", "eslint.config.mjs");
    const project = await projectWith("eslint-jsdoc", { ...documented, "src/pay.ts": TAGGED });
    const unknown = async (config: Files): Promise<(string | undefined)[]> => {
      await project.write(config);
      const { stdout } = await jsdoc(project);
      t.regex(stdout, /jsdoc\/require-param/);
      return [...stdout.matchAll(/Invalid JSDoc tag name "(\w+)"/g)].map(([, name]) => name);
    };
    t.deepEqual(await unknown(documented), []);
    t.deepEqual(await unknown(OURS), []);
    const ofNobody = (OURS["eslint.config.mjs"] ?? "").replace("  lockweave.configs.recommended,\n", "");
    t.deepEqual([...new Set(await unknown({ "eslint.config.mjs": ofNobody }))], ["redisLock", "needsLock"]);
  },
);

inMatrix(
  "eslint-plugin-jsdoc accepts a comment with only a tag if `exemptedBy` names the tags",
  async (t) => {
    t.timeout(300_000);
    const rule = `["warn", { exemptedBy: ["inheritdoc", "redisLock", "needsLock"] }]`;
    const project = await projectWith("eslint-jsdoc", {
      "src/pay.ts": `${TAGGED}\n/** Formats. */\nexport function format(text: string): string { return text; }\n`,
      "eslint.config.mjs": (OURS["eslint.config.mjs"] ?? "").replace(
        "  lockweave.configs.recommended,\n",
        `  { rules: { "jsdoc/require-param": ${rule}, "jsdoc/require-returns": ${rule} } },\n`,
      ),
    });
    const { stdout } = await jsdoc(project);
    const reports = [...stdout.matchAll(/jsdoc\/require-(?:param|returns)$/gm)].map(([name]) => name);
    t.deepEqual(reports, ["jsdoc/require-param", "jsdoc/require-returns"], stdout);
  },
);

inMatrix("the fixes of eslint-plugin-jsdoc keep every lock", async (t) => {
  t.timeout(300_000);
  const project = await projectWith("eslint-jsdoc", {
    "src/pay.ts": TAGGED,
    "eslint.config.mjs": (OURS["eslint.config.mjs"] ?? "").replace(
      "  lockweave.configs.recommended,\n",
      `  lockweave.configs.recommended,
  {
    rules: {
      "jsdoc/check-alignment": "error",
      "jsdoc/check-line-alignment": ["error", "always", { tags: ["param", "redisLock", "needsLock"] }],
      "jsdoc/multiline-blocks": ["error", { noSingleLineBlocks: true }],
      "jsdoc/require-asterisk-prefix": "error",
      "jsdoc/sort-tags": "error",
      "jsdoc/tag-lines": ["error", "always"],
      "jsdoc/text-escaping": ["error", { escapeHTML: true }],
    },
  },
`,
    ),
  });
  const { text, locks } = await keepsLocks(project, () => jsdoc(project, "--fix"));
  t.not(text, TAGGED);
  t.regex(text, /@needsLock +businessFlag=pay keyName=orderNo\n/);
  t.is(locks, SAME);
});

for (const [name, tools, args] of [
  ["Prettier", "prettier", ["node_modules/prettier/bin/prettier.cjs", "--write", "."]],
  ["Biome", "biome", ["node_modules/@biomejs/biome/bin/biome", "format", "--write", "."]],
] as const) {
  inMatrix(`${name} keeps every lock, and the list of locks, when it formats a project`, async (t) => {
    t.timeout(300_000);
    const project = await projectWith(tools, { "src/pay.ts": TAGGED });
    const { text, locks } = await keepsLocks(project, () => project.run(...args));
    t.not(text, TAGGED);
    t.is(locks, SAME);
  });
}

const OPTIONS = ["--entryPoints", "src/pay.ts", "--json", "out.json"];

inMatrix("TypeDoc knows the tags by tsdoc.json, and leaves them out by excludeTags", async (t) => {
  t.timeout(300_000);
  const definitions = example("TypeDoc", "tsdoc.json");
  const project = await projectWith("typedoc", { "src/pay.ts": TAGGED.replace("class", "export class") });
  const run = (): Promise<Finished> =>
    project.run("node_modules/typedoc/bin/typedoc", ...OPTIONS, "--name", "shop", "--treatWarningsAsErrors");
  const documented = async (): Promise<number> =>
    (await readFile(project.path("out.json"), "utf8")).split("businessFlag=pay").length - 1;

  const before = await run();
  t.not(before.code, 0);
  t.regex(before.stdout + before.stderr, /unknown block tag @redisLock/);

  await project.write(definitions);
  const { code, stdout, stderr } = await run();
  t.is(code, 0, stdout + stderr);
  t.is(await documented(), 3);

  await project.write(example("TypeDoc", "typedoc.config.mjs"));
  t.is((await run()).code, 0);
  t.is(await documented(), 0);
});
