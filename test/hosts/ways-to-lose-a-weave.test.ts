import { join } from "node:path";
import { type ExecutionContext } from "ava";
import { lockweave } from "../cli/command";
import { runTool, TYPESCRIPT_7 } from "../cli/tools";
import { makeProject, tsconfig, type Files, type Finished, type Project, type Settings } from "./project";
import { inMatrix } from "../support/suites";

// Ways to lose a weave. Each is built with the real compilers and runs without a lock. Each is reported by the compiler,
// by `lockweave check`, when the application starts, or by `assertWoven()` in a unit test. The ways of one table share
// their builds.

/** The result of two parallel calls: `together` if both were in the body, `apart` if not, or the error code. */
type Calls = Readonly<Record<string, string>>;

/** Returns the most callers that were inside at the same time with this id. */
const WORK = `const inside = new Map<string, number>();
async function work(id: string): Promise<number> {
  inside.set(id, (inside.get(id) ?? 0) + 1);
  let together = 0;
  for (let turn = 0; turn < 100; turn += 1) {
    await null;
    together = Math.max(together, inside.get(id) ?? 0);
  }
  inside.set(id, (inside.get(id) ?? 0) - 1);
  return together;
}
`;
const FUNCTION = "export async function pay(id: string): Promise<number> { return work(id); }";
const TAG = "/** @redisLock businessFlag=pay keyName=id */";
const PAY = `${WORK}${TAG}\n${FUNCTION}\n`;
/** The line of the tag. */
const TAG_LINE = PAY.split("\n").indexOf(TAG) + 1;
const MAIN = `import { configure, memoryStore } from "lockweave";
import { pay } from "./pay.js";
configure({ store: memoryStore() });
export { pay };
`;

/** Calls `pay` of each module twice in parallel, in an application configured with `woven: false`. */
const TWICE = `import { createRequire } from "node:module";
import { configure, memoryStore } from "lockweave";
const require = createRequire(import.meta.url);
configure({ store: memoryStore(), woven: false });
const calls = {};
for (const module of process.argv.slice(2)) {
  let pay;
  try {
    ({ pay } = module.endsWith(".cts") ? require("./" + module) : await import("./" + module));
  } catch (error) {
    calls[module] = error.message;
    continue;
  }
  const call = async () => pay(module);
  const settled = await Promise.allSettled([call(), call()]);
  const error = settled.find(({ status }) => status === "rejected")?.reason;
  const most = Math.max(...settled.map(({ value }) => value));
  calls[module] = error?.code ?? error?.message ?? (most === 1 ? "apart" : "together");
}
console.log(JSON.stringify(calls));
`;

/** Starts each module as an application without `woven: false`. */
const STARTS = `import { createRequire } from "node:module";
import { shutdown } from "lockweave";
const require = createRequire(import.meta.url);
const starts = {};
for (const module of process.argv.slice(2)) {
  try {
    if (module.endsWith(".cts")) require("./" + module);
    else await import("./" + module);
    starts[module] = "starts";
  } catch (error) {
    starts[module] = error.code ?? error.message;
  }
  await shutdown();
}
console.log(JSON.stringify(starts));
`;

/** Prints the result of `assertWoven()` for `pay` of each module. */
const ASSERTS = `import { assertWoven } from "lockweave";
const told = {};
for (const module of process.argv.slice(2)) {
  const { pay } = await import("./" + module);
  try { told[module] = assertWoven(pay) ?? "woven"; } catch (error) { told[module] = error.code; }
}
console.log(JSON.stringify(told));
`;

const SCRIPTS: Files = { "twice.js": TWICE, "starts.js": STARTS, "asserts.js": ASSERTS };

/** Runs one of the scripts. Returns the results that it prints. */
async function scripted(project: Project, ...args: readonly string[]): Promise<Calls> {
  const { code, stdout, stderr } = await project.run(...args);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as Calls;
}

