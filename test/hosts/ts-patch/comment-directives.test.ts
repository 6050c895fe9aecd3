import { join } from "node:path";
import ts from "typescript";
import type { Compiler } from "../../../transformer/hosts/ts-patch/compiler";
import { wovenProgram } from "../../../transformer/hosts/ts-patch/weave-program";
import { inMatrix } from "../../support/suites";

// `@ts-ignore` and `@ts-expect-error` in a file with tags. They must have the same effect as in plain TypeScript, and
// must not suppress errors in tags.

/** A virtual file in this directory, from which the compiler finds the runtime's types. */
const FILE = join(__dirname, "directives.ts");
const LIBRARY = join(__dirname, "library.d.ts");
const GLOBALS = [
  "Array",
  "Boolean",
  "CallableFunction",
  "Function",
  "IArguments",
  "NewableFunction",
  "Number",
]
  .concat(["Object", "RegExp", "String", "PromiseLike"])
  .map((name) => `interface ${name}${/^(?:Array|PromiseLike)$/.test(name) ? "<T>" : ""} {}`)
  .join("\n");
const PROMISE = `interface Promise<T> { then<R>(done: (value: T) => R): Promise<R> }
interface PromiseConstructor { new <T>(run: (resolve: (value: T) => void) => void): Promise<T> }
declare var Promise: PromiseConstructor;`;

const OPTIONS: ts.CompilerOptions = {
  noLib: true,
  types: [],
  strict: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  noEmit: true,
};

const PLAIN = join(__dirname, "plain.ts");

function programOf(text: string, plain = "export {};"): { program: ts.Program; host: ts.CompilerHost } {
  const host = ts.createCompilerHost(OPTIONS);
  const texts = new Map([
    [FILE, text],
    [PLAIN, plain],
    [LIBRARY, `${GLOBALS}\n${PROMISE}`],
  ]);
  const { getSourceFile } = host;
  host.getSourceFile = (name, settings, ...rest) => {
    const found = texts.get(name);
    return found === undefined
      ? getSourceFile(name, settings, ...rest)
      : ts.createSourceFile(name, found, settings);
  };
  return { program: ts.createProgram([FILE, PLAIN, LIBRARY], OPTIONS, host), host };
}

/** Returns the errors of the program as their lines, codes, and text. */
function errorsOf(program: ts.Program, text: string): string[] {
  const file = program.getSourceFile(FILE);
  return [...program.getSemanticDiagnostics(file), ...program.getSyntacticDiagnostics(file)]
    .toSorted((a, b) => (a.start ?? 0) - (b.start ?? 0))
    .map(({ code, start = 0, length = 0 }) => {
      const line = text.slice(0, start).split("\n").length;
      return `${line}: ${code} ${text.slice(start, start + length)}`;
    });
}

function errorsWoven(text: string): string[] {
  const { program, host } = programOf(text);
  const config = { transformProgram: true };
  return errorsOf(wovenProgram(program, host, config, { ts: ts as Compiler }).woven, text);
}

function errorsPlain(text: string): string[] {
  return errorsOf(programOf(text).program, text);
}

const TAG = "/** @redisLock businessFlag=pay keyName=id */";
const PAY = "export async function pay(id: string): Promise<void>";

