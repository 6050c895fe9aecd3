import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";
import { syntaxErrors, unmark } from "./bad-tags/row";

const ESM = { ts, module: "esm" } as const;

const onFunction = (tag: string, fn = "export function post(id: string) { return id; }"): string =>
  `/** ${tag} */\n${fn}`;

/** The reported words are between « and ». */
const WRONG: readonly (readonly [title: string, source: string, code: string, message: string])[] = [
  [
    "no flag and no key",
    onFunction("«@needsLock» keyName=id"),
    "LW1101",
    "`@needsLock` needs `businessFlag=` (the namespace of its keys) or `key=` (the whole key). Fix: add one of them.",
  ],
  [
    "an attribute about acquiring",
    onFunction("@needsLock businessFlag=order «lockTime»=30s"),
    "LW1002",
    "`@needsLock` has no attribute `lockTime`. It only names the lock that callers hold: `businessFlag`, `keyName`, `keyType`, `keyClass`, `fieldName`, `key`, `store`, or `mode`. Fix: remove it.",
  ],
  [
    "an unknown parameter",
    onFunction("@needsLock businessFlag=order keyName=«idd»"),
    "LW1202",
    "The function has no parameter `idd`. Did you mean `id`?",
  ],
  [
    "an unknown mode",
    onFunction("@needsLock businessFlag=order mode=«reed»"),
    "LW1120",
    "Expected `mode` to be `read` or `write`, got `reed`.",
  ],
  [
    "a near spelling with an attribute",
    onFunction("«@needLock» businessFlag=order"),
    "LW1007",
    "There is no tag `@needLock`. Did you mean `@needsLock`?",
  ],
  [
    "another case",
    onFunction("«@NeedsLock»"),
    "LW1007",
    "There is no tag `@NeedsLock`. Did you mean `@needsLock`?",
  ],
  [
    "a tag in a plain comment",
    "/* «@needsLock» businessFlag=order */\nexport function post() { work(); }",
    "LW1008",
    "`@needsLock` works only in a JSDoc comment. Fix: begin the comment with `/**`.",
  ],
  [
    "a tag in the middle of a line",
    onFunction("Posts. «@needsLock» businessFlag=order"),
    "LW1009",
    "`@needsLock` must be at the start of its line in the comment. Fix: move it to a line of its own.",
  ],
  [
    "parentheses",
    onFunction("@needsLock«(businessFlag=order)»"),
    "LW1011",
    "The attributes of `@needsLock` have no parentheses. Fix: write `@needsLock businessFlag=payOrder`.",
  ],
  [
    "a constructor",
    "export class Ledger { /** «@needsLock» businessFlag=order */ constructor() { work(); } }",
    "LW1303",
    "Lockweave cannot check a constructor. Fix: put `@needsLock` on a method.",
  ],
  [
    "an accessor",
    "export class Ledger { /** «@needsLock» businessFlag=order */ get total() { return 1; } }",
    "LW1304",
    "Lockweave cannot check an accessor. Fix: put `@needsLock` on a method.",
  ],
  [
    "a class",
    "/** «@needsLock» businessFlag=order */ export class Ledger { post() { work(); } }",
    "LW1301",
    "`@needsLock` belongs to functions, but this is a class declaration. Fix: move the tag to a function, or remove it.",
  ],
  [
    "an overload",
    "/** «@needsLock» businessFlag=order */ export function post(id: string): void;\nexport function post(id: unknown) { work(id); }",
    "LW1305",
    "An overload signature has no body to check. Fix: put `@needsLock` on the implementation.",
  ],
];

for (const [title, source, code, message] of WRONG) {
  test(`${code} reports @needsLock with ${title}, and the function refuses to run`, (t) => {
    const { text, start, end } = unmark(source);
    const woven = weave("a.ts", text, ESM);
    t.like(woven?.diagnostics[0], { start, end, code, message });
    t.is(woven?.diagnostics.length, 1);
    t.deepEqual(woven?.needs, []);
    t.regex(woven?.code ?? "", /lockweave\.refuse\(|\(\(\) => \{ throw new Error\(/);
    t.deepEqual(syntaxErrors("a.ts", woven?.code ?? ""), []);
  });
}

test("LW1309 reports @needsLock in a file that is not a module", (t) => {
  const woven = weave("a.ts", onFunction("@needsLock businessFlag=order", "function post() {}"), ESM);
  t.like(woven?.diagnostics[0], { code: "LW1309" });
  t.regex(woven?.code ?? "", /throw new Error\(/);
});

test("other words, and prose about the tag, are not tags", (t) => {
  for (const comment of [
    "@needsDocs",
    "@needsClock",
    "Callers `@needsLock` it.",
    "@needs a lock",
    "@neededBy post",
  ])
    t.is(weave("a.ts", onFunction(comment), ESM), undefined, comment);
});

test("the check is the first statement, after directives, or comes before the value", (t) => {
  const woven = (fn: string): string =>
    weave("a.ts", onFunction("@needsLock businessFlag=order keyName=id", fn), ESM)?.code ?? "";
  const check = 'lockweave.needs({ site: "post", businessFlag: "order" }, id)';
  const end = ' import * as lockweave from "lockweave/runtime"; lockweave.expectNeeds();';
  const tag = "/** @needsLock businessFlag=order keyName=id */\n";
  t.is(
    woven("export function post(id) { return id; }"),
    `${tag}export function post(id) { ${check}; return id; }${end}`,
  );
  t.is(
    woven('export function post(id) { "use strict"; return id; }'),
    `${tag}export function post(id) { "use strict"; ${check}; return id; }${end}`,
  );
  t.is(
    woven("export const post = (id) => ({ id });"),
    `${tag}export const post = (id) => (${check}, ({ id }));${end}`,
  );
});

test("a store that a need names must be configured", (t) => {
  const woven = weave("a.ts", onFunction("@needsLock businessFlag=order store=payments"), ESM);
  t.true(woven?.code.endsWith('lockweave.needsStore("payments", "post"); lockweave.expectNeeds();'));
});

test("woven code is not woven again, with one tag or with both", (t) => {
  for (const [tags, fn] of [
    ["@needsLock businessFlag=order keyName=id", "export function post(id) { return id; }"],
    ["@needsLock businessFlag=order keyName=id", "export const post = (id) => id;"],
    [
      "\n * @needsLock businessFlag=order keyName=id\n * @redisLock businessFlag=account\n",
      "export async function post(id) { return id; }",
    ],
  ] as const) {
    const once = weave("a.js", onFunction(tags, fn), ESM);
    t.deepEqual(once?.diagnostics, []);
    t.is(weave("a.js", once?.code ?? "", ESM), undefined, once?.code);
  }
});

test("if one of two tags is wrong, the function only refuses to run", (t) => {
  const fn = "export async function post(id: string) { return id; }";
  for (const [needed, locked] of [
    ["keyName=id", "keyName=idd"],
    ["keyName=idd", "keyName=id"],
  ]) {
    const tags = `\n * @needsLock businessFlag=order ${needed}\n * @redisLock businessFlag=account ${locked}\n`;
    const woven = weave("a.ts", onFunction(tags, fn), ESM);
    t.deepEqual(
      woven?.diagnostics.map(({ code }) => code),
      ["LW1202"],
    );
    t.deepEqual([woven?.sites, woven?.needs], [[], []]);
    t.is(woven?.code.match(/lockweave\.refuse\(/g)?.length, 1);
    t.false(woven?.code.includes(".needs("));
  }
});
