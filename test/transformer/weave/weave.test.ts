import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { SourceMap } from "node:module";
import path from "node:path";
import test from "ava";
import ts from "typescript";
import { isOfTag, weave, type Woven } from "../../../transformer/weave/weave";

/** Each directory has an `input` and its `woven` text. `UPDATE_FIXTURES=1` rewrites the woven texts. */
const FIXTURES = path.join(__dirname, "../../fixtures/weave");
const REPOSITORY = path.join(__dirname, "../../..");

interface Fixture {
  readonly name: string;
  readonly fileName: string;
  readonly text: string;
  readonly woven: Woven;
}

const fixtures = readdirSync(FIXTURES).map((name): Fixture => {
  const base = readdirSync(path.join(FIXTURES, name)).find((file) => file.startsWith("input.")) ?? "";
  const fileName = path.join(FIXTURES, name, base);
  const text = readFileSync(fileName, "utf8");
  const module = /\.c[jt]s$/.test(base) ? "commonjs" : "esm";
  const woven = weave(fileName, text, { ts, module });
  if (woven === undefined) throw new Error(`${name}: nothing to weave`);
  return { name, fileName, text, woven };
});

for (const fixture of fixtures) {
  const { name, fileName, text, woven } = fixture;
  const expectedName = fileName.replace(/input(?=\.\w+$)/, "woven");
  if (process.env["UPDATE_FIXTURES"] === "1") writeFileSync(expectedName, woven.code);

  test(`${name}: the weave produces the committed text`, (t) => {
    t.deepEqual(woven.diagnostics, []);
    t.true(woven.sites.length > 0);
    t.is(woven.code, readFileSync(expectedName, "utf8"));
  });

  test(`${name}: the weave moves no line and removes nothing from a line`, (t) => {
    const before = linesOf(text);
    const after = linesOf(woven.code);
    t.is(after.length, before.length);
    before.forEach((line, index) => t.true(isSubsequence(line, after[index] ?? ""), line));
  });

  test(`${name}: the woven text without its insertions is the original`, (t) => {
    t.is(wovenOffsets(fixture).length, text.length);
  });

  test(`${name}: the woven text parses`, (t) => {
    t.deepEqual(syntaxErrors(fileName, woven.code), []);
  });

  test(`${name}: woven or compiled text is not woven again`, (t) => {
    const again = (file: string, code: string): unknown => weave(file, code, { ts, module: "esm" });
    t.is(again(fileName, woven.code), undefined);
    for (const module of [ts.ModuleKind.ESNext, ts.ModuleKind.CommonJS]) {
      const compilerOptions = { module, target: ts.ScriptTarget.ESNext, jsx: ts.JsxEmit.Preserve };
      const { outputText } = ts.transpileModule(woven.code, { fileName, compilerOptions });
      t.is(again("emitted.jsx", outputText), undefined);
    }
  });

  test(`${name}: the source map and the positions map each identifier back to its position`, (t) => {
    const offsets = wovenOffsets(fixture);
    const map = mapOf(woven);
    const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest);
    const wovenFile = ts.createSourceFile(fileName, woven.code, ts.ScriptTarget.Latest);
    for (const identifier of identifiersOf(file)) {
      const start = identifier.getStart(file);
      const { end } = identifier;
      const wovenStart = offsets[start] ?? NaN;
      const place = file.getLineAndCharacterOfPosition(start);
      const wovenPlace = wovenFile.getLineAndCharacterOfPosition(wovenStart);
      const { originalLine, originalColumn } = entryOf(map, wovenPlace);
      t.deepEqual({ line: originalLine, character: originalColumn }, place, identifier.text);
      t.deepEqual(woven.positions.toDisk({ start: wovenStart, end: wovenStart + end - start }), {
        start,
        end,
      });
      const { line, character } = place;
      t.deepEqual(woven.positions.columnToDisk(wovenPlace.line, wovenPlace.character), {
        line,
        column: character,
      });
    }
  });

  test(`${name}: source maps leave out the start of each step that not every call reaches`, (t) => {
    const map = mapOf(woven);
    const wovenFile = ts.createSourceFile(fileName, woven.code, ts.ScriptTarget.Latest);
    const steps = rareStepsOf(wovenFile, woven.namespace ?? "");
    t.true(steps.length >= 2 * woven.sites.length);
    for (const step of steps) {
      const place = wovenFile.getLineAndCharacterOfPosition(step.getStart(wovenFile));
      t.is(entryOf(map, place).originalLine, -1, step.getText(wovenFile));
    }
  });

  test(`${name}: the woven key maps back to the text of the tag`, (t) => {
    const wovenFile = ts.createSourceFile(fileName, woven.code, ts.ScriptTarget.Latest);
    const words = keyArgumentsOf(wovenFile).flatMap((argument) => wordsOfKey(wovenFile, argument));
    const astray = words.filter(({ start, end }) => {
      const disk = woven.positions.toDisk({ start, end });
      const onDisk = joined(text.slice(disk.start, disk.end));
      const inWoven = joined(woven.code.slice(start, end).replaceAll(/^"|"$/g, ""));
      return onDisk !== inWoven || !isInComment(text, disk.start);
    });
    t.deepEqual(
      astray.map(({ start, end }) => woven.code.slice(start, end)),
      [],
    );
  });
}