for (const [what, text, ...errors] of [
  ["an error that is ignored", `${TAG}\n${PAY} {\n  // @ts-ignore\n  const n: number = id;\n}`],
  ["an error that is expected", `${TAG}\n${PAY} {\n  // @ts-expect-error\n  const n: number = id;\n}`],
  [
    "an error in the next line but one",
    `${TAG}\n${PAY} {\n  // @ts-ignore\n  id;\n  const n: number = id;\n}`,
    "5: 2322 n",
  ],
  [
    "an expected error that does not occur",
    `${TAG}\n${PAY} {\n  // @ts-expect-error\n  id;\n}`,
    "3: 2578 // @ts-expect-error",
  ],
  ["an ignored error that does not occur", `${TAG}\n${PAY} {\n  // @ts-ignore\n  id;\n}`],
  [
    "one of two expectations",
    `${TAG}\n${PAY} {\n  // @ts-expect-error\n  const n: number = id;\n  // @ts-expect-error\n  id;\n}`,
    "5: 2578 // @ts-expect-error",
  ],
  [
    "two expectations for one line, of which the nearer counts",
    `${TAG}\n${PAY} {\n  // @ts-expect-error\n  // @ts-expect-error\n  const n: number = id;\n}`,
    "3: 2578 // @ts-expect-error",
  ],
  [
    "an expectation above comments and blank lines",
    `${TAG}\n${PAY} {\n  // @ts-expect-error\n\n  // Not a number.\n  const n: number = id;\n}`,
  ],
  [
    "an expectation above one blank line",
    `${TAG}\n${PAY} {\n  // @ts-expect-error\n\n  const n: number = id;\n}`,
  ],
  [
    "an expectation above one comment",
    `${TAG}\n${PAY} {\n  // @ts-expect-error\n  // Not a number.\n  const n: number = id;\n}`,
  ],
  [
    "an expectation above other code",
    `${TAG}\n${PAY} {\n  // @ts-expect-error\n  id; // Not a number.\n  const n: number = id;\n}`,
    "3: 2578 // @ts-expect-error",
    "5: 2322 n",
  ],
  [
    "two errors in one line",
    `${TAG}\n${PAY} {\n  // @ts-expect-error\n  const n: number = id, m: number = id;\n}`,
  ],
  [
    "an expectation in the file's first line",
    `// @ts-expect-error\nconst n: number = "";\n${TAG}\n${PAY} { n; }`,
  ],
  [
    "an error in the file's first line",
    `const n: number = "";\n${TAG}\n${PAY} {\n  // @ts-ignore\n  n;\n}`,
    "1: 2322 n",
  ],
  [
    "an error in the function's own line",
    `// @ts-expect-error\n${PAY.replace("void", "number")} {}\n${TAG}\n${PAY.replace("pay", "payOnce")} {}`,
  ],
  [
    "an expectation that the parser reads twice",
    `${TAG}\n${PAY} {\n  const f = (\n    // @ts-expect-error\n    a: number = id,\n  ) => a;\n  f();\n}`,
  ],
  ["an error in a file without directives", `${TAG}\n${PAY} { const n: number = id; }`, "2: 2322 n"],
] as const) {
  inMatrix(`${what} has the same result in a tagged file as in plain TypeScript`, (t) => {
    t.deepEqual(errorsPlain(text), errors as readonly string[]);
    t.deepEqual(errorsWoven(text), errors as readonly string[]);
  });
}

for (const directive of ["@ts-ignore", "@ts-expect-error"]) {
  inMatrix(`${directive} above a tagged function does not suppress errors in its tag`, (t) => {
    const above = errorsWoven(`// ${directive}\n/** @redisLock businessFlag=pay keyName=id.no */\n${PAY} {}`);
    t.true(above.includes("2: 2339 no"), above.join("\n"));
    const between = errorsWoven(
      `/** @redisLock businessFlag=pay keyName=id.no */\n// ${directive}\n${PAY} {}`,
    );
    t.true(between.includes("1: 2339 no"), between.join("\n"));
    t.is(between.includes(`2: 2578 // ${directive}`), directive === "@ts-expect-error");
  });

  inMatrix(`${directive} above a tagged function applies only to its first line`, (t) => {
    const text = `${TAG}\n// ${directive}\n${PAY.replace("string", "strng")} {\n  const n: number = "";\n}`;
    t.deepEqual(errorsWoven(text), ["4: 2322 n"]);
    t.deepEqual(errorsPlain(text), ["4: 2322 n"]);
  });
}

inMatrix("an unresolved import is an error unless a directive suppresses it", (t) => {
  const text = (directive: string): string =>
    `${directive}\nimport { a } from "./nowhere.js";\n${TAG}\n${PAY} { a; }`;
  for (const directive of ["// @ts-ignore", "// @ts-expect-error", "//"]) {
    const expected = directive === "//" ? ['2: 2307 "./nowhere.js"'] : [];
    t.deepEqual(errorsPlain(text(directive)), expected);
    t.deepEqual(errorsWoven(text(directive)), expected);
  }
});

inMatrix("an unused @ts-expect-error is reported in files with tags and in files without", (t) => {
  const text = `${TAG}\n${PAY} {\n  // @ts-expect-error\n  id;\n}`;
  const { program, host } = programOf(text, "// @ts-expect-error\nexport const a = 1;\n");
  const { woven } = wovenProgram(program, host, { transformProgram: true }, { ts: ts as Compiler });
  const unused = woven
    .getSemanticDiagnostics()
    .filter(({ code }) => code === 2578) // Without a library, the runtime's types have errors.
    .map(({ code, file, start }) => `${code} ${file?.fileName} ${start}`);
  t.deepEqual(unused.toSorted(), [`2578 ${FILE} ${text.indexOf("// @ts")}`, `2578 ${PLAIN} 0`]);
});
