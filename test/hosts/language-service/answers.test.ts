import test from "ava";
import ts from "typescript";
import { Editor, type Settings } from "./in-process";

// The plugin's answers to single requests of an editor. language-service.test.ts tests them through a real server.

const ORDERS = `export interface Line { sku: string }
export interface Order { no: string; user?: { id: string }; lines: Line[]; "not a name": string; pay(): void }
export class Busy extends Error {}
export declare namespace errors { class Late extends Error {} interface Late { at: number } }
`;

/** Opens a file that has a class with a tagged method and imports ORDERS. */
function tagged(words: string, settings: Settings = {}): Editor {
  const text = `import { Busy, errors, type Order } from "./orders";
declare namespace shapes { interface Named { no: string } }
interface count { no: string }
export class Shop {
  tenant = "t";
  /** @redisLock ${words} */
  async pay(order: Order, count: number): Promise<void> {}
  /** @redisLock businessFlag=other keyName=other */
  async other(other: string): Promise<void> {}
}
`;
  return new Editor({ "orders.ts": ORDERS, "pay.ts": text }, settings);
}

// ---- suggestions ----------------------------------------------------------------------------------------

function namesAt(words: string): string[] {
  return tagged(words)
    .suggestions()
    .map(({ name }) => name);
}

test("a suggestion replaces the whole word at the cursor", (t) => {
  for (const [words, becomes] of [
    ["businessFlag=pay keyName=or‸", "businessFlag=pay keyName=order"],
    ["businessFlag=pay keyName=or‸xx.no", "businessFlag=pay keyName=order.no"],
    ["businessFlag=pay keyName=order.us‸x", "businessFlag=pay keyName=order.user"],
    ["businessFlag=pay lockTime=20‸", "businessFlag=pay lockTime=20s"],
    ["businessFlag=pay fen‸cin", "businessFlag=pay fencing="],
  ] as const) {
    const editor = tagged(words);
    const wanted = /[\w.]*=?$/.exec(becomes)?.[0] ?? "";
    const entry = editor
      .suggestions()
      .find(
        ({ name, insertText = name }) =>
          wanted.endsWith(insertText) ||
          wanted.startsWith(`${insertText}.`) ||
          becomes.includes(`=${insertText}.`),
      );
    if (entry?.replacementSpan === undefined) throw new Error(`No suggestion for ${words}`);
    const { file } = editor.cursor;
    const change = { span: entry.replacementSpan, newText: entry.insertText ?? entry.name };
    t.true(
      editor.changed(file, [change]).includes(`@redisLock ${becomes} */`),
      editor.changed(file, [change]),
    );
  }
});

test("suggestions keep their order after an editor sorts them", (t) => {
  const entries = tagged("businessFlag=pay ‸").suggestions();
  t.true(entries.length > 15);
  const sorted = entries.toSorted((a, b) => (a.sortText < b.sortText ? -1 : 1));
  t.deepEqual(
    sorted.map(({ name }) => name),
    entries.map(({ name }) => name),
  );
  t.is(new Set(entries.map(({ sortText }) => sortText.length)).size, 1);
});

for (const attribute of ["lockTime", "waitTime", "lockAtLeast", "holdAtMost"]) {
  test(`suggests durations for ${attribute}, and units after a number`, (t) => {
    const names = namesAt(`businessFlag=pay ${attribute}=‸`);
    t.true(names.length > 0);
    for (const name of names) t.regex(name, /^\d+(?:ms|s|m|h)$/);
    t.deepEqual(namesAt(`businessFlag=pay ${attribute}=15‸`), ["15ms", "15s", "15m", "15h"]);
  });
}

test("suggests paths in the expressions of times and counts", (t) => {
  t.deepEqual(namesAt('businessFlag=pay lockTime="${‸'), ["order", "count", "this"]);
  t.deepEqual(namesAt('businessFlag=pay permits="${order.user.‸'), ["id"]);
});

test("suggests the paths to a signal", (t) => {
  t.deepEqual(namesAt("businessFlag=pay signal=‸"), ["order", "count", "this"]);
  t.deepEqual(namesAt("businessFlag=pay signal=order.user.‸"), ["id"]);
});