/** Throws unless the build succeeds without output. */
async function silent(build: Promise<Finished>): Promise<void> {
  const { code, stdout, stderr } = await build;
  if (code !== 0 || stdout + stderr !== "") throw new Error(`exit ${code}: ${stdout}${stderr}`);
}

/** Shares one build among all ways of a table. */
function once<T>(build: () => Promise<T>): () => Promise<T> {
  let built: Promise<T> | undefined;
  return () => (built ??= build());
}

/** Returns the lines of the output that begin with the position. */
function linesAt(place: string, output: string): string {
  return output
    .split("\n")
    .filter((line) => line.startsWith(place))
    .join("\n");
}

let ways = 0;

/** Registers the test of one way. */
function way(title: string, run: (t: ExecutionContext) => Promise<void>): void {
  ways += 1;
  inMatrix(title, (t) => {
    t.timeout(300_000); // Many tests wait for one build.
    return run(t);
  });
}

// ---- tags that lock nothing -----------------------------------------------------------------------------

interface Miswritten {
  readonly source: string;
  /** The error code that the compiler and the check report. */
  readonly code: string;
  /** Set if the file has no tagged function that could refuse to run. */
  readonly isElsewhere?: true;
}

const PLAIN = FUNCTION.replace("export ", "");

const MISWRITTEN: Readonly<Record<string, Miswritten>> = {
  "a missing letter": { code: "LW1007", source: `/** @redisLok businessFlag=f */\n${FUNCTION}` },
  "a plural in capitals": { code: "LW1007", source: `/** @RedisLocks businessFlag=f */\n${FUNCTION}` },
  "two words": { code: "LW1007", source: `/** @redis lock businessFlag=f */\n${FUNCTION}` },
  "a dot in the name": { code: "LW1007", source: `/** @redis.lock businessFlag=f */\n${FUNCTION}` },
  "another name with lock attributes": {
    code: "LW1007",
    source: `/** @lock businessFlag=f lockTime=20 */\n${FUNCTION}`,
  },
  "a missing @": { code: "LW1007", source: `/**\n * redisLock businessFlag=f\n */\n${FUNCTION}` },
  "braces around it": { code: "LW1009", source: `/** {@redisLock businessFlag=f} */\n${FUNCTION}` },
  "another tag before it": {
    code: "LW1009",
    source: `/** @see foo @redisLock businessFlag=f */\n${FUNCTION}`,
  },
  "a line comment": { code: "LW1008", source: `// @redisLock businessFlag=f\n${FUNCTION}` },
  "a plain comment": { code: "LW1008", source: `/* @redisLock businessFlag=f */\n${FUNCTION}` },
  parentheses: { code: "LW1011", source: `/** @redisLock(businessFlag=f) */\n${FUNCTION}` },
  "an unknown parameter": {
    code: "LW1202",
    source: `/** @redisLock businessFlag=f keyName=di */\n${FUNCTION}`,
  },
  "errors suppressed by `@ts-nocheck` and `@ts-ignore`": {
    code: "LW1002",
    source: `// @ts-nocheck\n// @ts-ignore\n/** @redisLock businessFlag=f lockTme=20 */\n${FUNCTION}`,
  },
  "a function without a declared promise": {
    code: "LW1302",
    source: `/** @redisLock businessFlag=f */\nexport function pay(id: string) { return work(id); }`,
  },
  "an overload signature": {
    code: "LW1305",
    source: `/** @redisLock businessFlag=f */\nexport async function pay(id: string): Promise<number>;\n${FUNCTION.replace(": string", ": unknown").replace("work(id)", "work(String(id))")}`,
  },
  "an interface": {
    code: "LW1305",
    source: `export interface Pays { /** @redisLock businessFlag=f */ pay(id: string): Promise<number> }\nexport const { pay }: Pays = { pay: work };`,
    isElsewhere: true,
  },
  "an abstract method": {
    code: "LW1305",
    source: `abstract class Base { /** @redisLock businessFlag=f */ abstract pay(id: string): Promise<number> }
class Paying extends Base { async pay(id: string) { return work(id); } }
export const { pay } = new Paying();`,
    isElsewhere: true,
  },
  "a class": {
    code: "LW1301",
    source: `/** @redisLock businessFlag=f */\nclass Paying { async pay(id: string) { return work(id); } }\nexport const { pay } = new Paying();`,
  },
  "an export without a declaration": {
    code: "LW1301",
    source: `/** @redisLock businessFlag=f */\nexport { pay };\n${PLAIN}`,
  },
  "a call that wraps a function": {
    code: "LW1301",
    source: `const retry = <F>(f: F) => f;\n/** @redisLock businessFlag=f */\nexport const pay = retry(inner);\n${PLAIN.replace("pay", "inner")}`,
  },
  "a property that names a function": {
    code: "LW1301",
    source: `const paying = { /** @redisLock businessFlag=f */ inner };\nexport const pay = paying.inner;\n${PLAIN.replace("pay", "inner")}`,
  },
  "two variables": {
    code: "LW1308",
    source: `/** @redisLock businessFlag=f */\nexport const pay = async (id: string) => work(id), ship = pay;`,
  },
  "a position after the name": {
    code: "LW1307",
    source: `class Paying { async pay /** @redisLock businessFlag=f */ (id: string) { return work(id); } }\nexport const { pay } = new Paying();`,
  },
  "a variable declared before its function": {
    code: "LW1301",
    source: `/** @redisLock businessFlag=f */\nlet later: (id: string) => Promise<number>;\nlater = async (id) => work(id);\nexport const pay = later;`,
    isElsewhere: true,
  },
};

