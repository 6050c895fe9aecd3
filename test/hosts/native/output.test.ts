import { existsSync } from "node:fs";
import test from "ava";
import { buildNative } from "../../../transformer/hosts/native/build";
import type { NativeCompiler } from "../../../transformer/hosts/native/compiler";
import { printed } from "../../../transformer/hosts/native/compiler-output";
import { openNativeProject } from "../../../transformer/hosts/native/project";
import { parser } from "../../../transformer/parser/parser";
import { makeProject, type Files, type Project } from "../project";

// A build reads the compiler's output. The compiler here is a stand-in whose output each test sets. build.test.ts
// tests the real one.

interface Ran {
  readonly code: number;
  readonly output: string;
}

interface Said {
  readonly options?: object;
  readonly ofOriginals?: Ran;
  /** The compiler's run on the woven texts. */
  readonly ofMirror?: Ran;
}

const NOTHING: Ran = { code: 0, output: "" };

function compilerOf(
  project: Project,
  files: Files,
  said: Said,
  runs: (readonly string[])[] = [],
): NativeCompiler {
  const { options = {}, ofOriginals = NOTHING, ofMirror = NOTHING } = said;
  const sources = Object.keys(files).filter((file) => /\.[cm]?ts$/.test(file));
  return {
    version: "7.0.0",
    run(args) {
      runs.push(args);
      const shown = { compilerOptions: options, files: sources };
      if (args.includes("--showConfig")) return { code: 0, output: JSON.stringify(shown) };
      if (args.includes("--listFilesOnly")) return { code: 0, output: sources.join("\n") };
      return args[1] === project.path("tsconfig.json") ? ofOriginals : ofMirror;
    },
  };
}

interface BuildResult {
  readonly code: number;
  readonly said: string;
  readonly warned: string;
  /** The arguments of each run of the compiler. */
  readonly runs: readonly (readonly string[])[];
}

async function built(files: Files, said: Said = {}): Promise<BuildResult> {
  const project = await makeProject(files);
  const runs: (readonly string[])[] = [];
  const compiler = compilerOf(project, files, said, runs);
  const found = buildNative(parser(), compiler, project.path("tsconfig.json"), project.dir);
  const shown = (all: typeof found.diagnostics): string =>
    all.map((one) => `${printed(one, project.dir)}\n`).join("");
  return { code: found.code, said: shown(found.diagnostics), warned: shown(found.warnings), runs };
}

const PAY = `/** @redisLock businessFlag=pay */
export async function pay(): Promise<void> {
  // @ts-ignore
  const silenced = 1;
  const unused = 1;
}
`;

test("the build fails if the compiler fails without an error at a position", async (t) => {
  const crashed = { code: 2, output: "panic: runtime error" };
  t.is((await built({ "src/a.ts": PAY }, { ofOriginals: crashed, ofMirror: crashed })).code, 2);
  t.is((await built({ "src/a.ts": PAY }, { ofMirror: crashed })).code, 2);
  t.is((await built({ "src/a.ts": PAY })).code, 0);
});

test("the exit code says whether output was written despite errors, as the compiler's does", async (t) => {
  const ofOriginals = { code: 2, output: "src/a.ts(5,9): error TS2322: No number." };
  for (const [options, code] of [
    [{}, 2],
    [{ noEmit: true }, 1],
    [{ noEmitOnError: true }, 1],
  ] as const) {
    t.is((await built({ "src/a.ts": PAY }, { options, ofOriginals })).code, code, JSON.stringify(options));
  }
});

test("an error that a comment suppresses stays suppressed if the same error occurs elsewhere", async (t) => {
  const unused = "src/a.ts(5,9): error TS6133: 'unused' is declared but never used.\n";
  const silenced = "src/a.ts(4,9): error TS6133: 'silenced' is declared but never used.\n";
  const { said } = await built(
    { "src/a.ts": PAY },
    { ofOriginals: { code: 2, output: unused }, ofMirror: { code: 2, output: silenced + unused } },
  );
  t.is(said, unused);
});

