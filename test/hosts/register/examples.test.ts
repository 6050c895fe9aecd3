import test from "ava";
import {
  EXAMPLE_SCRIPTS,
  EXAMPLES,
  exampleFiles,
  linesOf,
  SCRIPT_ENTRIES,
  expectedLinesOf,
  type Example,
} from "../examples";
import type { Files } from "../project";
import { installNode, OTHER_NODES } from "./nodes";
import { HOSTS, makeHosted, withTypeCheck } from "./project";
import { inMatrixSerially, outsideMatrix } from "../../support/suites";

const FILES = exampleFiles("mts", "mts");

function entryOf(example: Example): string {
  return example === "reentrant" ? "reentrant/reentrant.mts" : "order-controller/main.mts";
}

for (const example of EXAMPLES) {
  inMatrixSerially(`tsx: the example ${example} behaves as when compiled by tspc`, async (t) => {
    const project = await makeHosted(FILES);
    const { stdout, stderr } = await project.run(...HOSTS.tsx, entryOf(example));
    t.deepEqual(linesOf(stdout), await expectedLinesOf(example), stderr);
  });
}

for (const host of ["ts-node", "ts-node with type check"] as const) {
  inMatrixSerially(`${host}: both examples behave as when compiled by tspc`, async (t) => {
    const mains = EXAMPLES.map((example) => [
      `${example}.ts`,
      `import { main } from "./${SCRIPT_ENTRIES[example]}";\nvoid main();\n`,
    ]);
    const files = { ...EXAMPLE_SCRIPTS, ...(Object.fromEntries(mains) as Files), "package.json": "{}" };
    const project = await makeHosted(files, { types: ["node"], lib: ["es2023"], rootDir: "." });
    if (host === "ts-node with type check") await withTypeCheck(project);
    for (const example of EXAMPLES) {
      const { stdout, stderr } = await project.run(...HOSTS[host], `${example}.ts`);
      t.deepEqual(linesOf(stdout), await expectedLinesOf(example), stderr);
    }
  });
}

outsideMatrix("tsx: an application without the hook does not start", async (t) => {
  const project = await makeHosted(FILES);
  const { code, stdout, stderr } = await project.run("--import", "tsx", entryOf("reentrant"));
  t.is(code, 1);
  t.is(stdout, "");
  t.regex(stderr, /LOCK_NOT_WOVEN/);
});

for (const version of OTHER_NODES) {
  test.serial(`Node ${version}: both examples behave as when compiled by tspc`, async (t) => {
    const node = await installNode(version);
    const project = await makeHosted(FILES);
    for (const example of EXAMPLES) {
      const { stdout, stderr } = await project.runWith(node, ...HOSTS.Node, entryOf(example));
      t.deepEqual(linesOf(stdout), await expectedLinesOf(example), stderr);
    }
  });
}