test("suggests durations, 0, and forever for wait, and units after a number", (t) => {
  t.deepEqual(namesAt("businessFlag=pay wait=‸"), ["5s", "500ms", "0", "forever"]);
  t.deepEqual(namesAt("businessFlag=pay wait=15‸"), ["15ms", "15s", "15m", "15h"]);
});

test("suggests the fields of the key's object, and none without such an object", (t) => {
  const words = "businessFlag=pay keyName=order keyType=JSON fieldName=";
  t.deepEqual(namesAt(`${words}‸`), ["no", "user", "lines"]);
  t.deepEqual(namesAt(`${words}user.‸`), ["id"]);
  t.deepEqual(namesAt("businessFlag=pay fieldName=‸"), []);
  t.deepEqual(namesAt("businessFlag=pay keyName=order.lines[0].‸"), ["sku"]);
  t.deepEqual(namesAt("businessFlag=pay keyName=order.lines.none.‸"), []);
});

test("suggests fields of a mapped type, which have no declaration", (t) => {
  const text = `type Both = { [Name in "no" | "id"]: string };
/** @redisLock businessFlag=pay keyName=order.‸ */
export async function pay(this: Both, order: Both): Promise<void> {}
`;
  const names = (of: string): string[] => new Editor({ "pay.ts": of }).suggestions().map(({ name }) => name);
  t.deepEqual(names(text), ["no", "id"]);
  t.deepEqual(names(text.replace("order.‸", "‸")), ["order", "this"]);
});

test("suggestions are marked neither as global nor as member completions", (t) => {
  const { service, cursor } = tagged("businessFlag=pay keyName=‸");
  t.like(service.getCompletionsAtPosition(cursor.file, cursor.offset, {}), {
    isGlobalCompletion: false,
    isMemberCompletion: false,
    isNewIdentifierLocation: false,
  });
});

test("suggests the same names for `when` as for a key", (t) => {
  t.deepEqual(namesAt("businessFlag=pay when=‸"), ["order", "count", "this"]);
  t.deepEqual(namesAt("businessFlag=pay when=order.‸"), ["no", "user", "lines"]);
});

test("suggests `this` only in a function where it has properties", (t) => {
  const names = (text: string): string[] =>
    new Editor({ "pay.ts": text }).suggestions().map(({ name }) => name);
  const tag = "/** @redisLock businessFlag=pay keyName=‸ */";
  t.deepEqual(names(`${tag}\nexport async function pay(id: string): Promise<void> {}`), ["id"]);
  t.deepEqual(names(`export class A { ${tag}\nasync pay(id: string): Promise<void> {} }`), ["id", "this"]);
});

test("suggests classes and interfaces of the file and its imports for keyClass", (t) => {
  t.deepEqual(namesAt("businessFlag=pay keyClass=‸").toSorted(), ["Busy", "Order", "Shop", "count"]);
});

test("suggests no attributes before the tag, in a later tag, or outside its comment", (t) => {
  const at = (text: string): string[] => new Editor({ "pay.ts": text }).suggestions().map(({ name }) => name);
  const fn = "export async function pay(id: string): Promise<void> {}\n";
  t.deepEqual(at(`/** Pays. ‸ @redisLock businessFlag=pay */\n${fn}`), []);
  t.deepEqual(at(`/** @redis‸Lock businessFlag=pay */\n${fn}`), ["redisLock", "needsLock"]);
  t.deepEqual(at(`/** @redisLock‸ businessFlag=pay */\n${fn}`), ["redisLock", "needsLock"]);
  t.deepEqual(at(`/**\n * @redisLock businessFlag=pay\n * @param id ‸\n */\n${fn}`), []);
  t.deepEqual(at(`/** @redisLock businessFlag=pay */ ‸\n${fn}`), []);
  t.deepEqual(at(`/** @redisLock businessFlag=pay */\n${fn.replace("{}", "{ ‸ }")}`), []);
  t.true(at(`/**\n * @redisLock businessFlag=pay\n *   lock‸\n */\n${fn}`).includes("lockTime"));
});