test("each fixture has no type errors before the weave and after it", (t) => {
  const compiled = fixtures.filter(({ fileName }) => !fileName.endsWith(".cjs"));
  t.deepEqual(
    typeErrors(compiled, ({ text }) => text),
    [],
    "as written",
  );
  t.deepEqual(
    typeErrors(compiled, ({ woven }) => woven.code),
    [],
    "woven",
  );
});

test("a file without a tag is not woven, even if a string in it contains one", (t) => {
  t.is(weave("a.ts", "export const a = 1;", { ts, module: "esm" }), undefined);
  t.is(weave("a.ts", "export const a = '@redisLock businessFlag=x';", { ts, module: "esm" }), undefined);
});

test("a file that is already parsed is woven into the same code without another parse", (t) => {
  const text = "/** @redisLock businessFlag=pay */\nexport async function pay() {}";
  const sourceFile = ts.createSourceFile("a.ts", text, ts.ScriptTarget.ES2022, true);
  let parses = 0;
  const counting: typeof ts = {
    ...ts,
    createSourceFile(...args) {
      if (args[1] === text) parses += 1;
      return ts.createSourceFile(...args);
    },
  };
  const woven = weave("a.ts", text, { ts: counting, module: "esm", sourceFile });
  t.is(parses, 0);
  t.is(woven?.code, weave("a.ts", text, { ts: counting, module: "esm" })?.code);
  t.is(parses, 1);
});

for (const [title, source] of Object.entries({
  "another object's `open`": `import * as lockweave from "lockweave/runtime"; import { door } from "./door.js";
/** @redisLock businessFlag=pay */
export async function pay() { const lock = door.open({ site: "pay" }); while (!(await door.acquire(lock))) await door.retryCheck(lock); try { return 1; } catch (error) { throw error; } finally { await door.release(lock); } }`,
  "a lock that is not released": `import * as lockweave from "lockweave/runtime";
/** @redisLock businessFlag=pay */
export async function pay() { const lock = lockweave.open({ site: "pay", businessFlag: "pay" }); while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock); try { return 1; } finally { } }`,
  "a lock that is never acquired": `import * as lockweave from "lockweave/runtime";
/** @redisLock businessFlag=pay */
export async function pay() { const p = lockweave.open({ site: "pay" }); while (p.isOpen) await p.step(); try { return 1; } finally { await lockweave.release(p); } }`,
  "code after the lock": `import * as lockweave from "lockweave/runtime";
/** @redisLock businessFlag=pay */
export async function pay() { const lock = lockweave.open({ site: "pay" }); while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock); try { } finally { await lockweave.release(lock); } work(); }`,
})) {
  test(`a function that already has ${title} does not count as locked, and is woven`, (t) => {
    const woven = weave("a.ts", source, { ts, module: "esm" });
    t.is(woven?.sites.length, 1);
    t.deepEqual(woven?.diagnostics, []);
  });
}

test("each column of the inserted import of the runtime maps to the start of the file", (t) => {
  const before = 'import { work } from "./work.js";\n';
  const text = `${before}// A comment, ${"so ".repeat(40)}that offsets are no columns.\n/** @redisLock businessFlag=pay */\nexport async function pay() { return work(); }\n`;
  const woven = weave("a.ts", text, { ts, module: "esm" });
  const end = woven?.code.indexOf("import { work }") ?? 0;
  t.true(end > 0);
  for (let column = 0; column <= end; column += 1) {
    t.deepEqual(woven?.positions.columnToDisk(0, column), { line: 0, column: 0 }, String(column));
  }
});

