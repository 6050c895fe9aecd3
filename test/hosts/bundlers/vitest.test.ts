import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { projectOf, type Bundler } from "./bundlers";
import { EXAMPLE_SCRIPTS, EXAMPLES, exampleTest, linesOf, expectedLinesOf } from "../examples";
import { installed } from "../installed";
import { PACKAGE, type Files, type Project } from "../project";
import { INPUTS, WOVEN } from "./fixtures";
import { recipe, unwoven } from "./recipes";
import { MISTAKES, ORDER, placeIn, RECEIPT, WRONG } from "./sources";
import { inMatrix } from "../../support/suites";

// They run only in the matrix, since they are too heavy for every test run.

const VITEST: Pick<Bundler, "name" | "sets"> = {
  name: "Vitest",
  sets: ["vitest-5"],
};

const SPEC = `import { assertWoven, configure, memoryStore, shutdown } from "lockweave";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OrderService } from "./order";

beforeAll(() => configure({ store: memoryStore() }));
afterAll(() => shutdown());

test("one at a time", async () => {
  const service = new OrderService();
  assertWoven(service.pay);
  await Promise.all([service.pay("A1"), service.pay("A1")]);
  expect(service.together).toBe(false);
});
`;
const THROWING = `
test("a body that throws", () => new OrderService().pay("none"));
`;

interface Run {
  readonly project: Project;
  readonly code: number | null;
  readonly output: string;
}

async function vitest(order: string, spec: string, config = recipe("Vitest")): Promise<Run> {
  return await runVitest(
    { "src/order.ts": order, "src/receipt.ts": RECEIPT, "src/order.test.ts": spec },
    config,
  );
}

async function runVitest(files: Files, { file, text } = recipe("Vitest")): Promise<Run> {
  const project = await projectOf(VITEST, files);
  await project.write({ [file]: text });
  const node = join(await installed("node-24"), "node/bin/node"); // Vitest 5 does not run on Node 20.
  const run = await project.runWith(node, "node_modules/vitest/vitest.mjs", "run", "--no-color");
  return { project, code: run.code, output: run.stdout + run.stderr };
}

const REQUIRES = `import { createRequire } from "node:module";
import { assertWoven } from "lockweave";
import { test } from "vitest";
test("is woven", () => assertWoven(createRequire(import.meta.url)("./pay.cjs").pay));
`;

inMatrix(
  "Vitest: CommonJS that a test requires is woven if workers have the hook from docs/compilers.md",
  async (t) => {
    const files = {
      "src/pay.cjs": `/** @redisLock businessFlag=pay */\nexports.pay = async () => 1;\n`,
      "src/pay.test.ts": REQUIRES,
    };
    const { file, text } = recipe("Vitest");
    const page = await readFile(join(PACKAGE, "docs/compilers.md"), "utf8");
    const [option = ""] = /^ {2}test: \{ execArgv: .*$/m.exec(page) ?? [];
    t.not((await runVitest(files)).code, 0);
    const hooked = { file, text: text.replace("plugins: [lockweave()],", `$&\n${option}`) };
    const { code, output } = await runVitest(files, hooked);
    t.is(code, 0, output);
  },
);

inMatrix("Vitest: tests run under locks, and errors have their line and column in the source", async (t) => {
  t.like(await vitest(ORDER, SPEC), { code: 0 });
  const { code, output } = await vitest(ORDER, SPEC + THROWING);
  t.is(code, 1);
  const { line, column } = placeIn(ORDER, "new RangeError");
  t.true(output.includes(`src/order.ts:${line}:${column}`), output);
});

inMatrix("Vitest: the unit test in docs/testing.md passes", async (t) => {
  const page = await readFile(join(PACKAGE, "docs/testing.md"), "utf8");
  const [, unitTest = ""] = /^```ts\n(\/\/ src\/orders\.test\.ts\n.*?)^```/ms.exec(page) ?? [];
  const orders = `export class Orders {
  /** @redisLock businessFlag=pay keyName=order.no */
  async pay(order: { readonly no: string }): Promise<string> { return order.no; }
}
`;
  const { code, output } = await runVitest({ "src/orders.ts": orders, "src/orders.test.ts": unitTest });
  t.is(code, 0, output);
  t.regex(output, /2 passed/);
});

inMatrix("Vitest: each invalid tag in a file fails its tests with an error at its position", async (t) => {
  const { code, output } = await vitest(WRONG, SPEC);
  t.is(code, 1);
  for (const [word, message] of Object.entries(MISTAKES)) {
    const { line, column } = placeIn(WRONG, word);
    t.true(output.includes(`src/order.ts(${line},${column}): error ${message}`), output);
  }
});

inMatrix("Vitest: tests without the plugin do not run", async (t) => {
  const { code, output } = await vitest(ORDER, SPEC, unwoven(recipe("Vitest")));
  t.is(code, 1);
  t.regex(output, /This build was not woven/);
});

inMatrix("Vitest: a project that does not inherit the plugin fails at testLocks()", async (t) => {
  const { file, text } = recipe("Vitest");
  const projects = ["bare", "woven"].map((name) => {
    const isExtended = name === "woven";
    return `{ extends: ${isExtended}, test: { name: "${name}", include: ["src/*.test.ts"] } }`;
  });
  const config = text.replace("plugins: [lockweave()]", `$&, test: { projects: [${projects.join()}] }`);
  const spec = `import { testLocks } from "lockweave/testing";
import { test } from "vitest";
testLocks();
test("runs", () => {});
`;
  const { code, output } = await runVitest({ "src/a.test.ts": spec }, { file, text: config });
  t.is(code, 1);
  t.regex(output, /FAIL +\|bare\| src\/a\.test\.ts.*\n+LockNotWovenError: The file that calls testLocks\(\)/);
  t.regex(output, /✓ \|woven\| src\/a\.test\.ts/);
});

inMatrix("Vitest: both examples behave as when compiled by tspc", async (t) => {
  t.timeout(300_000);
  const tests = EXAMPLES.map((example) => [`${example}.test.ts`, exampleTest(example, "vitest")] as const);
  const { project, code, output } = await runVitest({ ...EXAMPLE_SCRIPTS, ...Object.fromEntries(tests) });
  t.is(code, 0, output);
  for (const example of EXAMPLES) {
    t.deepEqual(linesOf(await project.read(`${example}.txt`)), await expectedLinesOf(example));
  }
});

/** A plugin after Lockweave that records its input and returns an empty module. */
const SEE = `{
    name: "see",
    enforce: "pre",
    transform(code, id) {
      const file = relative(process.cwd(), id);
      if (!/^src.[\\w-]+\\.\\w+$/.test(file) || file.endsWith(".test.ts")) return;
      mkdirSync("seen/src", { recursive: true });
      writeFileSync("seen/" + file, code);
      return { code: "", map: null };
    },
  }`;

inMatrix("Vitest: weaves every fixture to the text that weave() returns", async (t) => {
  t.timeout(300_000);
  const { file, text } = recipe("Vitest");
  const imports = Object.keys(INPUTS).map((path) => `import "./${path.replace("src/", "")}";`);
  const { project, code, output } = await runVitest(
    {
      ...INPUTS,
      "src/all.test.ts": `import { test } from "vitest";\n${imports.join("\n")}\ntest("all", () => {});\n`,
    },
    {
      file,
      text: `import { mkdirSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
${text.replace("plugins: [lockweave()]", `plugins: [lockweave(), ${SEE}]`)}`,
    },
  );
  t.is(code, 0, output);
  for (const [path, woven] of Object.entries(WOVEN)) t.is(await project.read(`seen/${path}`), woven, path);
});