test("suggests for @needsLock only the attributes that identify the lock", (t) => {
  const text = "/** @needsLock businessFlag=pay ‸ */\nexport function post(id: string): void {}\n";
  t.deepEqual(
    new Editor({ "pay.ts": text }).suggestions().map(({ name }) => name),
    ["keyName", "keyType", "keyClass", "fieldName", "key", "store", "mode"],
  );
});

test("suggests only our tags after an @, each with its required attribute", (t) => {
  for (const [text, becomes] of [
    ["/** @re‸ */", "/** @redisLock businessFlag= */"],
    ["/**\n * @‸\n */", "/**\n * @redisLock businessFlag=\n */"],
  ] as const) {
    const editor = new Editor({ "pay.ts": `${text}\nexport async function pay(): Promise<void> {}\n` });
    const [entry, ...others] = editor.suggestions();
    t.deepEqual(
      others.map(({ insertText }) => insertText),
      ["needsLock businessFlag="],
    );
    t.like(entry, {
      name: "redisLock",
      kind: ts.ScriptElementKind.keyword,
      kindModifiers: "",
      sortText: "0",
    });
    const span = entry?.replacementSpan ?? { start: 0, length: 0 };
    const change = { span, newText: entry?.insertText ?? "" };
    t.true(editor.changed(editor.pathOf("pay.ts"), [change]).startsWith(becomes));
  }
  t.deepEqual(new Editor({ "pay.ts": "// @re‸\n" }).suggestions(), []);
  t.deepEqual(new Editor({ "pay.ts": "/** of @re‸ */\n" }).suggestions(), []);
});

test("a suggested attribute has documentation, and a suggested value has none", (t) => {
  const detailsOf = (words: string, name: string): ts.CompletionEntryDetails | undefined => {
    const editor = tagged(words, { entry: { defaults: { lockTime: "20s" } } });
    const { file, offset } = editor.cursor;
    return editor.service.getCompletionEntryDetails(
      file,
      offset,
      name,
      undefined,
      undefined,
      undefined,
      undefined,
    );
  };
  t.deepEqual(detailsOf("businessFlag=pay ‸", "lockTime"), {
    name: "lockTime",
    kind: ts.ScriptElementKind.memberVariableElement,
    kindModifiers: "",
    displayParts: [{ kind: "text", text: "lockTime" }],
    documentation: [
      {
        kind: "text",
        text: "The time to live of the key, in seconds or with a unit. For example, `20`, `500ms`, `20s`, or `2m`.\n\nDefault: `20s` in this project.",
      },
    ],
  });
  t.deepEqual(detailsOf("businessFlag=pay keyName=‸", "order"), {
    name: "order",
    kind: ts.ScriptElementKind.parameterElement,
    kindModifiers: "",
    displayParts: [{ kind: "text", text: "order" }],
  });
});

// ---- what is at the cursor ------------------------------------------------------------------------------

test("hovering a tag from its start to its end shows its lock", (t) => {
  for (const words of ["‸@redisLock", "@redis‸Lock", "@redisLock‸"]) {
    const text = `/** ${words} businessFlag=pay keyName=id */\nexport async function pay(id: string): Promise<void> {}\n`;
    t.deepEqual(new Editor({ "pay.ts": text }).hover(), {
      at: "@redisLock",
      title: "(lock) LOCK_pay_{id}",
      text: "`pay` runs only while it holds this lock.",
    });
  }
});

for (const [words, title] of [
  ["businessFlag=pay", "LOCK_pay"],
  ["keyName=order.no", "LOCK_..._{order.no}"],
  ["businessFlag=pay keyName=order.no,count", "LOCK_pay_{order.no},{count}"],
  ["businessFlag=pay keyName=order keyType=JSON fieldName=no,user.id", "LOCK_pay_{order.no},{order.user.id}"],
  ["businessFlag=pay keyName=order.no,count each=true", "LOCK_pay_{order.no} LOCK_pay_{count}"],
  ["businessFlag=pay keyName=order.no each=false", "LOCK_pay_{order.no}"],
  ['key="order:${order.no}:${count}"', "order:{order.no}:{count}"],
] as const) {
  test(`hovering a tag with ${words} shows the lock ${title}`, (t) => {
    const editor = tagged(words);
    const offset =
      editor.service.getProgram()?.getSourceFile(editor.pathOf("pay.ts"))?.text.indexOf("redisLock") ?? 0;
    const info = editor.service.getQuickInfoAtPosition(editor.pathOf("pay.ts"), offset);
    t.is(ts.displayPartsToString(info?.displayParts), `(lock) ${title}`);
    t.like(info, {
      kind: ts.ScriptElementKind.memberVariableElement,
      kindModifiers: "",
      displayParts: [{ kind: "text" }],
      documentation: [{ kind: "text" }],
    });
  });
}

