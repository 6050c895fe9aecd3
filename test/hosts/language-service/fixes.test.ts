import test from "ava";
import ts from "typescript";
import { fixesFor } from "../../../transformer/hosts/language-service/fixes-by-code";
import { weave } from "../../../transformer/weave/weave";
import { Editor } from "./in-process";

test("the fix for a script with a tag adds an export on its own line", (t) => {
  const script = "/** @redisLock businessFlag=pay */\nasync function pay() {}";
  for (const text of [script, `${script}\n`]) {
    const file = ts.createSourceFile("script.ts", text, ts.ScriptTarget.Latest);
    const found = { ts, file, start: 4, length: 10, words: "@redisLock", message: "" };
    const [change, ...others] = fixesFor("LW1309", found).flatMap(({ changes }) => changes);
    t.deepEqual([change?.span, others], [{ start: text.length, length: 0 }, []]);
    t.is(text + change?.newText, `${script}\nexport {};\n`);
  }
});

test("the fix for a tag without a flag adds the name of its function", (t) => {
  const text = "/** @redisLock keyName=id */\nexport async function pay(id: string) {}";
  const file = ts.createSourceFile("pay.ts", text, ts.ScriptTarget.Latest);
  const start = text.indexOf("@");
  const found = { ts, file, start, length: "@redisLock".length, words: "@redisLock", message: "" };
  t.deepEqual(fixesFor("LW1101", found), [
    {
      description: "Add `businessFlag=pay`",
      changes: [{ span: { start: start + "@redisLock".length, length: 0 }, newText: " businessFlag=pay" }],
    },
  ]);
});

const BODY = "(a: string): Promise<string> { return a; }\nexport { pay };\n";
const ASYNC = `async function pay${BODY}`;

