import test from "ava";
import { buildNative } from "../../../transformer/hosts/native/build";
import type { NativeCompiler } from "../../../transformer/hosts/native/compiler";
import { printed } from "../../../transformer/hosts/native/diagnostics";
import { openNativeProject } from "../../../transformer/hosts/native/project";
import { parser } from "../../../transformer/parser/parser";
import { makeProject, type Files, type Project } from "../project";

// What becomes of what a compiler says, whatever the compiler: this one says what it is told to. That the real one is
// understood is told in build.test.ts.

interface Ran {
  readonly code: number;
  readonly output: string;
}

interface Said {
  readonly options?: object;
  readonly ofOriginals?: Ran;
  /** Of the woven texts. */
  readonly ofMirror?: Ran;
}

const NOTHING: Ran = { code: 0, output: "" };

function compilerOf(project: Project, files: Files, said: Said): NativeCompiler {
  const { options = {}, ofOriginals = NOTHING, ofMirror = NOTHING } = said;
  const sources = Object.keys(files).filter((file) => file.endsWith(".ts"));
  return {
    version: "7.0.0",
    run(args) {
      const shown = { compilerOptions: options, files: sources };
      if (args.includes("--showConfig")) return { code: 0, output: JSON.stringify(shown) };
      if (args.includes("--listFilesOnly")) return { code: 0, output: sources.join("\n") };
      return args[1] === project.path("tsconfig.json") ? ofOriginals : ofMirror;
    },
  };
}

async function built(files: Files, said: Said = {}): Promise<{ code: number; said: string; warned: string }> {
  const project = await makeProject(files);
  const compiler = compilerOf(project, files, said);
  const found = buildNative(parser(), compiler, project.path("tsconfig.json"), project.dir);
  const shown = (all: typeof found.said): string => all.map((one) => printed(one, project.dir)).join("");
  return { code: found.code, said: shown(found.said), warned: shown(found.warnings) };
}

const PAY = `/** @redisLock businessFlag=pay */
export async function pay(): Promise<void> {
  // @ts-ignore
  const silenced = 1;
  const unused = 1;
}
`;

test("a build fails where the compiler does without a word about a place", async (t) => {
  const crashed = { code: 2, output: "panic: runtime error" };
  t.is((await built({ "src/a.ts": PAY }, { ofOriginals: crashed, ofMirror: crashed })).code, 2);
  t.is((await built({ "src/a.ts": PAY }, { ofMirror: crashed })).code, 2);
  t.is((await built({ "src/a.ts": PAY })).code, 0);
});

test("the exit code tells, as the compiler's, whether something was written in spite of errors", async (t) => {
  const ofOriginals = { code: 2, output: "src/a.ts(5,9): error TS2322: No number." };
  for (const [options, code] of [
    [{}, 2],
    [{ noEmit: true }, 1],
    [{ noEmitOnError: true }, 1],
  ] as const) {
    t.is((await built({ "src/a.ts": PAY }, { options, ofOriginals })).code, code, JSON.stringify(options));
  }
});

test("what a comment silences stays silent although the same is said of another place", async (t) => {
  const unused = "src/a.ts(5,9): error TS6133: 'unused' is declared but never used.\n";
  const silenced = "src/a.ts(4,9): error TS6133: 'silenced' is declared but never used.\n";
  const { said } = await built(
    { "src/a.ts": PAY },
    { ofOriginals: { code: 2, output: unused }, ofMirror: { code: 2, output: silenced + unused } },
  );
  t.is(said, unused);
});

test("what is likely to be a mistake is told as a warning, and fails nothing", async (t) => {
  const { code, said, warned } = await built({ "src/a.ts": PAY.replace(" */", " lockTime=30000 */") });
  t.deepEqual({ code, said }, { code: 0, said: "" });
  t.regex(warned, /^src\/a\.ts\(1,42\): warning TS90\d{4}: LW\d{4}: .*lockTime.*\n$/);
});

test("declarations without their comments are held against the sources that they come from", async (t) => {
  const library = {
    "lib/pay.d.ts": "export declare function pay(): Promise<void>;\n//# sourceMappingURL=pay.d.ts.map",
    "lib/pay.d.ts.map": JSON.stringify({ version: 3, sources: ["pay.source"], mappings: "" }),
    "lib/pay.source": PAY,
    "lib/pay.js": "export async function pay() {}\n",
  };
  const { code, said } = await built(library);
  t.is(code, 2);
  t.regex(said, /^error TS90\d{4}: LW\d{4}: .*`pay`.*pay\.js/);
});

async function woven(files: Files, options: object): Promise<string> {
  const project = await makeProject({ ...files, "src/a.ts": PAY });
  const compiler = compilerOf(project, { "src/a.ts": PAY }, { options });
  const config = project.path("tsconfig.json");
  const opened = openNativeProject(parser(), compiler, config, project.dir);
  return opened.woven.get(project.path("src/a.ts"))?.woven.code ?? "";
}

test("the nearest package.json says how a file of Node takes in the runtime", async (t) => {
  const options = { module: "nodenext" };
  t.regex(
    await woven({ "package.json": `{ "type": "module" }` }, options),
    / import \* as lockweave from "lockweave\/runtime";$/m,
  );
  t.regex(
    await woven({ "package.json": `{}` }, options),
    / import lockweave = require\("lockweave\/runtime"\);$/m,
  );
  t.regex(
    await woven({ "package.json": `{}`, "src/package.json": `{ "type": "module" }` }, options),
    / import \* as lockweave from "lockweave\/runtime";$/m,
  );
});

test("of two entries of the plugin the defaults of the first count", async (t) => {
  const plugin = (lockTime: string): object => ({ transform: "lockweave", defaults: { lockTime } });
  const plugins = [plugin("11s"), plugin("22s")];
  const code = await woven({ "tsconfig.json": JSON.stringify({ compilerOptions: { plugins } }) }, {});
  t.regex(code, /lockTime: "11s"/);
});