test("hovering an attribute from its start to its end shows it, even in a second tag", (t) => {
  for (const words of ["‸keyName=order.no", "keyName‸=order.no"]) {
    t.like(tagged(`businessFlag=pay ${words}`).hover(), { at: "keyName", title: "(attribute) keyName" });
  }
  const text = `/** @redisLock businessFlag=a */\nexport async function a(): Promise<void> {}
/** @redisLock business‸Flag=b */\nexport async function b(): Promise<void> {}\n`;
  t.like(new Editor({ "pay.ts": text }).hover(), { at: "businessFlag", title: "(attribute) businessFlag" });
});

for (const [words, at, title] of [
  ["keyName=‸order.no", "order", "(parameter) order: Order"],
  ["keyName=order‸.no", "order", "(parameter) order: Order"],
  ["keyName=order.no‸", "no", "(property) Order.no: string"],
  ["keyName=order.lines[0].s‸ku", "sku", "(property) Line.sku: string"],
  ["keyName=order.user.i‸d", "id", "(property) id: string"],
  ["keyName=this.ten‸ant", "tenant", "(property) Shop.tenant: string"],
  ['keyName="(order.lines[0]!).s‸ku"', "sku", "(property) Line.sku: string"],
  ["when=\"order.no === 'a' && cou‸nt > 1\"", "count", "(parameter) count: number"],
  ["keyName=order keyType=CLASS fieldName=user.i‸d", "id", "(property) id: string"],
  ["keyName=order keyType=CLASS fieldName=lines[0].s‸ku", "sku", "(property) Line.sku: string"],
  [
    "keyName=order keyType=CLASS keyClass=Ord‸er fieldName=no",
    "Order",
    "(alias) interface Order\nimport Order",
  ],
  ["keyName=order keyType=CLASS keyClass=shapes.Nam‸ed fieldName=no", "Named", "interface shapes.Named"],
  ["keyName=order keyType=CLASS keyClass=co‸unt fieldName=no", "count", "interface count"],
  ["onFailure=Bu‸sy", "Busy", "(alias) class Busy\nimport Busy"],
  ["onFailure=errors.La‸te", "Late", "class errors.Late\ninterface errors.Late"],
  ["onFailure=err‸ors.Late", "errors", "(alias) namespace errors\nimport errors"],
] as const) {
  test(`hovering the name in ${words} shows its declaration`, (t) => {
    t.like(tagged(`businessFlag=pay ${words}`).hover(), { at, title });
  });
}

for (const [what, words] of [
  ["a business flag that is named like a parameter", "businessFlag=or‸der"],
  ["an option that is named like a parameter", "businessFlag=pay mode=ord‸er"],
  ["an unknown name", "businessFlag=pay keyName=nob‸ody"],
  ["an unknown member of a namespace", "businessFlag=pay onFailure=errors.No‸ne"],
  ["a parameter of a function in the key", 'businessFlag=pay keyName="order.lines.map((cou‸nt) => count)"'],
] as const) {
  test(`hovering ${what} shows nothing`, (t) => {
    t.is(tagged(words).hover(), undefined);
  });
}

test("go to definition leads from a name in a tag to its declaration", (t) => {
  const editor = tagged("businessFlag=pay keyName=order.n‸o");
  const { file, offset } = editor.cursor;
  const found = editor.service.getDefinitionAndBoundSpan(file, offset);
  t.is(found && editor.textOf(file, found.textSpan), "no");
  t.deepEqual(
    found?.definitions?.map(({ fileName, textSpan }) => [fileName, editor.textOf(fileName, textSpan)]),
    [[editor.pathOf("orders.ts"), "no"]],
  );
});

