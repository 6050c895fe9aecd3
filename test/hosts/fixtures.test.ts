import test from "ava";
import ts from "typescript";
import { createTransformer } from "../../transformer/hosts/jest/transformer";
import type { Compiler } from "../../transformer/hosts/ts-patch/compiler";
import { wovenProgram } from "../../transformer/hosts/ts-patch/weave-program";
import { weaveFile } from "../../transformer/hosts/register/tagged-file";
import { lockweave } from "../cli/command";
import { linkTypeScript7 } from "../cli/tools";
import { fixtureProject, fixtures, outputOf } from "./fixtures";
import { tsconfig, type Project } from "./project";

// Hosts that determine a file's module format themselves. bundlers/fixtures.test.ts tests the bundlers.

const compiler = ts as unknown as Compiler; // It has more members than its types declare.

test("tspc: weaves every fixture to its committed text", async (t) => {
  const project = await fixtureProject();
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
  const { woven: program } = wovenProgram(
    ts.createProgram({ rootNames, options }),
    undefined,
    { transformProgram: true },
    { ts: compiler },
  );
  for (const { name, input, woven } of fixtures) {
    t.is(program.getSourceFile(project.path(`src/${name}/${input}`))?.text, woven, name);
  }
});

test("TypeScript 7: emits the same output for every fixture as for its committed woven text", async (t) => {
  const [given, committed] = [await fixtureProject(), await fixtureProject()];
  await committed.write(
    Object.fromEntries(fixtures.map(({ name, input, woven }) => [`src/${name}/${input}`, woven])),
  );
  for (const project of [given, committed]) {
    await linkTypeScript7(project);
    await project.write({
      "package.json": JSON.stringify({ type: "module" }),
      "tsconfig.json": tsconfig({ allowJs: true, jsx: "preserve", plugins: undefined }),
    });
  }
  // Both report errors, since the modules that the fixtures import do not exist.
  await lockweave(given, "build");
  await committed.run("node_modules/typescript/bin/tsc");
  for (const fixture of fixtures) {
    t.is(await given.read(outputOf(fixture)), await committed.read(outputOf(fixture)), fixture.name);
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
  test(`${host}: weaves every fixture to its committed text`, async (t) => {
    const project = await fixtureProject();
    t.true(fixtures.length > 30);
    for (const { name, input, text, woven } of fixtures) {
      t.is(through(project, project.path(`src/${name}/${input}`), text), woven, name);
    }
  });
}