const miswritten = once(async () => {
  const titles = Object.keys(MISWRITTEN);
  const sources: Files = Object.fromEntries(
    Object.values(MISWRITTEN).map(({ source }, index) => [`src/way${index}.ts`, `${WORK}${source}\n`]),
  );
  const project = await makeProject({ ...SCRIPTS, ...sources });
  await silent(project.tsc("--outDir", "plain"));
  const { code, stdout } = await project.tspc();
  const checked = await lockweave(project, "check");
  const modules = (dir: string): string[] => titles.map((_, index) => `${dir}/way${index}.js`);
  const calls = await scripted(project, "twice.js", ...modules("plain"), ...modules("out"));
  return {
    compiler: { code, output: stdout },
    compilerWithoutTypes: await project.tspc("--noCheck", "--incremental"),
    check: { code: checked.code, output: checked.stderr },
    of: (title: string) => {
      const index = titles.indexOf(title);
      return {
        file: `src/way${index}.ts`,
        unguarded: calls[`plain/way${index}.js`],
        woven: calls[`out/way${index}.js`],
      };
    },
  };
});

for (const [what, { code, isElsewhere = false }] of Object.entries(MISWRITTEN)) {
  const refusal = isElsewhere ? "the file refuses to load" : "the function refuses to run";
  way(`a tag lost by ${what} is an error in the compiler and the check, and ${refusal}`, async (t) => {
    const { compiler, check, of } = await miswritten();
    const { file, unguarded, woven } = of(what);
    t.is(unguarded, "together");
    t.deepEqual([compiler.code, check.code], [2, 1]);
    t.regex(linesAt(`${file}(`, compiler.output), new RegExp(`error TS90\\d+: ${code}: `));
    t.regex(linesAt(`${file}:`, check.output), new RegExp(`: ${code}: `));
    const refused = isElsewhere ? `: ${code}: .* The file refuses to run unlocked\\.$` : "^LOCK_NOT_WOVEN$";
    t.regex(woven ?? "", new RegExp(refused));
  });
}

way("a build without type checking reports the same tag errors", async (t) => {
  const { compiler, compilerWithoutTypes } = await miswritten();
  t.is(compilerWithoutTypes.code, 2);
  t.is(compilerWithoutTypes.stdout, compiler.output);
});

// ---- compilers that ignore the plugin -------------------------------------------------------------------