// ---- renaming -------------------------------------------------------------------------------------------

test("renaming a name changes the tags of all files, each position once", (t) => {
  const editor = tagged("businessFlag=pay keyName=order.no,count");
  editor.type("orders.ts", ORDERS.replace("no: string", "n‸o: string"));
  editor.type(
    "ship.ts",
    `import type { Order } from "./orders";
/** @redisLock businessFlag=ship keyName=order.no */
export async function ship(order: Order): Promise<string> { return order.no; }
`,
  );
  t.deepEqual(editor.renamed(), [
    "orders.ts: der { [no]",
    "pay.ts: order.[no]",
    "ship.ts: order.[no]",
    "ship.ts: order.[no]",
  ]);
});

test("renaming a name in a tag changes all its occurrences", (t) => {
  const editor = tagged("businessFlag=order keyName=or‸der.no,count");
  t.deepEqual(editor.renamed(), ["pay.ts: c pay([order]", "pay.ts: yName=[order]"]);
  const { file, offset } = editor.cursor;
  const inComments = editor.service.findRenameLocations(file, offset, false, true, {}) ?? [];
  const places = inComments.map(({ textSpan }) => textSpan.start);
  t.deepEqual(places.length, new Set(places).size);
  const info = editor.service.getRenameInfo(file, offset, {});
  t.true(info.canRename);
  t.is(info.canRename ? editor.textOf(file, info.triggerSpan) : "", "order");
});

test("renaming ignores the tags of installed packages, which also report no errors", (t) => {
  const text = `import type { Order } from "../../orders";
/** @redisLock businessFlag=pay keyName=order.no */
export async function pay(order: Order): Promise<void> {}
`;
  const editor = new Editor({
    "orders.ts": ORDERS.replace("no: string", "n‸o: string"),
    "main.ts": `import { pay } from "shop";\nexport { pay };\n`,
    "node_modules/shop/index.ts": text,
    "node_modules/shop/package.json": `{ "name": "shop", "main": "index.ts", "types": "index.ts" }`,
  });
  const program = editor.service.getProgram();
  t.truthy(program?.getSourceFile(editor.pathOf("node_modules/shop/index.ts")));
  t.deepEqual(editor.renamed(), ["orders.ts: der { [no]"]);
  editor.type("node_modules/shop/index.ts", text.replace("keyName", "keyNme"));
  t.deepEqual(editor.errors("node_modules/shop/index.ts"), []);
});

test("renaming an export does not change a file's alias for it in a tag", (t) => {
  const text = `import { Busy as OrderBusy } from "./orders";
/** @redisLock businessFlag=pay onFailure=OrderBusy */
export async function pay(): Promise<void> {}
`;
  const editor = new Editor({ "orders.ts": ORDERS.replace("class Busy", "class Bu‸sy"), "pay.ts": text });
  t.deepEqual(editor.renamed(), ["orders.ts: class [Busy]", "pay.ts: ort { [Busy]"]);
});

// ---- names that only tags use ---------------------------------------------------------------------------

const STRICT = { options: { noUnusedLocals: true, noUnusedParameters: true } };

