import { spawnSync } from "node:child_process";
import { join } from "node:path";
import test from "ava";
import { isMatrix, projectOf, type Bundler } from "./bundlers";
import { installed } from "../installed";
import { recipe, unwoven } from "./recipes";
import { MISTAKES, ORDER, placeIn, RECEIPT, WRONG } from "./sources";

// Too heavy for every run of the tests.
const inMatrix = isMatrix ? test : test.skip;

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
  readonly code: number | null;
  readonly said: string;
}

async function vitest(order: string, spec: string, { file, text } = recipe("Vitest")): Promise<Run> {
  const sources = { "src/order.ts": order, "src/receipt.ts": RECEIPT, "src/order.test.ts": spec };
  const project = await projectOf(VITEST, sources);
  await project.write({ [file]: text });
  const node = join(await installed(["node@24"]), "node/bin/node"); // Vitest 5 does not run on Node 20.
  const { status, stdout, stderr } = spawnSync(
    node,
    ["node_modules/vitest/vitest.mjs", "run", "--no-color"],
    {
      cwd: project.dir,
      encoding: "utf8",
    },
  );
  return { code: status, said: stdout + stderr };
}

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