test("each character of the call that requires a store maps to the first tag that names it", (t) => {
  const tag = "@redisLock businessFlag=pay store=payments";
  const text = `/** Pays.\n * ${tag} */\nexport async function pay() {}\n`;
  const { code = "", positions } = weave("a.ts", text, { ts, module: "esm" }) ?? {};
  const call = 'lockweave.needsStore("payments", "pay");';
  const start = code.indexOf(call);
  for (let at = start; at < start + call.length; at += 1) {
    const place = positions?.toDisk({ start: at, end: at + 1 });
    t.is(text.slice(place?.start, place?.end), "@redisLock", code.slice(at));
  }
});

test("each part of the `return` that is inserted before an arrow function's value maps to the value", (t) => {
  const text = "/** @redisLock businessFlag=pay */\nexport const pay = async () => work();\n";
  const { code = "", positions } = weave("a.ts", text, { ts, module: "esm" }) ?? {};
  const start = code.indexOf("return ");
  for (const end of [start + 3, start + 6]) {
    const value = positions?.toDisk({ start: end - 3, end });
    t.is(text.slice(value?.start, value?.end), "work()");
  }
});

test("the `return` that is inserted before a JavaScript value goes before all of its doc comments", (t) => {
  const value = "/** Pays. */ /** @type {X} */ (work())";
  const text = `/** @redisLock businessFlag=pay */\nexport const pay = async () => ${value};\n`;
  const { code = "" } = weave("a.js", text, { ts, module: "esm" }) ?? {};
  t.true(code.includes(`return (await ${value});`), code);
});

test("an offset belongs to a tag from the tag's first word to the end of its comment", (t) => {
  const text = "/** Pays.\n * @redisLock businessFlag=pay */\nexport async function pay() {}\n";
  const { sites = [] } = weave("a.ts", text, { ts, module: "esm" }) ?? {};
  const [start, end] = [text.indexOf("@"), text.indexOf("*/")];
  const places = [start - 1, start, end - 1, end].map((offset) => isOfTag(sites, text, offset));
  t.deepEqual(places, [false, true, true, false]);
});

test("each site has the name of its function and the position of its tag", (t) => {
  const fixture = fixtures.find(({ name }) => name === "functions");
  const sites = fixture?.woven.sites ?? [];
  t.deepEqual(
    sites.map(({ name }) => name),
    ["pay", "ship.shipIt", "handlers.pay", "anonymous", "makeHandler", "cast", "Orders.Inner.pay"],
  );
  for (const { start, end } of sites) t.is(fixture?.text.slice(start, end), "@redisLock");
});

test("a function that is the default of a variable has the name of the variable", (t) => {
  const source = "export const { pay = /** @redisLock businessFlag=f */ async () => 1, ...rest } = given;";
  const { sites = [] } = weave("a.ts", source, { ts, module: "esm" }) ?? {};
  t.deepEqual(
    sites.map(({ name }) => name),
    ["pay"],
  );
});

test("line breaks of every kind keep their positions, and a function's name adds none", (t) => {
  for (const lineBreak of ["\r\n", "\r", "\u2028", "\u2029"]) {
    const lines = [
      "export class Orders {",
      "  /**",
      "   * @redisLock businessFlag=pay keyName=a,'a +",
      "   *   b' reentrant=true",
      "   */",
      '  async "a\\u2028b"(a: string, b: string): Promise<{',
      "    sum: string",
      "    all: string[]",
      "  }> {",
      "    return { sum: a + b, all: [a, b] };",
      "  }",
      "}",
    ];
    const text = lines.join(lineBreak);
    const woven = weave("a.ts", text, { ts, module: "esm" });
    t.deepEqual(woven?.diagnostics, []);
    const code = woven?.code ?? "";
    t.is(linesOf(code).length, lines.length);
    t.deepEqual(syntaxErrors("a.ts", code), []);
    t.true(code.includes("}, a, a +"), code);
    t.regex(woven?.map().mappings ?? "", /^[A-Za-z0-9+/,;]+$/);
  }
});

