import test from "ava";
import { lockweave } from "../../cli/command";
import type { Files, Finished, Project } from "../project";
import { isMatrix } from "../../support/suites";
import { example, projectWith } from "./tools";

// A linter reads a file without its locks. It must keep the names that only a tag uses.

const inMatrix = isMatrix ? test.serial : test.skip;

const ERRORS: Files = {
  "src/errors.ts": `export class OrderBusy extends Error {}
export interface Order { id: string }
export const region = (id: string): string => id;
export const isLarge = (id: string): boolean => id !== "";
export const unused = 1;
`,
};
/** Names that start with `unused` are unused. Tags use all others. */
const TAGGED = `import { isLarge, OrderBusy, region, unused } from "./errors.js";
import type { Order } from "./errors.js";
import * as keys from "./errors.js";

/** @redisLock businessFlag=pay keyName="region(orderNo)" when="isLarge(orderNo)" onFailure=OrderBusy */
export async function pay(orderNo: string): Promise<void> {}

/** @redisLock key="pay:\${keys.region(order.id)}" */
export const settle = async (order: { id: string }, unusedParameter: string): Promise<void> => {};

/** @redisLock businessFlag=pay keyType=CLASS keyName=order keyClass=Order fieldName=id */
export async function refund(order: Order): Promise<void> {}

export function makeQueue(prefix: string): object {
  const shard = prefix;
  const region = prefix; // unused: the import of this name is another variable
  return class {
    /** @redisLock businessFlag=queue keyName="shard + id" a wrong tag */
    async push(id: string): Promise<void> {
      const shard = 1; // unused: a tag cannot see the body
    }
  };
}
`;
/** The names that are reported in {@link TAGGED}, at their lines. */
const UNUSED = ["1 unused", "9 unusedParameter", "16 region", "20 shard"];

type Report = readonly { readonly messages: readonly Message[] }[];
interface Message {
  readonly ruleId: string;
  readonly line: number;
  readonly message: string;
}

function reported(messages: readonly Message[], rule: string): string[] {
  return messages
    .filter(({ ruleId }) => ruleId === rule)
    .map(({ line, message }) => `${line} ${/'(\w+)'/.exec(message)?.[1]}`);
}

const CONFIG = `import lockweave from "lockweave/eslint";
import tseslint from "typescript-eslint";
import unusedImports from "eslint-plugin-unused-imports";

export default [
  {
    files: ["**/*.ts"],
    languageOptions: { parser: tseslint.parser },
    plugins: { "@typescript-eslint": tseslint.plugin, "unused-imports": unusedImports },
    rules: {
      "no-unused-vars": "error",
      "@typescript-eslint/no-unused-vars": ["error", { enableAutofixRemoval: { imports: true } }],
      "unused-imports/no-unused-imports": "error",
    },
  },
  lockweave.configs.recommended,
];
`;
const eslint = (project: Project, ...args: readonly string[]): Promise<Finished> =>
  project.run("node_modules/eslint/bin/eslint.js", "src/pay.ts", ...args);

for (const set of ["eslint-9", "eslint-10"] as const) {
  inMatrix(`${set}: a name that only a tag uses counts as used, and --fix keeps its import`, async (t) => {
    t.timeout(300_000);
    const project = await projectWith(set, {
      ...ERRORS,
      "src/pay.ts": TAGGED,
      "eslint.config.mjs": CONFIG,
    });
    const { stdout } = await eslint(project, "--format", "json");
    const [{ messages } = { messages: [] }] = JSON.parse(stdout) as Report;
    t.deepEqual(reported(messages, "no-unused-vars"), UNUSED);
    t.deepEqual(reported(messages, "@typescript-eslint/no-unused-vars"), UNUSED);
    t.deepEqual(reported(messages, "unused-imports/no-unused-imports"), ["1 unused"]);

    await eslint(project, "--fix");
    t.is(await project.read("src/pay.ts"), TAGGED.replace("region, unused }", "region }"));
  });
}

inMatrix("ESLint: without the plugin, --fix removes imports that only a tag uses", async (t) => {
  t.timeout(300_000);
  const project = await projectWith("eslint-10", {
    ...ERRORS,
    "src/pay.ts": TAGGED,
    "eslint.config.mjs": CONFIG.replace("  lockweave.configs.recommended,\n", ""),
  });
  await eslint(project, "--fix");
  t.notRegex(await project.read("src/pay.ts"), /import .*OrderBusy/);
});

inMatrix("ESLint: the configuration in docs/compilers.md works and passes the type check", async (t) => {
  t.timeout(300_000);
  const config = example("ESLint", "eslint.config.mjs");
  const project = await projectWith("eslint-10", { ...ERRORS, "src/pay.ts": TAGGED, ...config });
  const { stdout } = await eslint(project, "--format", "json");
  const [{ messages } = { messages: [] }] = JSON.parse(stdout) as Report;
  t.deepEqual(reported(messages, "@typescript-eslint/no-unused-vars"), UNUSED);

  await project.write({ "config.mts": config["eslint.config.mjs"] ?? "" });
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--ignoreConfig"];
  const checked = await project.run("node_modules/typescript/bin/tsc", ...options, "config.mts");
  t.like(checked, { code: 0, stdout: "" });
});