/** Functions that compile `src/NAME` into `out/NAME`. */
const COMPILERS: Readonly<Record<string, (project: Project, name: string) => Promise<unknown>>> = {
  "plain tsc": (project, name) => project.tsc("-p", `${name}.json`),
  "plain tsc -b followed by tspc -b": async (project, name) => {
    await project.tsc("-b", `${name}.json`);
    return project.tspc("-b", `${name}.json`); // TypeScript considers the project up to date.
  },
  "tspc with plugins that override the extended ones": (project, name) => project.tspc("-p", `${name}.json`),
  "TypeScript 7": (project, name) => project.run(join(TYPESCRIPT_7, "bin/tsc"), "-p", `${name}.json`),
  esbuild: (project, name) => runTool(project, "esbuild", `tool.buildSync(${JSON.stringify(filesOf(name))})`),
  "esbuild as a bundler": (project, name) =>
    runTool(
      project,
      "esbuild",
      `tool.buildSync(${JSON.stringify({ ...filesOf(name), bundle: true, minify: true, format: "esm", external: ["lockweave"] })})`,
    ),
  swc: (project, name) =>
    runTool(
      project,
      "@swc/core",
      `const jsc = { parser: { syntax: "typescript" }, target: "es2022" };
${writeOut(name, "tool.transformSync(text, { jsc }).code")}`,
    ),
  "Node's own type stripping": (project, name) =>
    // Node has this package built in.
    runTool(project, "amaro", writeOut(name, `tool.transformSync(text, { mode: "strip-only" }).code`)),
  "transpileModule(), as test runners call it": (project, name) =>
    project.run(
      "--eval",
      `const fs = require("node:fs"); const ts = require("typescript"); const compilerOptions = { module: ts.ModuleKind.ESNext };
${writeOut(name, "ts.transpileModule(text, { compilerOptions }).outputText")}`,
    ),
};
const NAMES = Object.keys(COMPILERS);
const nameOf = (compiler: string): string => `by${NAMES.indexOf(compiler)}`;

function filesOf(name: string): { entryPoints: string[]; outdir: string } {
  return { entryPoints: [`src/${name}/main.ts`, `src/${name}/pay.ts`], outdir: `out/${name}` };
}

function writeOut(name: string, code: string): string {
  return `fs.mkdirSync("out/${name}", { recursive: true });
for (const file of ["main", "pay"]) {
  const text = fs.readFileSync(\`src/${name}/\${file}.ts\`, "utf8");
  fs.writeFileSync(\`out/${name}/\${file}.js\`, ${code});
}`;
}

const compiledByOthers = once(async () => {
  const files = NAMES.flatMap((compiler) => {
    const name = nameOf(compiler);
    const settings: Settings = compiler.includes("-b") ? { composite: true } : { plugins: [] };
    const extended = { extends: "./tsconfig.json", include: [`src/${name}`], compilerOptions: settings };
    return [
      [`src/${name}/pay.ts`, PAY],
      [`src/${name}/main.ts`, MAIN],
      [`${name}.json`, JSON.stringify(extended)],
    ];
  });
  const project = await makeProject({ ...SCRIPTS, ...(Object.fromEntries(files) as Files) });
  for (const [compiler, compile] of Object.entries(COMPILERS)) await compile(project, nameOf(compiler));
  const modules = (file: string): string[] => NAMES.map((compiler) => `out/${nameOf(compiler)}/${file}.js`);
  return {
    check: await lockweave(project, "check"),
    checkOfOutput: await lockweave(project, "check", "--output", "out"),
    calls: await scripted(project, "twice.js", ...modules("pay")),
    starts: await scripted(project, "starts.js", ...modules("main")),
    asserts: await scripted(project, "asserts.js", ...modules("pay")),
  };
});