for (const [what, text, ...fixes] of [
  [
    "a missing flag if the function's name cannot be one",
    "/** @redisLock */\nexport async function 付款() {}\n",
  ],
  [
    "a second attribute",
    `/** @redisLock businessFlag=pay keyName=a keyName="a" */\n${ASYNC}`,
    ["Remove the second `keyName`", `/** @redisLock businessFlag=pay keyName=a */\n${ASYNC}`],
  ],
  [
    "a second list",
    `/** @redisLock businessFlag=pay keyName=a   keyName=a,a lockTime=3s */\n${ASYNC}`,
    ["Remove the second `keyName`", `/** @redisLock businessFlag=pay keyName=a lockTime=3s */\n${ASYNC}`],
  ],
  [
    "a parameter marked with # as in other libraries",
    `/** @redisLock businessFlag=pay keyName=#a */\n${ASYNC}`,
    ["Change to `a`", `/** @redisLock businessFlag=pay keyName=a */\n${ASYNC}`],
  ],
  ["a quote with nothing after it", `/** @redisLock businessFlag=pay keyName=" */\n${ASYNC}`],
  [
    "a quote that is not closed",
    `/** @redisLock businessFlag=pay keyName="a lockTime=3s */\n${ASYNC}`,
    ['Close the quote: `"a"`', `/** @redisLock businessFlag=pay keyName="a" lockTime=3s */\n${ASYNC}`],
  ],
  [
    "a line comment after others",
    `// Pays.\n  // @redisLock businessFlag=pay  \n${ASYNC}`,
    ["Begin the comment with `/**`", `// Pays.\n  /** @redisLock businessFlag=pay */\n${ASYNC}`],
  ],
  [
    "a line comment without a space, after a URL",
    `const url = "https://example.org"; //@redisLock businessFlag=pay\n${ASYNC}url;\n`,
    [
      "Begin the comment with `/**`",
      `const url = "https://example.org"; /** @redisLock businessFlag=pay */\n${ASYNC}url;\n`,
    ],
  ],
  [
    "attributes without a tag",
    `/** Pays.\n * businessFlag=pay keyName=a */\n${ASYNC}`,
    ["Write `@redisLock` before them", `/** Pays.\n * @redisLock businessFlag=pay keyName=a */\n${ASYNC}`],
  ],
  [
    "each of two plain comments",
    `/* @redisLock businessFlag=a */\nexport async function a() {}\n/* @redisLock businessFlag=b */\nexport async function b() {}\n`,
    [
      "Begin the comment with `/**`",
      `/** @redisLock businessFlag=a */\nexport async function a() {}\n/* @redisLock businessFlag=b */\nexport async function b() {}\n`,
    ],
    [
      "Begin the comment with `/**`",
      `/* @redisLock businessFlag=a */\nexport async function a() {}\n/** @redisLock businessFlag=b */\nexport async function b() {}\n`,
    ],
  ],
  [
    "a plain comment with a URL in it",
    `/* See https://example.org @redisLock businessFlag=pay */\n${ASYNC}`,
    ["Begin the comment with `/**`", `/** See https://example.org @redisLock businessFlag=pay */\n${ASYNC}`],
  ],
  [
    "parentheses with a space before them",
    `/** @redisLock (businessFlag=pay) */\n${ASYNC}`,
    ["Remove the parentheses", `/** @redisLock businessFlag=pay */\n${ASYNC}`],
  ],
  [
    "parentheses with spaces in them",
    `/** @redisLock( businessFlag=pay ) */\n${ASYNC}`,
    ["Remove the parentheses", `/** @redisLock businessFlag=pay */\n${ASYNC}`],
  ],
  [
    "a plain comment after a line comment",
    `// Pays.\n/* @redisLock businessFlag=pay */\n${ASYNC}`,
    ["Begin the comment with `/**`", `// Pays.\n/** @redisLock businessFlag=pay */\n${ASYNC}`],
  ],
  [
    "a plain comment of several lines",
    `/*\n * @redisLock businessFlag=pay\n */\n${ASYNC}`,
    ["Begin the comment with `/**`", `/**\n * @redisLock businessFlag=pay\n */\n${ASYNC}`],
  ],
  [
    "a tag after text",
    `  /**\n   * Pays. @redisLock businessFlag=pay\n   */\n${ASYNC}`,
    [
      "Put the tag on a line of its own",
      `  /**\n   * Pays.\n   * @redisLock businessFlag=pay\n   */\n${ASYNC}`,
    ],
  ],
  [
    "a tag after text in the comment's first line",
    `  /** Pays. @redisLock businessFlag=pay */\n${ASYNC}`,
    ["Put the tag on a line of its own", `  /** Pays.\n   * @redisLock businessFlag=pay */\n${ASYNC}`],
  ],
  [
    "parentheses with spaces before and in them",
    `/** @redisLock ( businessFlag=pay ) */\n${ASYNC}`,
    ["Remove the parentheses", `/** @redisLock businessFlag=pay */\n${ASYNC}`],
  ],
  [
    "parentheses at the tag's name",
    `/** @redisLock(businessFlag=pay) */\n${ASYNC}`,
    ["Remove the parentheses", `/** @redisLock businessFlag=pay */\n${ASYNC}`],
  ],
  [
    "a comma after a value",
    `/** @redisLock businessFlag=pay, keyName=a */\n${ASYNC}`,
    ["Remove the comma", `/** @redisLock businessFlag=pay keyName=a */\n${ASYNC}`],
  ],
  [
    "a number that is implausible in its unit",
    `/** @redisLock businessFlag=pay lockTime=30000 */\n${ASYNC}`,
    ["Change to `30000ms`", `/** @redisLock businessFlag=pay lockTime=30000ms */\n${ASYNC}`],
    ["Change to `30000s`", `/** @redisLock businessFlag=pay lockTime=30000s */\n${ASYNC}`],
  ],
  [
    "a word for true",
    `/** @redisLock businessFlag=pay fencing=On */\n${ASYNC}`,
    ["Change to `true`", `/** @redisLock businessFlag=pay fencing=true */\n${ASYNC}`],
  ],
  [
    "a misspelled true",
    `/** @redisLock businessFlag=pay fencing=tru */\n${ASYNC}`,
    ["Change to `true`", `/** @redisLock businessFlag=pay fencing=true */\n${ASYNC}`],
  ],
  [
    "a word for false",
    `/** @redisLock businessFlag=pay watchdog=no */\n${ASYNC}`,
    ["Change to `false`", `/** @redisLock businessFlag=pay watchdog=false */\n${ASYNC}`],
  ],
  [
    "a misspelled false",
    `/** @redisLock businessFlag=pay watchdog=fals */\n${ASYNC}`,
    ["Change to `false`", `/** @redisLock businessFlag=pay watchdog=false */\n${ASYNC}`],
  ],
  [
    "a word that means neither true nor false",
    `/** @redisLock businessFlag=pay watchdog=sometimes */\n${ASYNC}`,
  ],
  ["an expression with a quote in it", `/** @redisLock businessFlag=pay keyName=a+"b" */\n${ASYNC}`],
  [
    "a function that is not async",
    `/** @redisLock businessFlag=pay */\nfunction pay${BODY.replace("Promise<string>", "string")}`,
    [
      "Make the function `async`",
      `/** @redisLock businessFlag=pay */\nasync function pay${BODY.replace("Promise<string>", "string")}`,
    ],
  ],
  [
    "an exported function that is not async",
    `/** @redisLock businessFlag=pay */\nexport default function pay() { return 1; }\n`,
    [
      "Make the function `async`",
      "/** @redisLock businessFlag=pay */\nexport default async function pay() { return 1; }\n",
    ],
  ],
  [
    "a tag of the second function in a file",
    `/** @redisLock businessFlag=a */\nasync function a() {}\n/** @redisLock businessFlag=pay */\nfunction pay() { return 1; }\nexport { a, pay };\n`,
    [
      "Make the function `async`",
      `/** @redisLock businessFlag=a */\nasync function a() {}\n/** @redisLock businessFlag=pay */\nasync function pay() { return 1; }\nexport { a, pay };\n`,
    ],
  ],
  [
    "a tag of the first function in a file",
    `/** @redisLock keyName=id */\nexport async function pay(id: string) {}\n/** @redisLock businessFlag=a */\nexport async function a() {}\n`,
    [
      "Add `businessFlag=pay`",
      `/** @redisLock businessFlag=pay keyName=id */\nexport async function pay(id: string) {}\n/** @redisLock businessFlag=a */\nexport async function a() {}\n`,
    ],
  ],
  [
    "a script",
    `/** @redisLock businessFlag=pay */\nasync function pay() {}\n`,
    ["Add `export {}`", "/** @redisLock businessFlag=pay */\nasync function pay() {}\nexport {};\n"],
  ],
] as const) {
  test(`offers ${fixes.length === 0 ? "no fix" : "the right fix"} for ${what}`, (t) => {
    const editor = new Editor(
      { "pay.ts": text },
      { options: { moduleDetection: ts.ModuleDetectionKind.Legacy } },
    );
    t.deepEqual(editor.fixes() as unknown, fixes);
  });
}

