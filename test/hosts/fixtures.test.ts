import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import ts from "typescript";
import { createTransformer } from "../../transformer/hosts/jest/transformer";
import type { Compiler } from "../../transformer/hosts/ts-patch/compiler";
import { weaveProgram } from "../../transformer/hosts/ts-patch/weave-program";
import { weaveFile } from "../../transformer/hosts/register/tagged-file";
import { makeProject, PACKAGE, type Project } from "./project";

// As the hosts get it that tell a file's module format by themselves. Those of bundlers are in bundlers/fixtures.test.ts.

const FIXTURES = join(PACKAGE, "test/fixtures/weave");

interface Fixture {
  readonly name: string;
  readonly input: string;
  readonly text: string;
  readonly woven: string;
}

const fixtures = readdirSync(FIXTURES).map((name): Fixture => {
  const input = readdirSync(join(FIXTURES, name)).find((file) => file.startsWith("input.")) ?? "";
  const read = (file: string): string => readFileSync(join(FIXTURES, name, file), "utf8");
  return { name, input, text: read(input), woven: read(input.replace("input", "woven")) };
});

const compiler = ts as unknown as Compiler; // It has more than it declares.

/** It hands on what it gets. */
const INNER = "exports.process = (code) => ({ code });\n";

async function projectOf(): Promise<Project> {
  const files = fixtures.map(({ name, input, text }) => [`src/${name}/${input}`, text] as const);
  return await makeProject({ ...Object.fromEntries(files), "inner.js": INNER, "package.json": "{}" });
}

test("tspc: the text of every fixture is the committed one", async (t) => {
  const project = await projectOf();
  const rootNames = fixtures.map(({ name, input }) => project.path(`src/${name}/${input}`));
  const options: ts.CompilerOptions = {
    allowJs: true,
    noLib: true,
    noResolve: true,
    types: [],
    module: ts.ModuleKind.NodeNext,
    jsx: ts.JsxEmit.Preserve,
  };
  await project.write({ "package.json": JSON.stringify({ type: "module" }) });
  const program = weaveProgram(
    ts.createProgram({ rootNames, options }),
    undefined,
    { transformProgram: true },
    { ts: compiler },
  );
  for (const { name, input, woven } of fixtures) {
    t.is(program.getSourceFile(project.path(`src/${name}/${input}`))?.text, woven, name);
  }
});

for (const [host, through] of Object.entries({
  "Node's hook": (_: Project, path: string) => weaveFile(path, undefined)?.code,
  Jest: ({ dir }: Project, path: string, text: string) =>
    createTransformer({ transformer: "./inner" }).process?.(text, path, {
      config: { rootDir: dir },
      configString: "",
      instrument: false,
    }).code,
})) {
  test(`${host}: the text of every fixture is the committed one`, async (t) => {
    const project = await projectOf();
    t.true(fixtures.length > 30);
    for (const { name, input, text, woven } of fixtures) {
      t.is(through(project, project.path(`src/${name}/${input}`), text), woven, name);
    }
  });
}
