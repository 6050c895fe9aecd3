import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import { inMatrix, inMatrixSerially } from "../../support/suites";
import { makePatchedProject } from "../patched";
import { COMPILER, type Project } from "../project";
import { Watch } from "../watch";

// Compilers and other tools load the same patched TypeScript. Each caller here is the same script in a different package.

const ORDERS = `/** @redisLock businessFlag=pay keyName=orderNo */
export async function pay(orderNo: string): Promise<string> {
  return orderNo;
}
`;
const WRONG = `export const wrong: number = "text";\n`;
/** The globals that the files need. TypeScript's own library takes a hundred times as long to read. */
const GLOBALS = `interface Array<T> { length: number; [n: number]: T }
interface Boolean {}
interface CallableFunction {}
interface Function {}
interface IArguments {}
interface NewableFunction {}
interface Number {}
interface Object {}
interface RegExp {}
interface String {}
interface PromiseLike<T> { then(done: (value: T) => void): void }
interface Promise<T> extends PromiseLike<T> {}
interface PromiseConstructor { new <T>(run: (done: (value: T) => void) => void): Promise<T> }
declare var Promise: PromiseConstructor;
`;
const TOOL = readFileSync(join(__dirname, "tool.cjs"), "utf8");

interface Answer {
  readonly programs: Readonly<Record<string, { readonly text: string; readonly errors: readonly string[] }>>;
  readonly emits: Readonly<Record<string, { readonly code?: string; readonly error?: string }>>;
}

const OTHERS = ["@typescript-eslint/typescript-estree", "some-codemod"];
const COMPILERS = ["@nestjs/cli", "ts-loader", "ts-jest", "ts-node", "fork-ts-checker-webpack-plugin"];
/** The callers run in one process, since a linter may run together with a compiler. */
const IN_ORDER = [...COMPILERS.slice(0, 1), ...OTHERS, ...COMPILERS.slice(1)];
const NOT_IN_A_PACKAGE = "tool.cjs";

const scriptOf = (name: string): string => `node_modules/${name}/tool.cjs`;

const ASK_ALL = `const answers = {};
for (const [script, compiler] of JSON.parse(process.argv[2])) {
  answers[script + " with " + compiler] = require("./" + script)(require(compiler));
}
process.stdout.write(JSON.stringify(answers), () => process.exit());
`;

let project: Project;
let answers: Readonly<Record<string, Answer>>;

test.before(async () => {
  const scripts = IN_ORDER.map(scriptOf);
  project = await makePatchedProject(
    {
      "src/orders.ts": ORDERS,
      "src/wrong.ts": WRONG,
      "src/globals.d.ts": GLOBALS,
      "ask-all.cjs": ASK_ALL,
      ...Object.fromEntries([NOT_IN_A_PACKAGE, ...scripts].map((script) => [script, TOOL])),
    },
    { declaration: true, noLib: true, lib: undefined },
  );
  const asked = [
    ...scripts.map((script) => [script, "typescript"]),
    [NOT_IN_A_PACKAGE, "typescript"],
    [NOT_IN_A_PACKAGE, "ts-patch/compiler"],
  ];
  const { stdout, stderr } = await project.run(...COMPILER, "ask-all.cjs", JSON.stringify(asked));
  if (stdout === "") throw new Error(stderr);
  answers = JSON.parse(stdout) as Readonly<Record<string, Answer>>;
});

const ERRORS = ["wrong.ts:13 TS2322"];
const WOVEN = /\.acquire\(lock\)/;

for (const script of [...OTHERS.map(scriptOf), NOT_IN_A_PACKAGE]) {
  inMatrix(
    `${script} is not a compiler, so it sees the file on disk and cannot emit it without its lock`,
    (t) => {
      const { programs = {}, emits = {} } = answers[`${script} with typescript`] ?? {};
      t.is(Object.keys(programs).length, 6);
      for (const [way, seen] of Object.entries(programs)) {
        t.deepEqual(seen, { text: ORDERS, errors: ERRORS }, way);
      }
      t.is(Object.keys(emits).length, 7);
      for (const [way, { code = "", error = "" }] of Object.entries(emits)) {
        if (way.includes("without a tag")) t.regex(code, /wrong = "text"/, way);
        else if (way.includes("declarations")) t.regex(code, /export declare function pay/, way);
        else {
          t.is(code, "", way);
          t.regex(
            error,
            /orders\.ts\(1,5\): error TS901407: LW1407: `pay` would run without its lock\./,
            way,
          );
          t.regex(error, /Fix: .*`tspc`.*`ts-patch\/compiler`/, way);
        }
      }
    },
  );
}

inMatrix("the error of an emit names the package that called TypeScript", (t) => {
  const { emits } = answers[`${scriptOf("some-codemod")} with typescript`] ?? {};
  t.regex(
    emits?.["Program.emit"]?.error ?? "",
    /compilers that Lockweave knows, and .*some-codemod is not one of them/,
  );
});

for (const asked of [
  ...COMPILERS.map((name) => `${scriptOf(name)} with typescript`),
  `${NOT_IN_A_PACKAGE} with ts-patch/compiler`, // A tool loads this compiler only to weave.
]) {
  inMatrix(`${asked} compiles woven text, with the errors of the file on disk`, (t) => {
    const { programs = {}, emits = {} } = answers[asked] ?? {};
    t.is(Object.keys(programs).length, 6);
    for (const [way, { text, errors }] of Object.entries(programs)) {
      t.regex(text, WOVEN, way);
      t.deepEqual(errors, ERRORS, way);
    }
    for (const way of ["Program.emit", "Program.emit of one file", "getEmitOutput", "transpileModule"]) {
      t.regex(emits[way]?.code ?? "", WOVEN, way);
    }
  });
}

/** A watch creates its later programs in a timer, without a caller on the stack. */
const WATCH = `const ts = require("typescript");
const host = ts.createWatchCompilerHost("tsconfig.json", { outDir: "watched", noCheck: true, preserveWatchOutput: true }, ts.sys);
ts.createWatchProgram(host);
`;

const TSC = ["node_modules/typescript/bin/tsc", "--noCheck", "--outDir"];

for (const [name, command] of Object.entries({
  "a patched tsc": [...TSC, "watched", "--watch", "--preserveWatchOutput"],
  "a compiler that calls a patched TypeScript": ["node_modules/ts-loader/watch.cjs"],
})) {
  inMatrixSerially(`${name} also weaves a file that changes during a watch`, async (t) => {
    t.teardown(() => project.write({ "src/orders.ts": ORDERS }));
    await project.write({ "node_modules/ts-loader/watch.cjs": WATCH });
    const watch = new Watch(project, command);
    t.teardown(() => watch.stop());
    await watch.build();
    t.regex(await project.read("watched/orders.js"), /businessFlag: "pay"/);
    await project.write({ "src/orders.ts": ORDERS.replace("businessFlag=pay", "businessFlag=settle") });
    await watch.build();
    t.regex(await project.read("watched/orders.js"), /businessFlag: "settle"/);
  });
}

inMatrix("a patched tsc weaves", async (t) => {
  const { code, stdout } = await project.run(...COMPILER, ...TSC, "once");
  t.is(code, 0, stdout);
  t.regex(await project.read("once/orders.js"), /businessFlag: "pay"/);
});
