import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { EXAMPLE_SCRIPTS, EXAMPLES, exampleTest, linesOf, expectedLinesOf } from "../examples";
import { makeProject, PACKAGE, type Finished, type Project } from "../project";
import { installedJest } from "./installed-jest";
import { isMatrix } from "../../support/suites";

// They run only in the matrix, since they are too heavy for every test run.
const inMatrix = isMatrix ? test.serial : test.skip;

const ORDERS = `interface Order { readonly no: string }
export class Orders {
  /** @redisLock businessFlag=pay keyName=order.no */
  async pay(order: Order): Promise<string> { return this.paid(order); }
  private async paid(order: Order): Promise<string> {
    if (order.no === "") throw new Error("no order");
    return order.no;
  }
}
export const fails = (): Promise<string> => new Orders()["paid"]({ no: "" });
`;

const BABEL = {
  presets: [["@babel/preset-env", { targets: { node: "current" } }], "@babel/preset-typescript"],
};

const TRANSFORMERS = ["ts-jest", "@swc/jest", ["babel-jest", BABEL]];

async function withJest(transform: unknown): Promise<Project> {
  const modules = await installedJest();
  const [, unitTest = ""] =
    /^```ts\n(\/\/ src\/orders\.test\.ts\n.*?)^```/ms.exec(
      await readFile(join(PACKAGE, "docs/testing.md"), "utf8"),
    ) ?? [];
  const project = await makeProject(
    {
      "package.json": "{}",
      "jest.config.json": JSON.stringify({
        cacheDirectory: "./cache",
        transform: { "\\.ts$": transform },
      }),
      "src/orders.ts": ORDERS,
      "src/orders.test.ts": `${unitTest.replace('"vitest"', '"@jest/globals"').replace("./orders.js", "./orders")}
test("stack traces show the file on disk", async () => {
  const { fails } = await import("./orders");
  const error = await fails().catch((thrown: Error) => thrown);
  expect((error as Error).stack).toContain("src/orders.ts:6:32");
});
`,
    },
    {
      module: "commonjs",
      esModuleInterop: true,
      types: ["node"],
      lib: ["es2023"],
      moduleResolution: "bundler",
    },
  );
  for (const name of ["jest", "ts-jest", "babel-jest", "@babel", "@swc", "@jest"]) {
    await symlink(join(modules, name), project.path(`node_modules/${name}`));
  }
  return project;
}

function jest(project: Project, ...args: readonly string[]): Promise<Finished> {
  return project.run(project.path("node_modules/jest/bin/jest.js"), ...args);
}

inMatrix("Jest compiles woven code with each of its transformers", async (t) => {
  for (const transformer of TRANSFORMERS) {
    const project = await withJest(["lockweave/jest", { transformer }]);
    const { code, stdout, stderr } = await jest(project, "--coverage");
    t.is(code, 0, stderr);
    t.regex(stdout, /orders\.ts(?: +\| +100){4} /, stderr);
    await project.write({ "src/orders.ts": ORDERS.replace("keyName=order.no", "keyName=ordr.no") });
    const wrong = await jest(project, "--coverage");
    t.is(wrong.code, 1);
    t.true(wrong.stderr.includes("src/orders.ts(3,43): error LW1202"), wrong.stderr);
  }
});

const FIELDS = (words: string): string => `/** @redisLock businessFlag=pay keyName=id */
async function pay(id) { return id; }
${words}
`;

inMatrix(
  "Jest weaves .cjs and .mjs files in their own format with the pattern from docs/compilers.md",
  async (t) => {
    const project = await withJest(["lockweave/jest", {}]);
    const [pattern = ""] =
      /"[^"\n]*\[cm\][^"\n]*"(?=: \["lockweave\/jest")/.exec(
        await readFile(join(PACKAGE, "docs/compilers.md"), "utf8"),
      ) ?? [];
    await project.write({
      "jest.config.json": `{ "cacheDirectory": "./cache", "transform": { ${pattern}: "lockweave/jest" } }`,
      "pay.cjs": FIELDS("module.exports = { pay };"),
      "pay.mjs": FIELDS("export { pay };"),
      "pay.test.js": `const { assertWoven } = require("lockweave/testing");
test("CommonJS", () => assertWoven(require("./pay.cjs").pay));
test("an ES module", async () => assertWoven((await import("./pay.mjs")).pay));
`,
    });
    const jestScript = project.path("node_modules/jest/bin/jest.js");
    const { code, stderr } = await project.run("--experimental-vm-modules", jestScript, "pay.test.js");
    t.is(code, 0, stderr);
  },
);

inMatrix("Jest: both examples behave as when compiled by tspc", async (t) => {
  t.timeout(300_000);
  for (const transformer of TRANSFORMERS) {
    const project = await withJest(["lockweave/jest", { transformer }]);
    await project.write(EXAMPLE_SCRIPTS);
    for (const example of EXAMPLES) {
      await project.write({ [`${example}.test.ts`]: exampleTest(example, "jest") });
      const { code, stderr } = await jest(project, `${example}.test.ts`);
      t.is(code, 0, stderr);
      t.deepEqual(linesOf(await project.read(`${example}.txt`)), await expectedLinesOf(example));
    }
  }
});

inMatrix("Jest: tests without the transform fail at their check for the weave", async (t) => {
  t.timeout(300_000);
  for (const transformer of TRANSFORMERS) {
    const { code, stderr } = await jest(await withJest(transformer));
    t.is(code, 1);
    t.regex(stderr, /LOCK_NOT_WOVEN|was not woven/);
  }
});