for (const [code, what] of [
  ["TS6133", "'OrderBusy' is declared but its value is never read."],
  ["TS6138", "Property 'region' is declared but its value is never read."],
  ["TS6192", "All imports in import declaration are unused."],
  ["TS6196", "'OrderBusy' is declared but never used."],
  ["TS6198", "All destructured elements are unused."],
  ["TS6199", "All variables are unused."],
  ["TS6205", "All type parameters are unused."],
] as const) {
  test(`${code} in a tagged file is reported only if the woven text also has it`, async (t) => {
    const ofOriginals = { code: 2, output: `src/a.ts(2,1): error ${code}: ${what}\n` };
    t.like(await built({ "src/a.ts": PAY }, { ofOriginals }), { code: 0, said: "" });
    t.is((await built({ "src/a.ts": PAY }, { ofOriginals, ofMirror: ofOriginals })).said, ofOriginals.output);
    const elsewhere = { code: 2, output: `src/b.ts(2,1): error ${code}: ${what}\n` };
    t.is((await built({ "src/a.ts": PAY }, { ofOriginals: elsewhere })).said, elsewhere.output);
  });
}

test("an error without a file is reported once, whether from the originals, the woven texts, or both", async (t) => {
  const ofNone = { code: 2, output: "error TS5011: The common source directory is elsewhere.\n" };
  for (const said of [
    { ofOriginals: ofNone },
    { ofMirror: ofNone },
    { ofOriginals: ofNone, ofMirror: ofNone },
  ]) {
    t.is((await built({ "src/a.ts": PAY }, said)).said, ofNone.output, JSON.stringify(said));
  }
});

test("errors in tags and errors of the compiler are in the order of the files", async (t) => {
  const error = (file: string): string => `src/${file}.ts(9,1): error TS2322: No number.\n`;
  const { said } = await built(
    { "src/a.ts": "", "src/b.ts": PAY.replace(" */", " keyName=no */"), "src/c.ts": "" },
    { ofOriginals: { code: 2, output: error("a") + error("c") } },
  );
  const [first, second, third, ...others] = said.split(/(?<=\n)/);
  t.deepEqual([first, third, others], [error("a"), error("c"), []]);
  t.regex(second ?? "", /^src\/b\.ts\(1,41\): error TS901202:/);
});

test("declarations are emitted if requested, except for an invalid tag with noEmitOnError", async (t) => {
  const wrong = PAY.replace(" */", " keyName=no */");
  for (const [options, text, words] of [
    [{ declaration: true }, PAY, "--emitDeclarationOnly"],
    [{ composite: true }, wrong, "--emitDeclarationOnly"],
    [{ declaration: true, noEmitOnError: true }, PAY, "--emitDeclarationOnly"],
    [{ declaration: true, noEmitOnError: true }, wrong, "--noEmit"],
    [{ declaration: true, noEmit: true }, PAY, "--noEmit"],
    [{}, PAY, "--noEmit"],
  ] as const) {
    const { runs } = await built({ "src/a.ts": text }, { options });
    t.true(runs.at(-1)?.includes(words), JSON.stringify(options));
  }
});

test("the build removes its temporary directory of woven texts", async (t) => {
  const { runs } = await built({ "src/a.ts": PAY });
  const config = runs.flat().find((word) => /lockweave-build-.*tsconfig\.json$/.test(word)) ?? "";
  const mirror = config.replace(/(?<=lockweave-build-\w+).*/, "");
  t.regex(mirror, /lockweave-build-/);
  t.false(existsSync(mirror));
});

test("a suspicious tag is a warning and does not fail the build", async (t) => {
  const { code, said, warned } = await built({ "src/a.ts": PAY.replace(" */", " lockTime=30000 */") });
  t.deepEqual({ code, said }, { code: 0, said: "" });
  t.regex(warned, /^src\/a\.ts\(1,42\): warning TS90\d{4}: LW\d{4}: .*lockTime.*\n$/);
});