test("a call at the first column keeps its position, although a lock on its line is left out of the source map", (t) => {
  const text =
    "const first = 1;\nstart(/** @redisLock businessFlag=pay */ async (id: string) => id);\nexport {};\n";
  const woven = weave("a.ts", text, { ts, module: "esm" });
  t.deepEqual(woven?.diagnostics, []);
  if (woven !== undefined)
    t.like(entryOf(mapOf(woven), { line: 1, character: 0 }), { originalLine: 1, originalColumn: 0 });
});

test("a byte order mark stays the first character", (t) => {
  for (const rest of [
    'import "node:fs";\n/** @redisLock businessFlag=pay */ export async function pay() {}',
  ]) {
    const woven = weave("a.ts", `\uFEFF${rest}`, { ts, module: "esm" });
    t.is(woven?.code, `\uFEFF${weave("a.ts", rest, { ts, module: "esm" })?.code ?? ""}`);
  }
});

test("the weave does not throw if the text has syntax errors", (t) => {
  const source = fixtures.map(({ text }) => text).join("\n");
  const tag = source.indexOf("@redisLock");
  for (let end = tag; end < Math.min(source.length, 6_000); end += 7) {
    t.notThrows(() => weave("a.ts", source.slice(0, end), { ts, module: "esm" }));
  }
});

// ---- reading the woven text -----------------------------------------------------------------------------

function linesOf(text: string): string[] {
  return text.split(/\r\n|[\n\r\u2028\u2029]/);
}

function isSubsequence(part: string, whole: string): boolean {
  let found = 0;
  for (let at = 0; at < whole.length; at += 1) if (whole.charAt(at) === part.charAt(found)) found += 1;
  return found === part.length;
}

/** For each offset of the text on disk, the offset in the woven text that leads back to it. */
function wovenOffsets({ text, woven: { code, positions } }: Fixture): number[] {
  const offsets: number[] = [];
  for (let start = 0; start < code.length; start += 1) {
    const next = offsets.length;
    const disk = positions.toDisk({ start, end: start + 1 });
    const isNext = disk.start === next && disk.end === next + 1;
    const isBehindInsertion = positions.toDisk({ start, end: start }).end === next;
    if (isNext && isBehindInsertion && code.charAt(start) === text.charAt(next)) offsets.push(start);
  }
  return offsets;
}