for (const [what, text] of [
  [
    "the only name of an import",
    `import { Busy } from "./orders";\n/** @redisLock businessFlag=pay onFailure=Busy */\nexport async function pay(): Promise<void> {}`,
  ],
  [
    "the only used name of an import",
    `import { Busy, type Order } from "./orders";\n/** @redisLock businessFlag=pay onFailure=Busy */\nexport async function pay(): Promise<void> {}`,
  ],
  [
    "a class",
    `class Late extends Error {}\n/** @redisLock businessFlag=pay onFailure=Late */\nexport async function pay(): Promise<void> {}`,
  ],
  [
    "an interface",
    `interface Id { id: string }\n/** @redisLock businessFlag=pay keyName=order keyType=CLASS keyClass=Id fieldName=id */\nexport async function pay(order: { id: string }): Promise<void> {}`,
  ],
  [
    "a parameter",
    `/** @redisLock businessFlag=pay keyName=id */\nexport async function pay(id: string): Promise<void> {}`,
  ],
  [
    "a private property",
    `export class A { private readonly id = "1";\n/** @redisLock businessFlag=pay keyName=this.id */\nasync pay(): Promise<void> {} }`,
  ],
  [
    "the only used part of a destructured parameter",
    `/** @redisLock businessFlag=pay keyName=id */\nexport async function pay({ id, no }: { id: string; no: string }): Promise<void> {}`,
  ],
] as const) {
  test(`${what} that only a tag uses is not reported as unused`, (t) => {
    const editor = new Editor({ "orders.ts": ORDERS, "pay.ts": text }, STRICT);
    t.deepEqual(editor.errors(), []);
    t.true(editor.plain.getSemanticDiagnostics(editor.pathOf("pay.ts")).length > 0);
    editor.type("pay.ts", text.replace(/@redisLock.*\*\//, "*/"));
    t.true(editor.errors().length > 0);
  });
}

test("parameter properties and variables that only tags use are not reported as unused", (t) => {
  const text = `const before = "a", after = "b";
export class Shop {
  constructor(private readonly tenant: string) {}
  /** @redisLock businessFlag=pay keyName="this.tenant + before + after" */
  async pay(): Promise<void> {}
}
`;
  const editor = new Editor({ "pay.ts": text }, STRICT);
  t.deepEqual(editor.errors(), []);
  const theirs = editor.plain.getSemanticDiagnostics(editor.pathOf("pay.ts")).map(({ code }) => code);
  t.deepEqual(
    theirs.toSorted((a, b) => a - b),
    [6138, 6199],
  );
});

test("names that no tag uses are reported as unused, and other errors remain", (t) => {
  const text = `import { Busy } from "./orders";
import { errors } from "./orders";
/** @redisLock businessFlag=pay keyName=id onFailure=Busy */
export async function pay(id: string, no: number): Promise<void> { const n: number = id; }
`;
  const editor = new Editor({ "orders.ts": ORDERS, "pay.ts": text }, STRICT);
  t.deepEqual(
    editor.errors().toSorted(),
    ["2322 n", '6133 import { errors } from "./orders";', "6133 n", "6133 no"].toSorted(),
  );
});

test("organizing imports keeps imports that tags use, and otherwise follows the editor", (t) => {
  const organized = (text: string, mode?: ts.OrganizeImportsMode): string => {
    const editor = new Editor({ "orders.ts": ORDERS, "pay.ts": text });
    const args: ts.OrganizeImportsArgs = {
      type: "file",
      fileName: editor.pathOf("pay.ts"),
      ...(mode && { mode }),
    };
    const changes = editor.service.organizeImports(args, ts.getDefaultFormatCodeSettings(), {});
    return editor.changed(editor.pathOf("pay.ts"), changes[0]?.textChanges ?? []);
  };
  const using = (tag: string): string =>
    `import { errors, Busy } from "./orders";\n/** ${tag} */\nexport async function pay(): Promise<void> {}\n`;
  const first = (text: string): string | undefined => text.split("\n")[0];
  const { SortAndCombine } = ts.OrganizeImportsMode;
  t.is(
    first(organized(using("@redisLock businessFlag=pay onFailure=Busy"))),
    'import { Busy, errors } from "./orders";',
  );
  t.is(first(organized(using("Pays."), SortAndCombine)), 'import { Busy, errors } from "./orders";');
  t.is(first(organized(using("@redisLock businessFlag=pay"))), "/** @redisLock businessFlag=pay */");
  const two = `import { errors } from "./orders";\n${using("@redisLock businessFlag=pay onFailure=Busy").replace("errors, ", "")}`;
  t.is(first(organized(two)), 'import { Busy, errors } from "./orders";');
  const own = `class Late extends Error {}\n${using("@redisLock businessFlag=pay onFailure=Late")}`;
  t.is(organized(own).includes("import"), false);
});

// ---- errors ---------------------------------------------------------------------------------------------

test("a type error in a tag is reported at the name, after each edit", (t) => {
  const text = (fields: string): string => `interface Order { ${fields} }
/** @redisLock businessFlag=pay keyName=order.nr */
export async function pay(order: Order): Promise<void> {}
`;
  const editor = new Editor({ "pay.ts": text("no: string") });
  t.deepEqual(editor.errors(), ["2339 nr"]);
  t.deepEqual(editor.errors(), ["2339 nr"]);
  editor.type("pay.ts", text("nr: string"));
  t.deepEqual(editor.errors(), []);
  editor.type("pay.ts", text("no: string"));
  editor.type("more.ts", text("on: string"));
  t.deepEqual(editor.errors(), ["2339 nr"]);
  t.deepEqual(editor.errors("more.ts"), ["2339 nr"]);
});

test("errors outside tags and in files without tags are reported once", (t) => {
  const editor = new Editor({
    "pay.ts": `/** @redisLock businessFlag=pay */\nexport async function pay(): Promise<number> { return "a"; }\n`,
    "plain.ts": `export const id: number = "a";\n`,
  });
  t.deepEqual(editor.errors(), ["2322 return"]);
  t.deepEqual(editor.errors("plain.ts"), ["2322 id"]);
  t.deepEqual(editor.errors("library.d.ts"), []);
  t.deepEqual(editor.logged, []);
});

test("tags in declaration files have no errors and no hover text", (t) => {
  const text =
    "/** @redisLok businessFlag=pay keyName=no */\nexport declare function pay(id: string): Promise<void>;\n";
  const editor = new Editor({ "pay.d.ts": text.replace("Lok", "L‸ock") });
  t.deepEqual(editor.errors("pay.d.ts"), []);
  t.is(editor.hover(), undefined);
});

test("the project's defaults come from the plugin's entry, or else from the first that weaves", (t) => {
  const hovered = (settings: Settings): string | undefined =>
    tagged("businessFlag=pay lock‸Time=3s", settings).hover()?.text.split("Default: ")[1];
  const own = { entry: { defaults: { lockTime: "1s" } } };
  const weaving = [
    { transform: "other", defaults: { lockTime: "9s" } },
    { transform: "lockweave/transformer", defaults: { lockTime: "2s" } },
    { transform: "lockweave", defaults: { lockTime: "4s" } },
  ];
  t.is(hovered(own), "`1s` in this project.");
  t.is(hovered({ ...own, plugins: weaving }), "`1s` in this project.");
  t.is(hovered({ plugins: weaving }), "`2s` in this project.");
  t.is(hovered({ plugins: weaving.slice(2) }), "`4s` in this project.");
  t.is(hovered({ plugins: "none" }), "`30`.");
});

test("a canceled request for fixes stops", (t) => {
  let isCancelled = false;
  const editor = tagged("businessFlag=pay keyName=order.nr", {
    cancellation: { isCancellationRequested: () => isCancelled },
  });
  const at = editor.service.getProgram()?.getSourceFile(editor.pathOf("pay.ts"))?.text.indexOf("nr") ?? 0;
  const fixes = (): unknown =>
    editor.service.getCodeFixesAtPosition(editor.pathOf("pay.ts"), at, at + 2, [901_202], {}, {});
  t.deepEqual(fixes(), []);
  editor.type("orders.ts", `${ORDERS}\n`);
  editor.plain.getProgram();
  isCancelled = true;
  t.throws(fixes, { any: true, instanceOf: ts.OperationCanceledException });
  t.deepEqual(editor.logged, []);
});

test("a failure of the plugin is logged, and TypeScript's own answers remain", (t) => {
  const entry = {
    get defaults() {
      throw new Error("broken");
    },
  };
  const editor = tagged("businessFlag=pay keyName=order.nr", { entry, plugins: [] });
  editor.type("pay.ts", "export const i‸d: number = true;\n");
  t.deepEqual(editor.errors(), ["2322 id"]);
  t.like(editor.hover(), { title: "const id: number" });
  t.true(editor.suggestions().length === 0 && editor.renamed().length === 1);
  editor.type("pay.ts", "class Shop { pay() { this.sent = true; } }\nnew Shop();\n");
  const sent = "class Shop { pay() { this.".length;
  const file = editor.pathOf("pay.ts");
  t.true(editor.service.getCodeFixesAtPosition(file, sent, sent + 4, [2339], {}, {}).length > 0);
  t.regex(editor.logged[0] ?? "", /^lockweave: Error: broken\n/);
});