const UNLOCKED_LIBRARY = {
  "lib/pay.d.ts": "export declare function pay(): Promise<void>;\n//# sourceMappingURL=pay.d.ts.map",
  "lib/pay.d.ts.map": JSON.stringify({ version: 3, sources: ["pay.source"], mappings: "" }),
  "lib/pay.source": PAY.replace("businessFlag=pay", "businessFlag=orders"),
  "lib/pay.js": "export async function pay() {}\n",
};

test("declarations without comments are checked against the sources in their declaration maps", async (t) => {
  const { code, said } = await built(UNLOCKED_LIBRARY);
  t.is(code, 2);
  t.regex(said, /^error TS90\d{4}: LW\d{4}: .*`pay`.*pay\.js/);
});

test("unlocked output of a referenced project is not reported, but other unlocked output is", async (t) => {
  const config = { references: [{ path: "./lib" }] };
  const project = { "tsconfig.json": JSON.stringify(config), "lib/tsconfig.json": "{}", ...UNLOCKED_LIBRARY };
  t.is((await built(project)).said, "");
  const otherLibrary = Object.entries(UNLOCKED_LIBRARY).map(([file, text]) => [
    file.replace("lib", "other"),
    text,
  ]);
  const { said } = await built({ ...project, ...(Object.fromEntries(otherLibrary) as Files) });
  t.regex(said, /^error TS90\d{4}: LW\d{4}: .*`pay`.*\n$/);
});

async function woven(files: Files, options: object, file = "src/a.ts", text = PAY): Promise<string> {
  const project = await makeProject({ ...files, [file]: text });
  const compiler = compilerOf(project, { [file]: text }, { options });
  const config = project.path("tsconfig.json");
  const opened = openNativeProject(parser(), compiler, config, project.dir);
  return opened.woven.get(project.path(file))?.woven.code ?? "";
}

test("with module nodenext, the nearest package.json determines how a file loads the runtime", async (t) => {
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

test("the extensions .mts and .cts take precedence over package.json", async (t) => {
  const options = { module: "node20" };
  const manifest = (type: string): Files => ({ "package.json": JSON.stringify({ type }) });
  t.regex(await woven(manifest("commonjs"), options, "src/a.mts"), / import \* as lockweave from /);
  t.regex(await woven(manifest("module"), options, "src/a.cts"), / import lockweave = require\(/);
});

test("with module CommonJS, an .mts file is still an ES module", async (t) => {
  const options = { module: "CommonJS" };
  t.regex(await woven({}, options, "src/a.mts"), / import \* as lockweave from /);
  for (const file of ["src/a.ts", "src/a.cts"]) {
    t.regex(await woven({}, options, file), / import lockweave = require\(/, file);
  }
});

test("with module preserve, the syntax of a file determines how it loads the runtime", async (t) => {
  const asScript = `import path = require("node:path");\n${PAY}void path;\n`;
  for (const file of ["src/a.ts", "src/a.cts"]) {
    t.regex(await woven({}, { module: "preserve" }, file), /\bimport \* as lockweave from /, file);
    t.regex(await woven({}, { module: "preserve" }, file, asScript), /\bimport lockweave = require\(/, file);
    t.regex(await woven({}, { module: "esnext" }, file, asScript), /\bimport \* as lockweave from /, file);
  }
});

test("with erasableSyntaxOnly, CommonJS loads the runtime without `import x = require()`", async (t) => {
  const options = { module: "commonjs", erasableSyntaxOnly: true };
  t.regex(await woven({}, options), / import \* as lockweave from /);
  t.regex(await woven({}, { ...options, verbatimModuleSyntax: true }), / const lockweave: .* = require\(/);
});

test("the first of two plugin entries sets the defaults", async (t) => {
  const plugin = (lockTime: string): object => ({ transform: "lockweave", defaults: { lockTime } });
  const plugins = [plugin("11s"), plugin("22s")];
  const code = await woven({ "tsconfig.json": JSON.stringify({ compilerOptions: { plugins } }) }, {});
  t.regex(code, /lockTime: "11s"/);
});
