import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import ts from "typescript";
import { readDefaults } from "../../../transformer/read/attributes";
import { weave } from "../../../transformer/weave/weave";
import { GRAMMAR } from "./bad-tags/grammar";
import { KEYS } from "./bad-tags/keys";
import { PLACES, REDECLARED } from "./bad-tags/places";
import { onMethod, syntaxErrors, unmark } from "./bad-tags/row";
import { VALUES } from "./bad-tags/values";

const ESM = { ts, module: "esm" } as const;

test("prose that mentions the tag in backticks, or another tag in braces, is not a tag", (t) => {
  for (const prose of [
    "Write `{@redisLock businessFlag=x}` there.",
    "{@link pay businessFlag=x} locks.",
    "The `redisLock businessFlag=x` of old.",
    "redisLock locks it, with businessFlag=x.",
    "@médecin locks it.",
    "redis-locks take businessFlag=x.",
    "lockTime=20 is the default, - lockTime=30 another.",
    "@config mode=fast",
    "@config says: the lockTime=20 of old.",
  ]) {
    t.is(weave("a.ts", `/** ${prose} */\nexport async function pay() {}`, ESM), undefined, prose);
  }
});

test("a function of a file that extends the global `Promise` may return that `Promise`", (t) => {
  const source = `declare global { interface Promise<T> { tap(): T } }\n/** @redisLock businessFlag=pay */\nexport function pay(): Promise<void> { return work(); }`;
  t.deepEqual(weave("a.ts", source, ESM)?.diagnostics, []);
});

test("a name that hides a parameter in a block, an inner function, or a static block is not a duplicate", (t) => {
  for (const statement of [
    "{ const count = 1; work(count); }",
    "for (const count of [1]) work(count);",
    "class A { static { var count = 1; work(count); } }",
    "const inner = function () { var count = 1; return count; }; inner();",
    "try { work(); } catch (count) { work(count); }",
  ]) {
    for (const attributes of ["", "reentrant=true"]) {
      const source = `/** @redisLock businessFlag=pay ${attributes} */\nexport async function pay(count: number) { ${statement} return count; }`;
      const woven = weave("a.ts", source, ESM);
      t.deepEqual(woven?.diagnostics, [], source);
      t.is(woven?.sites.length, 1);
    }
  }
  const script =
    "/** @redisLock businessFlag=pay */\nexport async function pay(count) { function count() {} }";
  t.deepEqual(weave("a.js", script, ESM)?.diagnostics, []);
});

const ROWS = [...GRAMMAR, ...VALUES, ...KEYS, ...PLACES, ...REDECLARED];

