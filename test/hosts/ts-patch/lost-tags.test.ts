import test from "ava";
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

test("a tag that another program transformer keeps is woven", async (t) => {
  const project = await withOther(true);
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.regex(await project.read("out/pay.js"), /lockweave\.acquire\(/);
  t.like(await lockweave(project, "check"), { code: 0 });
});
