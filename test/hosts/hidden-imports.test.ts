import test from "ava";
import ts from "typescript";
import { wovenProgram } from "../../transformer/hosts/ts-patch/weave-program";
import { makeProject, type Project } from "./project";

const FILES = {
  "src/main.ts": `import { configure, memoryStore } from "lockweave";\nconfigure({ store: memoryStore() });\n`,
  "src/order.ts": `/** @redisLock businessFlag=payOrder keyName=order.id */
export async function pay(order: { id: string }): Promise<void> {
  await Promise.resolve(order);
}
`,
  "src/receipt.ts": `export const receipt = "paid";\n`,
};

/** Creates programs as a watch does, which reuses the source files that did not change. */
function programs(project: Project): (oldProgram?: ts.Program) => { disk: ts.Program; woven: ts.Program } {
  const { config } = ts.readConfigFile(project.path("tsconfig.json"), (file) => ts.sys.readFile(file));
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, project.dir);
  const host = ts.createCompilerHost(options);
  const known = new Map<string, ts.SourceFile | undefined>();
  const { getSourceFile } = host;
  host.getSourceFile = (fileName, settings) => {
    const text = host.readFile(fileName);
    const found = known.get(fileName);
    if (found !== undefined && found.text === text) return found;
    const read = getSourceFile(fileName, settings);
    known.set(fileName, read);
    return read;
  };
  return (oldProgram) => {
    const before = oldProgram && { oldProgram };
    const disk = ts.createProgram({ rootNames: fileNames, options, host, ...before });
    return { disk, woven: wovenProgram(disk, host, { transformProgram: true }, { ts: ts as never }).woven };
  };
}

/** Returns whether the compiler reused the structure of an older program, by a member that its types do not declare. */
function isStructureReused(program: ts.Program): boolean {
  return (program as ts.Program & { readonly structureIsReused: number }).structureIsReused === 2;
}

function errorsIn(program: ts.Program): string[] {
  const found = [...program.getOptionsDiagnostics(), ...program.getSemanticDiagnostics()];
  return found.map(
    ({ code, messageText }) => `TS${code} ${ts.flattenDiagnosticMessageText(messageText, " ")}`,
  );
}

const NO_KEY = /^TS2345 Argument of type '\{ id: string; \}' is not assignable/;

test("a woven program and each watch rebuild reuse the program structure", async (t) => {
  const project = await makeProject(FILES);
  const build = programs(project);
  const first = build();
  t.true(isStructureReused(first.woven));
  t.deepEqual(errorsIn(first.woven), []);

  await project.write({ "src/receipt.ts": `export const receipt = "PAID";\n` });
  const second = build(first.woven);
  t.true(isStructureReused(second.disk));
  t.true(isStructureReused(second.woven));

  await project.write({ "src/order.ts": FILES["src/order.ts"].replace("order.id", "order") });
  const third = build(second.woven);
  t.true(isStructureReused(third.disk));
  t.true(isStructureReused(third.woven));
  const [error = "", ...others] = errorsIn(third.woven);
  t.regex(error, NO_KEY);
  t.deepEqual(others, []);
});

test("woven files resolve the runtime after the only other import is removed and added again", async (t) => {
  const tagged = FILES["src/order.ts"].replace("order.id", "order");
  const project = await makeProject({ ...FILES, "src/order.ts": tagged });
  const build = programs(project);
  const first = build();
  await project.write({ "src/main.ts": "export {};\n" });
  const second = build(first.woven);
  await project.write({ "src/main.ts": FILES["src/main.ts"] });
  const third = build(second.woven);
  for (const { woven } of [first, second, third]) {
    const [error = "", ...others] = errorsIn(woven);
    t.regex(error, NO_KEY);
    t.deepEqual(others, []);
  }
});