for (const row of ROWS) {
  const { title, source, code, message, also = [], bodiless = false, fileName = "a.ts" } = row;
  test(`${code} reports ${PLACES.includes(row) ? "a tag on " : ""}${title}`, (t) => {
    const { text, start, end } = unmark(source);
    const woven = weave(fileName, text, { ts, module: "esm" });
    t.truthy(woven, "nothing was found");
    const [first, ...others] = woven?.diagnostics ?? [];
    t.like(first, { start, end, code, message });
    t.deepEqual(
      others.map((problem) => problem.code),
      also,
    );
    const emitted = woven?.code ?? "";
    t.false(emitted.includes(".open({"), "a function with a bad tag was woven");
    t.regex(emitted, /lockweave\.refuse\(|\(\(\) => \{ throw new Error\(/);
    t.is(emitted.includes("The file refuses to run unlocked."), bodiless, emitted);
    t.deepEqual(woven?.sites, []);
    t.deepEqual(syntaxErrors(fileName, emitted), syntaxErrors(fileName, text));
  });
}

const OTHER_UNIT = (written: string, as: string, other: string): string =>
  `\`${written}\` is ${as}. Fix: write the unit, or \`${other}\` if you mean that.`;

const UNPARSED = `// Pays.
export const pay = 1; const = 3;
/** @redisLock businessFlag=pay */
export async function ship() { work(); }`;

test("a file that does not parse is not woven, keeps its errors, and refuses to run", (t) => {
  const woven = weave("dir/a.ts", UNPARSED, ESM);
  const start = UNPARSED.indexOf("=", UNPARSED.indexOf("const ="));
  const message =
    "This file has a syntax error: Variable declaration expected. Lockweave cannot weave it, so the file refuses to run.";
  t.deepEqual(woven?.diagnostics, [{ start, end: start + 1, code: "LW1402", message }]);
  t.deepEqual(woven?.sites, []);
  const refusal = `throw new Error("a.ts:2: LW1402: ${message}"); `;
  t.is(woven?.code, UNPARSED.replace("export const", `${refusal}export const`));
  t.deepEqual(syntaxErrors("a.ts", woven?.code ?? ""), syntaxErrors("a.ts", UNPARSED));
});

test("octal numbers and escapes are syntax errors in TypeScript, but not in CommonJS", (t) => {
  for (const value of ["0755", "089", '"\\033[32m"', "'\\8'"]) {
    const source = `/** @redisLock businessFlag=pay */\nexports.pay = async () => ${value};`;
    const woven = weave("a.cjs", source, { ts, module: "script" });
    t.deepEqual([woven?.diagnostics, woven?.sites.length], [[], 1], source);
    t.is(weave("a.ts", source, ESM)?.diagnostics[0]?.code, "LW1402", source);
  }
});

const DOUBTFUL = [
  {
    source: onMethod("@redisLock businessFlag=pay lockTime=«30000»"),
    message: OTHER_UNIT("lockTime=30000", "8.3 hours", "lockTime=30000ms"),
    replacements: ["30000ms", "30000s"],
  },
  {
    source: onMethod("@redisLock businessFlag=pay lockTime=«1000»"),
    message: OTHER_UNIT("lockTime=1000", "16.7 minutes", "lockTime=1000ms"),
    replacements: ["1000ms", "1000s"],
  },
  {
    source: onMethod("@redisLock businessFlag=pay waitTime=«5»"),
    message: OTHER_UNIT("waitTime=5", "5 ms", "waitTime=5s"),
    replacements: ["5s", "5ms"],
  },
];

test("a whole key that is only the name of a parameter is woven with a warning", (t) => {
  for (const [key, isDoubtful] of [
    ["orderNo", true],
    ["order.id", true],
    ["orders", false],
    ["order:1", false],
    ["pay:${orderNo}", false],
  ] as const) {
    const { text, start, end } = unmark(onMethod(`@redisLock key=«${key}»`));
    const woven = weave("a.ts", text, ESM);
    const message = `\`key=${key}\` is literal text, so every call has the same key. Fix: to use the value of \`${key}\`, write \`key="...:\${${key}}"\`, or \`businessFlag=... keyName=${key}\`.`;
    t.deepEqual(woven?.warnings, isDoubtful ? [{ start, end, code: "LW1215", message }] : []);
    t.deepEqual(woven?.diagnostics, []);
  }
});

for (const { source, message, replacements } of DOUBTFUL) {
  test(`a number that is unlikely in its unit is woven with a warning that names both readings: ${message}`, (t) => {
    const { text, start, end } = unmark(source);
    const woven = weave("a.ts", text, ESM);
    t.deepEqual(woven?.warnings, [{ start, end, code: "LW1111", message, replacements }]);
    t.deepEqual(woven?.diagnostics, []);
    t.is(woven?.sites.length, 1);
  });
}

test("likely times and times with a unit get no warning", (t) => {
  for (const time of ["lockTime=999", "lockTime=3000s", "waitTime=20", "waitTime=0", "waitTime=5ms"]) {
    const woven = weave("a.ts", onMethod(`@redisLock businessFlag=pay ${time}`), ESM);
    t.deepEqual([woven?.warnings, woven?.diagnostics], [[], []], time);
  }
});

test("at least 60 rows show every code except those that need a build or more than one tag", (t) => {
  t.true(ROWS.length >= 60);
  const source = readFileSync(join(__dirname, "../../../transformer/text/problems.ts"), "utf8");
  const codes = new Set(source.match(/(?<=^ .*")LW\d+(?=")/gm));
  t.true(codes.size > 30);
  const { problems } = readDefaults({ lockTme: 20 });
  const warnings = DOUBTFUL.flatMap((row) => weave("a.ts", unmark(row.source).text, ESM)?.warnings ?? []);
  const unparsed = weave("a.ts", UNPARSED, ESM)?.diagnostics ?? [];
  const textual = weave("a.ts", onMethod("@redisLock key=orderNo"), ESM)?.warnings ?? [];
  const alone = weave("a.ts", onMethod("businessFlag=pay"), ESM)?.warnings ?? [];
  const found = [...ROWS, ...problems, ...warnings, ...textual, ...alone, ...unparsed];
  const shown = new Set(found.map(({ code }) => code));
  // The tests in test/hosts show the codes that need a build: lost weaves, callers of a patched TypeScript, components, stores,
  // unsupported places, and outdated lists. cost.test.ts, handshake.test.ts, and sharing.test.ts show the others. The tests of the analysis show
  // the codes `LW15..`, which are about several tags.
  const isAboutOneTag = (code: string): boolean => !code.startsWith("LW15");
  t.deepEqual(
    [...codes].filter((code) => !shown.has(code) && isAboutOneTag(code)),
    ["LW1113", "LW1124", "LW1403", "LW1404", "LW1405", "LW1406", "LW1408", "LW1407", "LW1409", "LW1410"],
  );
});
