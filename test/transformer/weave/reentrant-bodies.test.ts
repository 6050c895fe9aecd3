import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

/** Returns the head of the function that the body becomes. */
function headOf(source: string, fileName = "a.ts"): string {
  const code = weave(fileName, source, { ts, module: "esm" })?.code ?? "";
  return /runReentrant\(\w+, (.*?) =>/.exec(code)?.[1] ?? code;
}

const TAG = "/** @redisLock businessFlag=pay reentrant=true */";

/** Returns the code right before the call of runReentrant(). */
function callIn(source: string): string {
  const code = weave("a.ts", source, { ts, module: "esm" })?.code ?? "";
  return /try \{ (.*?)lockweave\.runReentrant/.exec(code)?.[1] ?? code;
}

const WITHOUT_VALUE = [
  "",
  "work();",
  "throw 1;",
  "{ throw 1; }",
  "if (a) throw 1; else throw 2;",
  "try { throw 1; } finally { work(); }",
  "while (true) work();",
  "if (a) return; throw 1;",
  "work(() => { return 1; }); throw 1;",
];

const WITH_VALUE = ["return 1;", "if (a) return 1; throw 2;", "{ if (a) { return work(); } } throw 2;"];

for (const body of WITHOUT_VALUE) {
  test(`a body without a returned value keeps the type Promise<void>, even if it never ends: ${body}`, (t) => {
    t.is(callIn(`${TAG}\nexport async function pay() { ${body} }`), "await ");
    t.is(callIn(`export class A {\n${TAG}\nasync pay() { ${body} } }`), "await ");
  });
}

for (const body of WITH_VALUE) {
  test(`the woven function returns the value of its body: ${body}`, (t) => {
    t.is(callIn(`${TAG}\nexport async function pay() { ${body} }`), "return await ");
  });
}

test("an arrow function that only throws and a function with a declared type keep their types", (t) => {
  t.is(callIn(`${TAG}\nexport const pay = async () => { throw 1; };`), "return await ");
  t.is(callIn(`${TAG}\nexport async function pay(): Promise<never> { throw 1; }`), "return await ");
});

test("a parameter that the body reassigns is also a parameter of the body's function", (t) => {
  const source = `${TAG}\nexport async function pay(limit: number, rest: number) { limit ??= 10; rest; }`;
  t.is(headOf(source), "async (limit = limit_1)");
  const both = `${TAG}\nexport async function pay(limit: number, rest: number): Promise<void> { limit = 1; rest += 2; }`;
  t.is(headOf(both), "async (limit = limit_1, rest = rest_1): Promise<void>");
  t.regex(
    weave("a.ts", both, { ts, module: "esm" })?.code ?? "",
    / const limit_1 = limit; const rest_1 = rest;/,
  );
});

test("the parameters and types of the body's function map to their text on disk", (t) => {
  const source = `${TAG}\nexport async function pay(id: string, limit: Limit = 1): Promise<Paid> { id = ""; limit = 2; }`;
  const woven = weave("a.ts", source, { ts, module: "esm" });
  const [, head = ""] = /runReentrant\(lock, (.*?) =>/.exec(woven?.code ?? "") ?? [];
  t.is(head, "async (id = id_1, limit: Limit = limit_1): Promise<Paid>");
  const from = woven?.code.indexOf(head) ?? 0;
  const onDisk = (words: string): string => {
    const start = from + head.indexOf(words);
    const place = woven?.positions.toDisk({ start, end: start + words.length });
    return source.slice(place?.start, place?.end);
  };
  for (const words of ["id", "limit", "Limit", "Promise<Paid>", "Paid"]) t.is(onDisk(words), words);
});

test("the body's function keeps the declared return type, which is in a comment in JavaScript", (t) => {
  const typed = `${TAG}\nexport async function pay(): Promise<void> { work(); }`;
  t.is(headOf(typed), "async (): Promise<void>");
  const documented = `${TAG.slice(0, -2)}\n@returns {Promise<void>} */\nexport async function pay() { work(); }`;
  t.is(headOf(documented, "a.js"), "/** @returns {Promise<void>} */ async ()");
});

test("a return type of several lines becomes one line, with escaped line breaks in templates", (t) => {
  const typeOf = (type: string): string | undefined =>
    /\): (.*)$/s.exec(headOf(`${TAG}\nexport async function pay(): ${type} { work(); }`))?.[1];
  t.is(typeOf("Promise<\n  void\n>"), "Promise<void>");
  for (const [lineBreak, written] of [
    ["\n", String.raw`\n`],
    ["\r\n", String.raw`\n`],
    ["\u2028", String.raw`\u2028`],
    ["\u2029", String.raw`\u2029`],
  ] as const) {
    t.is(typeOf(`Promise<\`a${lineBreak}b\`>`), `Promise<\`a${written}b\`>`);
    const spans = [`a${lineBreak}`, `${lineBreak}b`, `c${lineBreak}`] as const;
    const template = (texts: readonly string[]): string => `Promise<\`${texts.join("${string}")}\`>`;
    t.is(typeOf(template(spans)), template(spans.map((text) => text.replace(lineBreak, written))));
  }
});