function identifiersOf(file: ts.SourceFile): (ts.Identifier | ts.PrivateIdentifier)[] {
  const found: (ts.Identifier | ts.PrivateIdentifier)[] = [];
  const visit = (node: ts.Node): void => {
    if ((ts.isIdentifier(node) || ts.isPrivateIdentifier(node)) && node.end > node.getStart(file)) {
      found.push(node);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** Returns the steps of the locks that run only if a key is held, a body throws, or a condition is false. */
function rareStepsOf(file: ts.SourceFile, namespace: string): ts.Node[] {
  const found: ts.Node[] = [];
  const calls = (node: ts.Node, step: string): boolean =>
    node.getText(file).includes(`${namespace}.${step}(`);
  const visit = (node: ts.Node): void => {
    if (ts.isExpressionStatement(node) && ts.isVoidExpression(node.expression) && calls(node, "retryCheck"))
      found.push(node);
    if (ts.isIfStatement(node) && calls(node.expression, "retryCheck")) found.push(node, node.thenStatement);
    if (ts.isThrowStatement(node) && calls(node, "fail")) found.push(node);
    if (ts.isConditionalExpression(node) && calls(node.condition, "when")) {
      found.push(node, node.whenTrue, node.whenFalse);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function mapOf(woven: Woven): SourceMap {
  const { version, sources, names, mappings } = woven.map();
  return new SourceMap({
    file: "woven",
    sourceRoot: "",
    version,
    sources,
    sourcesContent: [],
    names,
    mappings,
  });
}

function entryOf(
  map: SourceMap,
  { line, character }: ts.LineAndCharacter,
): { originalLine: number; originalColumn: number } {
  const entry: { readonly originalLine?: number; readonly originalColumn?: number } = map.findEntry(
    line,
    character,
  );
  const { originalLine = -1, originalColumn = -1 } = entry;
  return { originalLine, originalColumn };
}

/** The arguments of the woven `open` calls after the options. */
function keyArgumentsOf(file: ts.SourceFile): ts.Expression[] {
  const found: ts.Expression[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && /^lockweave(_\d+)?\.open$/.test(node.expression.getText(file))) {
      found.push(...node.arguments.slice(1));
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** The parts of a woven key that come from the tag: the whole key, or its parts if woven code is between them. */
function wordsOfKey(file: ts.SourceFile, key: ts.Node): { start: number; end: number }[] {
  const whole = { start: key.getStart(file), end: key.end };
  if (ts.isCallExpression(key) && key.expression.getText(file).endsWith(".jsonField")) {
    return key.arguments.slice(0, 2).flatMap((argument) => wordsOfKey(file, argument));
  }
  if (ts.isSatisfiesExpression(key))
    return [key.expression, key.type].flatMap((part) => wordsOfKey(file, part));
  if (ts.isPropertyAccessExpression(key) && ts.isParenthesizedExpression(key.expression)) {
    const field = { start: key.name.getStart(file), end: key.end };
    return [...wordsOfKey(file, key.expression.expression), field];
  }
  if (ts.isPropertyAccessExpression(key)) {
    const name = { start: key.name.getStart(file), end: key.end };
    return [...wordsOfKey(file, key.expression), name];
  }
  return [whole];
}

/** Removes white space and the margins of a comment. */
function joined(words: string): string {
  return words.replaceAll(/\n\s*\*/g, "").replaceAll(/\s+/g, "");
}

function isInComment(text: string, offset: number): boolean {
  return text.lastIndexOf("/**", offset) > text.lastIndexOf("*/", offset - 1);
}

function syntaxErrors(fileName: string, text: string): unknown[] {
  const { parseDiagnostics = [] } = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest) as {
    parseDiagnostics?: readonly ts.Diagnostic[];
  };
  return parseDiagnostics.map(({ messageText }) => messageText);
}

function typeErrors(compiled: readonly Fixture[], textOf: (fixture: Fixture) => string): string[] {
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    noImplicitReturns: true,
    target: ts.ScriptTarget.ES2022,
    lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
    module: ts.ModuleKind.NodeNext,
    jsx: ts.JsxEmit.Preserve,
    types: ["node"],
    skipLibCheck: true,
    paths: {
      lockweave: [path.join(REPOSITORY, "runtime/index.ts")],
      "lockweave/runtime": [path.join(REPOSITORY, "runtime/woven/entry.ts")],
    },
  };
  const host = ts.createCompilerHost(options);
  const texts = new Map(compiled.map((fixture) => [fixture.fileName, textOf(fixture)]));
  const { readFile } = host;
  host.readFile = (fileName) => texts.get(path.normalize(fileName)) ?? readFile(fileName);
  const program = ts.createProgram([...texts.keys()], options, host);
  return compiled.flatMap(({ fileName }) => {
    const file = program.getSourceFile(fileName);
    return ts.getPreEmitDiagnostics(program, file).map(({ messageText, start = 0 }) => {
      const at = file?.getLineAndCharacterOfPosition(start);
      const place = `${path.relative(FIXTURES, fileName)}:${(at?.line ?? 0) + 1}`;
      return `${place}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`;
    });
  });
}

test("a function inside any type assertion is locked", (t) => {
  for (const value of [
    "<Pay>(FN)",
    "(FN)!",
    "(FN) as Pay",
    "(FN) satisfies Pay",
    "<Pay>(((FN) satisfies Pay)!)",
  ]) {
    const fn = value.replace("FN", "async (id: string) => id");
    for (const text of [
      `/** @redisLock businessFlag=pay keyName=id */\nexport const pay = ${fn};`,
      `/** @redisLock businessFlag=pay keyName=id */\nexport default ${fn};`,
      `export class A {\n  /** @redisLock businessFlag=pay keyName=id */\n  pay = ${fn};\n}`,
      `export const a = {\n  /** @redisLock businessFlag=pay keyName=id */\n  pay: ${fn},\n};`,
    ]) {
      const { sites = [], diagnostics, code = "" } = weave("a.ts", text, { ts, module: "esm" }) ?? {};
      t.deepEqual([sites.length, diagnostics], [1, []], text);
      t.regex(code, /async \(id: string\) => \{ const lock = /);
    }
  }
});