test("TypeScript offers its own fixes outside a tag, and none inside it for the code after the comment", (t) => {
  const text = `/** @redisLock businessFlag=pay */
export async function pay(): Promise<void> { cost = 1; }
export class Shop { /** @redisLock businessFlag=ship */ async ship(): Promise<void> { this.sent = true; } }
`;
  const editor = new Editor({ "pay.ts": text });
  const file = editor.pathOf("pay.ts");
  const fixesAt = (words: string, code: number): number => {
    const start = text.indexOf(words);
    return editor.service.getCodeFixesAtPosition(file, start, start + words.length, [code], {}, {}).length;
  };
  const sent = text.indexOf("sent");
  const own = editor.plain.getCodeFixesAtPosition(file, sent, sent + 4, [2339], {}, {}).length;
  t.true(own > 0);
  t.is(fixesAt("sent", 2339), own);
  t.is(fixesAt("businessFlag=ship", 2339), 0);
  const unused = new Editor(
    { "pay.ts": text.replace("async ship", "private async ship") },
    { options: { noUnusedLocals: true } },
  );
  const tag = text.indexOf("businessFlag=ship");
  const fixes = (service: ts.LanguageService): number =>
    service.getCodeFixesAtPosition(file, tag, tag + 12, [6133], ts.getDefaultFormatCodeSettings(), {}).length;
  t.is(fixes(unused.service), 0);
  t.true(fixes(unused.plain) > 0);
});