for (const compiler of NAMES) {
  way(`output of ${compiler} does not start, and fails the check and assertWoven()`, async (t) => {
    const { check, checkOfOutput, calls, starts, asserts } = await compiledByOthers();
    const name = nameOf(compiler);
    t.is(calls[`out/${name}/pay.js`], "together");
    t.is(starts[`out/${name}/main.js`], "LOCK_NOT_WOVEN");
    t.is(asserts[`out/${name}/pay.js`], "LOCK_NOT_WOVEN");
    const place = `src/${name}/pay.ts:${TAG_LINE}:5: Cannot verify the lock of \`pay\`: `;
    t.deepEqual([check.code, checkOfOutput.code], [1, 1]);
    t.is(linesAt(place, check.stderr), `${place}\`out/${name}/pay.js\` does not lock it.`);
    t.is(linesAt(place, checkOfOutput.stderr), `${place}\`out\` does not lock it.`);
    t.regex(check.stderr, /\n-> Compile with `tspc`\. Plain `tsc`, TypeScript 7, esbuild, swc,/);
    t.regex(
      checkOfOutput.stderr,
      /\n-> Build with Lockweave's plugin for your bundler, or compile with `tspc` and bundle/,
    );
  });
}

/** Hooks that run the sources without the weave. */
const RUNNERS: Readonly<Record<string, string>> = {
  "ts-node without ts-patch as its compiler": "ts-node/register",
  "ts-node in transpile-only mode": "ts-node/register/transpile-only",
};

const runByOthers = once(async () => {
  const project = await makeProject({
    ...SCRIPTS,
    "src/pay.cts": PAY,
    "src/main.cts": MAIN.replace(/.*pay.*\n/g, ""),
  });
  return await Promise.all(
    Object.values(RUNNERS).map(async (hook) => {
      const preload = `--require=${require.resolve(hook)}`;
      return {
        calls: await scripted(project, preload, "twice.js", "src/pay.cts"),
        starts: await scripted(project, preload, "starts.js", "src/main.cts"),
      };
    }),
  );
});

for (const [index, runner] of Object.keys(RUNNERS).entries()) {
  way(`code run by ${runner} does not start`, async (t) => {
    const found = (await runByOthers())[index];
    t.deepEqual(found, {
      calls: { "src/pay.cts": "together" },
      starts: { "src/main.cts": "LOCK_NOT_WOVEN" },
    });
  });
}

// ---- builds of several parts ----------------------------------------------------------------------------

const COMPOSITE: Settings = { composite: true, rootDir: ".", outDir: "out" };

/** The package of each way, which the application imports by its declarations. */
const PARTS: Readonly<Record<string, string>> = {
  "built by plain tsc": "plain",
  "edited and rebuilt by plain tsc": "edited",
  "whose tsconfig has no plugin": "unplugged",
  "installed as a package": "installed",
  "loaded by import()": "lazy",
  "re-exported by another package": "middle",
};
const WORKSPACE = ["plain", "edited", "unplugged"];
const VENDORS = ["installed", "lazy", "inner", "middle"];

function references(dir: string, names: readonly string[]): { path: string }[] {
  return names.map((name) => ({ path: `${dir}/${name}` }));
}

/** Returns the files of packages that each have their own project and their output in `node_modules`. */
function packages(names: readonly string[]): Files {
  const files = names.flatMap((name) => {
    const settings = { ...COMPOSITE, outDir: `../../node_modules/${name}` };
    return [
      [`packages/${name}/pay.ts`, name === "middle" ? `export { pay } from "inner";\n` : PAY],
      [
        `packages/${name}/tsconfig.json`,
        tsconfig(name === "unplugged" ? { ...settings, plugins: [] } : settings, {}),
      ],
      [
        `node_modules/${name}/package.json`,
        JSON.stringify({ name, version: "1.0.0", type: "module", exports: "./pay.js" }),
      ],
    ];
  });
  return Object.fromEntries(files) as Files;
}

