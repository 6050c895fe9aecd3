import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { EXAMPLE_SCRIPTS, EXAMPLES, exampleTest, linesOf, expectedLinesOf } from "../examples";
import { PACKAGE, type Files, type Finished, type Project } from "../project";
import { makeHosted, orders } from "./project";
import { isMatrix } from "../../support/suites";

// These tests run another ava, which must not mistake itself for a worker of this one.
const inMatrix = isMatrix ? test.serial : test.skip;

interface Kind {
  readonly type: string;
  /** The configuration from the docs. */
  readonly ava: object;
  /** The extension in imports of the sources. */
  readonly extension: string;
}

async function kinds(): Promise<readonly Kind[]> {
  const docs = await readFile(join(PACKAGE, "docs/compilers.md"), "utf8");
  const [, section = ""] = /^## ava\n(.*?)^## /ms.exec(docs) ?? [];
  const [commonjs = {}, esm = {}] = [...section.matchAll(/^```json\n(.*?)^```/gms)].map(
    ([, json = ""]) => JSON.parse(json) as object,
  );
  return [
    { type: "commonjs", ava: commonjs, extension: "" },
    { type: "module", ava: esm, extension: ".js" },
  ];
}

async function ava({ type, ava: config }: Kind, files: Files): Promise<{ run: Finished; project: Project }> {
  const project = await makeHosted({ "package.json": JSON.stringify({ type, ...config }), ...files });
  await symlink(join(PACKAGE, "node_modules/ava"), project.path("node_modules/ava"));
  return { run: await project.run("node_modules/ava/entrypoints/cli.mjs", "--timeout=2m"), project };
}

const unitTest = (extension: string): string => `import test from "ava";
import { assertWoven, testLocks } from "lockweave/testing";
import { Orders } from "./orders${extension}";

const locks = testLocks();
test("an order is paid under its lock", async (t) => {
  assertWoven(Orders.prototype.pay);
  await new Orders().pay("A1");
  t.deepEqual(locks.acquired, ["LOCK_pay_A1"]);
});
`;

inMatrix("ava: tests of woven code run with the configuration in docs/compilers.md", async (t) => {
  for (const kind of await kinds()) {
    const { extension } = kind;
    const { run } = await ava(kind, { "orders.ts": orders("pay"), "orders.test.ts": unitTest(extension) });
    const { code, stdout, stderr } = run;
    t.is(code, 0, stdout + stderr);
    t.true(stdout.includes("1 test passed"), stdout);
  }
});

inMatrix("ava: both examples behave as when compiled by tspc", async (t) => {
  t.timeout(300_000);
  for (const kind of await kinds()) {
    const imports = (text: string): string => text.replaceAll(/(from "\.\/.*)"/g, `$1${kind.extension}"`);
    const scripts = Object.entries(EXAMPLE_SCRIPTS).map(([file, text]) => [file, imports(text)] as const);
    const tests = EXAMPLES.map(
      (example) => [`${example}.test.ts`, exampleTest(example, "ava", kind.extension)] as const,
    );
    const { run, project } = await ava(kind, Object.fromEntries([...scripts, ...tests]));
    t.is(run.code, 0, run.stdout + run.stderr);
    for (const example of EXAMPLES) {
      t.deepEqual(linesOf(await project.read(`${example}.txt`)), await expectedLinesOf(example));
    }
  }
});

inMatrix("ava: stack traces show lines and columns of the file on disk", async (t) => {
  for (const kind of await kinds()) {
    const { run } = await ava(kind, {
      "orders.ts": `interface Order { readonly no: string }
/** @redisLock businessFlag=pay keyName=order.no */
export async function pay(order: Order): Promise<string> { return refuse(order); }
async function refuse(order: Order): Promise<string> { throw new Error(order.no); }
`,
      "orders.test.ts": `import test from "ava";
import { testLocks } from "lockweave/testing";
import { pay } from "./orders${kind.extension}";
testLocks();
test("where it fails", async (t) => {
  const { stack = "" } = (await t.throwsAsync(pay({ no: "A1" }))) ?? {};
  t.regex(stack, /orders\\.ts:4:62/);
  t.regex(stack, /orders\\.ts:3:67/);
});
`,
    });
    t.is(run.code, 0, run.stdout + run.stderr);
  }
});

inMatrix("ava: tests without the hook fail at their check for the weave", async (t) => {
  for (const kind of await kinds()) {
    const without = JSON.stringify(kind.ava).replace(/,"(?:--import=)?lockweave\/register"/, "");
    t.notRegex(without, /lockweave/);
    const { run } = await ava(
      { ...kind, ava: JSON.parse(without) as object },
      { "orders.ts": orders("pay"), "orders.test.ts": unitTest(kind.extension) },
    );
    t.is(run.code, 1);
    t.regex(run.stdout + run.stderr, /LockNotWovenError: The file that calls testLocks\(\) was not woven/);
  }
});
