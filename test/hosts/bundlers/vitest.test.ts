import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { projectOf, type Bundler } from "./bundlers";
import { EXAMPLE_SCRIPTS, EXAMPLES, exampleTest, linesOf, storyOf } from "../examples";
import { installed } from "../installed";
import { PACKAGE, type Files, type Project } from "../project";
import { INPUTS, WOVEN } from "./fixtures";
import { recipe, unwoven } from "./recipes";
import { MISTAKES, ORDER, placeIn, RECEIPT, WRONG } from "./sources";
import { inMatrix } from "../../support/suites";

// Too heavy for every run of the tests.

const VITEST: Pick<Bundler, "name" | "packages"> = {
  name: "Vitest",
  packages: ["vitest@5.1.1", "vite@8.3.8"],
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
  readonly said: string;
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
  const node = join(await installed(["node@24"]), "node/bin/node"); // Vitest 5 does not run on Node 20.
  const run = await project.runWith(node, "node_modules/vitest/vitest.mjs", "run", "--no-color");
  return { project, code: run.code, said: run.stdout + run.stderr };
}

const REQUIRES = `import { createRequire } from "node:module";
import { assertWoven } from "lockweave";
import { test } from "vitest";
test("is woven", () => assertWoven(createRequire(import.meta.url)("./pay.cjs").pay));
`;

inMatrix(
  "Vitest: CommonJS that a test requires is woven if the workers have the hook, as docs/hosts.md says",
  async (t) => {
    const files = {
      "src/pay.cjs": `/** @redisLock businessFlag=pay */\nexports.pay = async () => 1;\n`,
      "src/pay.test.ts": REQUIRES,
    };
    const { file, text } = recipe("Vitest");
    const page = await readFile(join(PACKAGE, "docs/hosts.md"), "utf8");
    const [option = ""] = /^ {2}test: \{ execArgv: .*$/m.exec(page) ?? [];
    t.not((await runVitest(files)).code, 0);
    const hooked = { file, text: text.replace("plugins: [lockweave()],", `$&\n${option}`) };
    const { code, said } = await runVitest(files, hooked);
    t.is(code, 0, said);
  },
);

inMatrix(
  "Vitest: tests run under locks, and an error is shown at the line and column of the source",
  async (t) => {
    t.like(await vitest(ORDER, SPEC), { code: 0 });
    const { code, said } = await vitest(ORDER, SPEC + THROWING);
    t.is(code, 1);
    const { line, column } = placeIn(ORDER, "new RangeError");
    t.true(said.includes(`src/order.ts:${line}:${column}`), said);
  },
);

inMatrix("Vitest: the unit test of the page about hosts passes", async (t) => {
  const page = await readFile(join(PACKAGE, "docs/hosts.md"), "utf8");
  const [, unitTest = ""] = /^```ts\n(\/\/ src\/orders\.test\.ts\n.*?)^```/ms.exec(page) ?? [];
  const orders = `export class Orders {
  /** @redisLock businessFlag=pay keyName=order.no */
  async pay(order: { readonly no: string }): Promise<string> { return order.no; }
}
`;
  const { code, said } = await runVitest({ "src/orders.ts": orders, "src/orders.test.ts": unitTest });
  t.is(code, 0, said);
  t.regex(said, /2 passed/);
});

inMatrix("Vitest: each wrong tag of a file fails its tests, at its words", async (t) => {
  const { code, said } = await vitest(WRONG, SPEC);
  t.is(code, 1);
  for (const [word, message] of Object.entries(MISTAKES)) {
    const { line, column } = placeIn(WRONG, word);
    t.true(said.includes(`src/order.ts(${line},${column}): error ${message}`), said);
  }
});

inMatrix("Vitest: tests without the plugin do not run", async (t) => {
  const { code, said } = await vitest(ORDER, SPEC, unwoven(recipe("Vitest")));
  t.is(code, 1);
  t.regex(said, /This build was not woven/);
});

inMatrix("Vitest: a project that does not inherit the plugin fails where it calls testLocks()", async (t) => {
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
  const { code, said } = await runVitest({ "src/a.test.ts": spec }, { file, text: config });
  t.is(code, 1);
  t.regex(said, /FAIL +\|bare\| src\/a\.test\.ts.*\n+LockNotWovenError: The file that calls testLocks\(\)/);
  t.regex(said, /✓ \|woven\| src\/a\.test\.ts/);
});

inMatrix("Vitest: both examples do what they do when tspc has compiled them", async (t) => {
  t.timeout(300_000);
  const tests = EXAMPLES.map((example) => [`${example}.test.ts`, exampleTest(example, "vitest")] as const);
  const { project, code, said } = await runVitest({ ...EXAMPLE_SCRIPTS, ...Object.fromEntries(tests) });
  t.is(code, 0, said);
  for (const example of EXAMPLES) {
    t.deepEqual(linesOf(await project.read(`${example}.txt`)), await storyOf(example));
  }
});

/** Comes behind Lockweave, writes down what it gets, and hands on nothing. */
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

inMatrix("Vitest: the text of every fixture is that which the weave makes", async (t) => {
  t.timeout(300_000);
  const { file, text } = recipe("Vitest");
  const imports = Object.keys(INPUTS).map((path) => `import "./${path.replace("src/", "")}";`);
  const { project, code, said } = await runVitest(
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
  t.is(code, 0, said);
  for (const [path, woven] of Object.entries(WOVEN)) t.is(await project.read(`seen/${path}`), woven, path);
});