test("a fix is offered only at the position and with the code of its error", (t) => {
  const text = `/** @redisLock businessFlag=pay keyName=idd,iddd fencing=yes */\nexport async function pay(id: string): Promise<void> {}\n`;
  const editor = new Editor({ "pay.ts": text });
  const fixes = (words: string, code: number): string[] => {
    const start = text.indexOf(words);
    return editor.service
      .getCodeFixesAtPosition(editor.pathOf("pay.ts"), start, start + words.length, [code], {}, {})
      .map(({ fixName, description }) => `${fixName}: ${description}`);
  };
  t.deepEqual(fixes("yes", 901_106), ["lockweave: Change to `true`"]);
  t.deepEqual(fixes("idd", 901_106), []);
  t.deepEqual(fixes("yes", 901_202), []);
  t.deepEqual(fixes("ye", 901_106), []);
  const misspelled = new Editor({ "pay.ts": text.replace("redisLock", "redisLok") });
  const start = text.indexOf("@");
  const both = misspelled.service.getCodeFixesAtPosition(
    misspelled.pathOf("pay.ts"),
    start,
    start + "@redisLok".length,
    [2304, 901_007],
    {},
    {},
  );
  t.deepEqual(
    both.map(({ description }) => description),
    ["Change to `@redisLock`"],
  );
  t.deepEqual(fixes("idd", 901_202), ["lockweave: Change to `id`"]);
});

for (const [code, attribute, meant] of [
  ["LW1002", "lokTime=20", "lockTime"],
  ["LW1107", "keyName=id keyType=CLAS", "CLASS"],
  ["LW1108", "onFailure=trow", "throw"],
  ["LW1110", "onLost=trow", "throw"],
  ["LW1114", "release=backgruond", "background"],
  ["LW1114", "release=awaitd", "awaited"],
  ["LW1120", "mode=reads", "read"],
  ["LW1120", "mode=writ", "write"],
  ["LW1201", "keyName=#id", "id"],
  ["LW1202", "keyName=idd", "id"],
] as const) {
  test(`offers to correct what the problem names, not what its message says: ${attribute}`, (t) => {
    const text = `/** @redisLock businessFlag=pay ${attribute} */\nexport async function pay(id: string) {}`;
    const [problem] = weave("pay.ts", text, { ts, module: "esm" })?.diagnostics ?? [];
    t.is(problem?.code, code);
    t.deepEqual(problem?.replacements, [meant]);
    const { start = 0, end = 0, replacements } = problem ?? {};
    const file = ts.createSourceFile("pay.ts", text, ts.ScriptTarget.Latest);
    const words = text.slice(start, end);
    const found = { ts, file, start, length: end - start, words, message: " Did you mean 'x'?" };
    const change = { span: { start, length: end - start }, newText: meant };
    t.deepEqual(fixesFor(code, { ...found, replacements }), [
      { description: `Change to \`${meant}\``, changes: [change] },
    ]);
    t.true(fixesFor(code, found).every(({ description }) => !description.includes("`x`")));
  });
}

for (const [words, ...meant] of [
  ["5sec", "5s"],
  ["1.5minutes", "1.5m"],
  ["200millis", "200ms"],
  ["2H", "2h"],
  ["soon"],
  ["999h"],
] as const) {
  test(`offers to correct the unit of a duration, and guesses nothing else: ${words}`, (t) => {
    const file = ts.createSourceFile("pay.ts", words, ts.ScriptTarget.Latest);
    const fixes = fixesFor("LW1104", { ts, file, start: 0, length: words.length, words, message: "" });
    t.deepEqual(
      fixes.map(({ description }) => description),
      meant.map((text) => `Change to \`${text}\``),
    );
  });
}