const ofParts = once(async () => {
  const project = await makeProject({
    ...SCRIPTS,
    ...packages([...WORKSPACE, ...VENDORS, "woven"]),
    "tsconfig.json": JSON.stringify({
      files: [],
      references: [{ path: "app" }, ...references("packages", WORKSPACE)],
    }),
    "app/tsconfig.json": tsconfig(COMPOSITE, { references: references("../packages", WORKSPACE) }),
    "app/main.ts": `import { configure, memoryStore } from "lockweave";
${[...Object.values(PARTS), "woven"].map((name) => (name === "lazy" ? `void import("lazy");` : `import "${name}";`)).join("\n")}
configure({ store: memoryStore() });
`,
  });
  const dirs = (names: readonly string[]): string[] => names.map((name) => `packages/${name}`);
  await silent(project.tspc("-b", ...dirs(["woven", "edited", "unplugged"])));
  await project.write({ "packages/edited/pay.ts": PAY.replace("turn < 100", "turn < 99") });
  await silent(project.tsc("-b", ...dirs(["plain", "edited", ...VENDORS])));
  return {
    place: (name: string) => project.placeOf(`"${name}"`, "app/main.ts"),
    compiler: await project.tspc("-p", "app"),
    check: await lockweave(project, "check"),
    starts: await scripted(project, "starts.js", "app/out/main.js"),
    calls: await scripted(
      project,
      "twice.js",
      ...[...Object.values(PARTS), "woven"].map((name) => `node_modules/${name}/pay.js`),
    ),
  };
});

for (const [which, name] of Object.entries(PARTS)) {
  way(
    `a library ${which} is an error at the application's import, in the compiler and the check`,
    async (t) => {
      const { place, compiler, check, starts, calls } = await ofParts();
      t.deepEqual(starts, { "app/out/main.js": "starts" });
      t.is(calls[`node_modules/${name}/pay.js`], "together");
      t.deepEqual([compiler.code, check.code], [2, 1]);
      const at = await place(name);
      t.regex(
        linesAt(at, compiler.stdout),
        /error TS901403: LW1403: This imports `pay` with `@redisLock`, but `pay\.js` does not contain the lock\. /,
      );
      t.regex(
        check.stderr,
        WORKSPACE.includes(name)
          ? new RegExp(
              `^packages/${name}/pay\\.ts:${TAG_LINE}:5: Cannot verify the lock of \`pay\`: .* does not lock it\\.$`,
              "m",
            )
          : new RegExp(`^${at.replace(/\((\d+),(\d+)\)/, ":$1:$2")}: LW1403: `, "m"),
      );
    },
  );
}

inMatrix("a library built by tspc is not an error in the compiler or the check", async (t) => {
  const { place, compiler, check, calls } = await ofParts();
  t.is(calls["node_modules/woven/pay.js"], "apart");
  t.is(linesAt(await place("woven"), compiler.stdout), "");
  t.notRegex(check.stderr, /woven\/pay/);
});

// ---- after the build ------------------------------------------------------------------------------------

/** The change to each file after tspc has built the project, and the report of the check for that file. */
const LATER: Readonly<
  Record<string, readonly [does: (project: Project, file: string) => Promise<void>, RegExp]>
> = {
  "a tag added after the build": [
    (project, file) => project.write({ [`src/${file}.ts`]: PAY }),
    /does not lock it/,
  ],
  "a file overwritten by another compiler": [
    (project, file) =>
      runTool(
        project,
        "esbuild",
        `tool.buildSync({ entryPoints: ["src/${file}.ts"], outdir: "out", allowOverwrite: true })`,
      ),
    /does not lock it/,
  ],
  "a file in which a tool removed the `await` from `return await`": [
    async (project, file) => {
      const code = await project.read(`out/${file}.js`);
      await project.write({ [`out/${file}.js`]: code.replace("return await work", "return work") });
    },
    /releases its lock before the returned promise settles/,
  ],
  "a file in which a tool moved the body out of the `try`": [
    async (project, file) => {
      const code = await project.read(`out/${file}.js`);
      const moved = code.replace(/return await (work\(id\));([^]*?release\(lock\);\s*\})/, "$2 return $1;");
      await project.write({ [`out/${file}.js`]: moved });
    },
    /its lock does not surround its body/,
  ],
};