inMatrix(
  "oxlint: with the configuration in docs/compilers.md, a name that only a tag uses counts as used",
  async (t) => {
    t.timeout(300_000);
    const project = await projectWith("oxlint", {
      ...ERRORS,
      "src/pay.ts": TAGGED,
      ...example("oxlint", ".oxlintrc.json"),
    });
    const oxlint = (...args: readonly string[]): Promise<Finished> =>
      project.run("node_modules/oxlint/bin/oxlint", ...args);
    const { stdout } = await oxlint("--format", "unix", "src/pay.ts");
    const found = [...stdout.matchAll(/pay\.ts:(\d+):.*'(\w+)' is .*typescript-js\(no-unused-vars\)/g)];
    t.deepEqual(
      found.map(([, line, name]) => `${line} ${name}`),
      UNUSED,
      stdout,
    );
  },
);

inMatrix(
  "oxlint: its own rule reports an import that only a tag uses, unless a comment disables it",
  async (t) => {
    t.timeout(300_000);
    const text = `import { OrderBusy } from "./errors.js";

/** @redisLock businessFlag=pay keyName=orderNo onFailure=OrderBusy */
export async function pay(_orderNo: string): Promise<void> {}
`;
    const disabled = `// oxlint-disable-next-line no-unused-vars\n${text}`;
    const project = await projectWith("oxlint", {
      ...ERRORS,
      "src/pay.ts": text,
      "src/disabled.ts": disabled,
    });
    await project.run("node_modules/oxlint/bin/oxlint", "--fix-dangerously", "src");
    t.notRegex(await project.read("src/pay.ts"), /import/);
    t.is(await project.read("src/disabled.ts"), disabled);
  },
);

const BIOME_CONFIG: Files = {
  "biome.json": JSON.stringify({ formatter: { enabled: false }, assist: { enabled: false } }),
};
const biome = (project: Project): Promise<Finished> =>
  project.run("node_modules/@biomejs/biome/bin/biome", "check", "--write", "--unsafe", "src/pay.ts");

inMatrix("Biome: the example in docs/compilers.md stays unchanged and has its lock", async (t) => {
  t.timeout(300_000);
  const files = { ...BIOME_CONFIG, ...ERRORS, ...example("Biome", "src/pay.ts") };
  const project = await projectWith("biome", files);
  const { code, stdout, stderr } = await biome(project);
  t.is(code, 0, stdout + stderr);
  t.is(await project.read("src/pay.ts"), files["src/pay.ts"] ?? "");
  t.regex((await lockweave(project, "list")).stdout, /LOCK_pay_\{orderNo\}/);

  // Biome respects both: it changes the file if one is missing.
  for (const words of ["{@link OrderBusy}", "biome-ignore"]) {
    const without = (files["src/pay.ts"] ?? "").replace(words, "");
    await project.write({ "src/pay.ts": without });
    await biome(project);
    t.not(await project.read("src/pay.ts"), without, words);
  }
});

inMatrix("Biome: a suppression keeps a private member and a variable that only a tag uses", async (t) => {
  t.timeout(300_000);
  const ignore = (rule: string): string => `// biome-ignore lint/correctness/${rule}: the tag uses it`;
  const text = `${ignore("noUnusedVariables")}
const shard = "a";
export class Orders {
  ${ignore("noUnusedPrivateClassMembers")}
  readonly #region = "eu";
  /** @redisLock businessFlag=pay keyName="this.#region + shard" */
  async pay(): Promise<void> {}
}
`;
  const project = await projectWith("biome", { ...BIOME_CONFIG, "src/pay.ts": text });
  const { code, stdout, stderr } = await biome(project);
  t.is(code, 0, stdout + stderr);
  t.is(await project.read("src/pay.ts"), text);
});

inMatrix("Biome: a link in the comment also counts as a use for TypeScript's noUnusedLocals", async (t) => {
  const files = { ...ERRORS, ...example("Biome", "src/pay.ts") };
  const project = await projectWith("typescript-6", files);
  const options = ["--noEmit", "--noUnusedLocals", "--module", "esnext", "--moduleResolution", "bundler"];
  const compile = (): Promise<Finished> =>
    project.run("node_modules/typescript/bin/tsc", ...options, "--ignoreConfig", "src/pay.ts");
  t.like(await compile(), { code: 0, stdout: "" });
  await project.write({ "src/pay.ts": (files["src/pay.ts"] ?? "").replace("{@link OrderBusy}", "") });
  t.regex((await compile()).stdout, /TS6133: 'OrderBusy'/);
});
