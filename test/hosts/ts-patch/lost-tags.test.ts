import test from "ava";
import ts from "typescript";
import type { Compiler } from "../../../transformer/hosts/ts-patch/compiler";
import { refuseToEmit } from "../../../transformer/hosts/ts-patch/refuse-emit";
import { lockweave } from "../../cli/command";
import { makeProject, PLUGIN, type Project } from "../project";

// Another program transformer of ts-patch that passes its own text to the compiler.

const OTHER = String.raw`exports.default = (program, host, { keeps }, { ts }) => {
  const options = program.getCompilerOptions();
  const original = host ?? ts.createCompilerHost(options);
  const getSourceFile = (name, settings, ...rest) => {
    const found = original.getSourceFile(name, settings, ...rest);
    if (found === undefined || !name.endsWith("pay.ts")) return found;
    const text = keeps ? found.text + "// Seen.\n" : found.text.replace(/\/\*\*[^]*?\*\//, "");
    return Object.assign(ts.createSourceFile(name, text, settings), { version: found.version });
  };
  const changed = Object.assign(Object.create(original), { getSourceFile });
  return (ts.originalCreateProgram ?? ts.createProgram)({ rootNames: program.getRootFileNames(), options, host: changed });
};
`;

const PAY = `/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> {
  return id;
}
`;

async function withOther(keeps: boolean, settings: object = {}): Promise<Project> {
  const other = { transform: "./other.cjs", transformProgram: true, keeps };
  return await makeProject(
    { "other.cjs": OTHER, "src/pay.ts": PAY },
    { plugins: [other, PLUGIN], ...settings },
  );
}

for (const settings of [{}, { incremental: true }, { noCheck: true }]) {
  test(`a tag that another program transformer removes is a build error with ${JSON.stringify(settings)}`, async (t) => {
    const project = await withOther(false, settings);
    for (const _ of ["first build", "second build"]) {
      const { code, stdout } = await project.tspc();
      t.is(code, 2, stdout);
      t.regex(
        stdout,
        /^src\/pay\.ts\(1,5\): error TS901404: LW1404: `pay` would run without its lock\. Another plugin .* Fix: /,
      );
    }
  });
}

test("a @needsLock that another program transformer removes is a build error about its check", async (t) => {
  const project = await withOther(false);
  await project.write({ "src/pay.ts": PAY.replace("redisLock", "needsLock") });
  const { code, stdout } = await project.tspc();
  t.is(code, 2, stdout);
  t.regex(stdout, /LW1404: `pay` would run without the check of its `@needsLock`\. Another plugin .* Fix: /);
});

test("a program that no compiler made refuses to emit a file with a tag of either kind", (t) => {
  for (const [tag, lost] of [
    ["redisLock", "its lock"],
    ["needsLock", "the check of its `@needsLock`"],
  ]) {
    const text = PAY.replace("redisLock", tag ?? "");
    const file = ts.createSourceFile("/pay.ts", text, ts.ScriptTarget.ESNext);
    const host: ts.CompilerHost = {
      ...ts.createCompilerHost({}),
      getSourceFile: (name) => (name === "/pay.ts" ? file : undefined),
      writeFile: () => t.fail(),
    };
    const program = ts.createProgram({ rootNames: ["/pay.ts"], options: { noLib: true, types: [] }, host });
    refuseToEmit(ts as Compiler, program, new Map(), undefined);
    const error = t.throws(() => program.emit());
    t.true(error.message.includes(`LW1407: \`pay\` would run without ${lost}. `), error.message);
  }
});

test("a tag that another program transformer keeps is woven", async (t) => {
  const project = await withOther(true);
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.regex(await project.read("out/pay.js"), /lockweave\.acquire\(/);
  t.like(await lockweave(project, "check"), { code: 0 });
});