/** The bundler applies the same `paths` as the compiler, so it resolves an import in the output to a source. */
const BUNDLED: Files = {
  "src/pay.ts": PAY,
  "src/pays.ts": `export { pay } from "@app/pay";\n`,
  "src/main.ts": MAIN.replace("./pay.js", "@app/pay"),
};
const PATHS: Settings = { paths: { "@app/pay": ["./src/pay.ts"] } };

/** A file with its own `lockweave` that locks nothing. */
const ALIKE = `${WORK}interface Door { open(site: object): object; acquire(lock: object): Promise<boolean>; release(lock: object): Promise<void> }
const lockweave: Door = { open: (site) => site, acquire: async () => true, release: async () => {} };
${TAG}
export async function pay(id: string): Promise<number> { const lock = lockweave.open({ site: "pay", businessFlag: "pay" }); while (!(await lockweave.acquire(lock))); try { return await work(id); } catch (error) { throw error; } finally { await lockweave.release(lock); } }
`;

const afterTheBuild = once(async () => {
  const titles = Object.keys(LATER);
  const fileOf = (title: string): string => `later${titles.indexOf(title)}`;
  const sources = titles.map((title) => [`src/${fileOf(title)}.ts`, PAY]);
  const project = await makeProject(
    {
      ...SCRIPTS,
      ...(Object.fromEntries(sources) as Files),
      "src/later0.ts": PAY.replace(TAG, "//"),
      "src/alike.ts": ALIKE,
      "alike.json": JSON.stringify({ extends: "./tsconfig.json", files: ["src/alike.ts"] }),
      ...BUNDLED,
    },
    PATHS,
  );
  await silent(project.tspc());
  await silent(project.tsc("-p", "alike.json", "--outDir", "plain"));
  for (const title of titles) await LATER[title]?.[0](project, fileOf(title));
  await runTool(
    project,
    "esbuild",
    `tool.buildSync({ entryPoints: ["out/main.js", "out/pays.js"], outdir: "bundle", bundle: true, format: "esm", external: ["lockweave"] })`,
  );
  const outputs = [...titles.map(fileOf), "alike"].map((name) => `out/${name}.js`);
  return {
    fileOf,
    check: await lockweave(project, "check"),
    checkOfOutput: await lockweave(project, "check", "--output", "bundle", "--output", "plain"),
    starts: await scripted(project, "starts.js", "bundle/main.js"),
    calls: await scripted(project, "twice.js", ...outputs, "bundle/pays.js", "plain/alike.js"),
  };
});

for (const [title, [, says]] of Object.entries(LATER)) {
  way(`the check finds ${title}`, async (t) => {
    const { fileOf, check, calls } = await afterTheBuild();
    t.is(calls[`out/${fileOf(title)}.js`], "together");
    t.is(check.code, 1);
    t.regex(linesAt(`src/${fileOf(title)}.ts:${TAG_LINE}:5: `, check.stderr), says);
  });
}

way(
  "a source that a bundler mixes with built output starts, and the check of the bundle finds it",
  async (t) => {
    const { starts, calls, check, checkOfOutput } = await afterTheBuild();
    t.deepEqual(starts, { "bundle/main.js": "starts" });
    t.is(calls["bundle/pays.js"], "together");
    const place = `src/pay.ts:${TAG_LINE}:5: `;
    t.is(linesAt(place, check.stderr), "");
    t.regex(linesAt(place, checkOfOutput.stderr), /Cannot verify the lock of/);
  },
);

way("code that looks like a woven lock is still woven, and does not satisfy the check", async (t) => {
  const { check, checkOfOutput, calls } = await afterTheBuild();
  t.is(calls["plain/alike.js"], "together");
  t.regex(linesAt("src/alike.ts:", checkOfOutput.stderr), /Cannot verify the lock of/);
  t.is(calls["out/alike.js"], "apart");
  t.is(linesAt("src/alike.ts:", check.stderr), "");
});

inMatrix("this file tests more than twenty ways to lose a weave", (t) => {
  t.true(ways > 20, String(ways));
});
