import { existsSync } from "node:fs";
import { decode } from "@jridgewell/sourcemap-codec";
import test, { type ExecutionContext } from "ava";
import { EXAMPLES, linesOf, expectedLinesOf } from "../examples";
import type { Project } from "../project";
import { bundle, bundleOf, projectOf, runBundle, SAMPLED, TESTED, type Bundler } from "./bundlers";
import { recipe, unwoven } from "./recipes";
import { MISTAKES, ORDER, placeIn, RECEIPT, SOURCES, WRONG } from "./sources";

// The guarantees for each bundler, with its configuration from docs/compilers.md.

const projects = new Map<Bundler, Promise<Project>>();

/** Returns the project that a bundler has built. Builds it once for all tests. */
function builtBy(bundler: Bundler): Promise<Project> {
  const project = projects.get(bundler) ?? build(bundler);
  projects.set(bundler, project);
  return project;
}

async function build(bundler: Bundler): Promise<Project> {
  const project = await projectOf(bundler, SOURCES);
  const { code, stdout, stderr } = await bundle(project, bundler);
  if (code !== 0) throw new Error(stdout + stderr);
  await project.write({ "output.txt": stdout + stderr });
  return project;
}

for (const bundler of SAMPLED) {
  for (const example of EXAMPLES) {
    test(`${bundler.name}: the example ${example} behaves as when compiled by tspc`, async (t) => {
      const { stdout, stderr } = await runBundle(await builtBy(bundler), example);
      t.deepEqual(linesOf(stdout), await expectedLinesOf(example), stderr);
    });
  }
}

for (const bundler of TESTED) {
  const { name, place } = bundler;
  const built = (): Promise<Project> => builtBy(bundler);

  test(`${name}: a bundle runs under its locks, and its stack traces show source positions`, async (t) => {
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

  test(`${name}: the source map leads breakpoints in a locked body to the right code`, async (t) => {
    assertLeadsBack(t, await bundleOf(await built()));
  });

  test(`${name}: a suspicious tag is a build warning at its position`, async (t) => {
    const output = await (await built()).read("output.txt");
    t.true(output.includes("LW1111: `lockTime=5000` is 1.4 hours."), output);
    t.true(output.includes(place("src/receipt.ts", placeIn(RECEIPT, "5000"), "warning")), output);
  });

  test(`${name}: each invalid tag in a file is a build error at its position, and the bundle does not run`, async (t) => {
    const project = await projectOf(bundler, { ...SOURCES, "src/order.ts": WRONG });
    const { code, stdout, stderr } = await bundle(project, bundler);
    const output = stdout + stderr;
    t.not(code, 0);
    for (const [word, message] of Object.entries(MISTAKES)) {
      t.true(output.includes(message), output);
      t.true(output.includes(place("src/order.ts", placeIn(WRONG, word), "error")), `${word}: ${output}`);
    }
    if (existsSync(project.path("dist/main.js")))
      t.regex((await runBundle(project)).stderr, /LOCK_NOT_WOVEN/);
  });

  test(`${name}: a bundle built without the plugin does not start`, async (t) => {
    const project = await projectOf(bundler, SOURCES);
    const { file, text } = unwoven(recipe(name));
    await project.write({ [file]: text });
    t.like(await bundle(project, bundler), { code: 0 });
    t.regex((await runBundle(project)).stderr, /LOCK_NOT_WOVEN/);
  });
}

/** Code at which a debugger can stop. */
const STOPS = [
  "this.together ||=",
  "this.inside.add",
  "await new",
  "this.inside.delete",
  `if (orderNo === "none")`,
];

/** Asserts that the map leads each stop to the same code in the bundle, as a debugger looks it up. */
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
