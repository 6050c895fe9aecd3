import test from "ava";
import { EXAMPLES, exampleFiles, linesOf, storyOf, type Example } from "../examples";
import { installNode, OTHER_NODES } from "./nodes";
import { HOSTS, makeHosted } from "./project";

const FILES = exampleFiles("mts", "mts");

function entryOf(example: Example): string {
  return example === "reentrant" ? "reentrant/reentrant.mts" : "order-controller/main.mts";
}

for (const example of EXAMPLES) {
  test(`tsx: the example ${example} does what it does when tspc has compiled it`, async (t) => {
    const project = await makeHosted(FILES);
    const { stdout, stderr } = await project.run(...HOSTS.tsx, entryOf(example));
    t.deepEqual(linesOf(stdout), await storyOf(example), stderr);
  });
}

test("tsx: without the hook nothing starts", async (t) => {
  const project = await makeHosted(FILES);
  const { code, stdout, stderr } = await project.run("--import", "tsx", entryOf("reentrant"));
  t.is(code, 1);
  t.is(stdout, "");
  t.regex(stderr, /LOCK_NOT_WOVEN/);
});

for (const version of OTHER_NODES) {
  test.serial(`Node ${version}: both examples do what they do when tspc has compiled them`, async (t) => {
    const node = await installNode(version);
    const project = await makeHosted(FILES);
    for (const example of EXAMPLES) {
      const { stdout, stderr } = await project.runWith(node, ...HOSTS.Node, entryOf(example));
      t.deepEqual(linesOf(stdout), await storyOf(example), stderr);
    }
  });
}
