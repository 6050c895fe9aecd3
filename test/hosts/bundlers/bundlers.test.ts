import { existsSync } from "node:fs";
import { decode } from "@jridgewell/sourcemap-codec";
import test, { type ExecutionContext } from "ava";
import { EXAMPLES, linesOf, storyOf } from "../examples";
import type { Project } from "../project";
import { bundle, bundleOf, projectOf, runBundle, TESTED, type Bundler } from "./bundlers";
import { recipe, unwoven } from "./recipes";
import { MISTAKES, ORDER, placeIn, RECEIPT, SOURCES, WRONG } from "./sources";

// What each bundler promises, with the configuration that docs/hosts.md shows for it.

/** Once for all tests of a bundler. */
function builder(bundler: Bundler): () => Promise<Project> {
  let built: Promise<Project> | undefined;
  const build = async (): Promise<Project> => {
    const project = await projectOf(bundler, SOURCES);
    const { code, stdout, stderr } = await bundle(project, bundler);
    if (code !== 0) throw new Error(stdout + stderr);
    await project.write({ "said.txt": stdout + stderr });
    return project;
  };
  return () => (built ??= build());
}

for (const bundler of TESTED) {
  const { name, place } = bundler;
  const built = builder(bundler);

  test(`${name}: what was built runs under its locks, and throws at the lines and columns of the sources`, async (t) => {
    const { stdout, stderr } = await runBundle(await built());
    const [results, ...stacks] = stdout.split("\n");
    t.is(results, "paid A1,paid A1 false", stderr);
    const at = (file: string, text: string, words: string): string => {
      const { line, column } = placeIn(text, words);
      return `src/${file}:${line}:${column}`;
    };
    const frames = stacks.flatMap((line) => /src\/(?:order|receipt)\.ts:\d+:\d+/.exec(line) ?? []);
    t.deepEqual(frames.slice(0, 2), [
      at("order.ts", ORDER, "new RangeError"),
      at("order.ts", ORDER, "refuse(orderNo) }"),
    ]);
    t.true(frames.includes(at("receipt.ts", RECEIPT, "new TypeError")), stdout);
  });

  test(`${name}: a breakpoint on a line of a locked body finds its way by the source map`, async (t) => {
    assertLeadsBack(t, await bundleOf(await built()));
  });

  test(`${name}: a tag that is likely to be a mistake is a warning of the build`, async (t) => {
    const said = await (await built()).read("said.txt");
    t.true(said.includes("LW1111: `lockTime=5000` is 1.4 hours."), said);
    t.true(said.includes(place("src/receipt.ts", placeIn(RECEIPT, "5000"), "warning")), said);
  });

  for (const example of EXAMPLES) {
    test(`${name}: the example ${example} does what it does when tspc has compiled it`, async (t) => {
      const { stdout, stderr } = await runBundle(await built(), example);
      t.deepEqual(linesOf(stdout), await storyOf(example), stderr);
    });
  }

  test(`${name}: each wrong tag of a file is an error of the build, at its words, and nothing runs`, async (t) => {
    const project = await projectOf(bundler, { ...SOURCES, "src/order.ts": WRONG });
    const { code, stdout, stderr } = await bundle(project, bundler);
    const said = stdout + stderr;
    t.not(code, 0);
    for (const [word, message] of Object.entries(MISTAKES)) {
      t.true(said.includes(message), said);
      t.true(said.includes(place("src/order.ts", placeIn(WRONG, word), "error")), `${word}: ${said}`);
    }
    if (existsSync(project.path("dist/main.js")))
      t.regex((await runBundle(project)).stderr, /LOCK_NOT_WOVEN/);
  });

  test(`${name}: what was built without the plugin does not start`, async (t) => {
    const project = await projectOf(bundler, SOURCES);
    const { file, text } = unwoven(recipe(name));
    await project.write({ [file]: text });
    t.like(await bundle(project, bundler), { code: 0 });
    t.regex((await runBundle(project)).stderr, /LOCK_NOT_WOVEN/);
  });
}

/** Words at which a debugger can stop. */
const STOPS = [
  "this.together ||=",
  "this.inside.add",
  "await new",
  "this.inside.delete",
  `if (orderNo === "none")`,
];

/** A debugger asks the map for the line, and stops at what it says of it. */
function assertLeadsBack(t: ExecutionContext, { code, map }: Awaited<ReturnType<typeof bundleOf>>): void {
  const lines = code.split("\n");
  const source = map.sources.findIndex((name) => /\border\.ts$/.test(name));
  t.is(map.sourcesContent?.[source], ORDER);
  const segments = decode(map.mappings).flatMap((line, index) =>
    line.flatMap((segment) => (segment.length > 1 && segment[1] === source ? [{ index, segment }] : [])),
  );
  for (const words of STOPS) {
    const { line, column } = placeIn(ORDER, words);
    const found = segments.filter(({ segment }) => segment[2] === line - 1 && segment[3] === column - 1);
    const there = found.map(({ index, segment }) =>
      (lines[index] ?? "").slice(segment[0]).trimStart().slice(0, 80),
    );
    const [word = ""] = /^\w+/.exec(words) ?? [];
    t.true(
      there.some((text) => text.startsWith(word)),
      `${words}: ${JSON.stringify(there)}`,
    );
  }
}
