import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { installed } from "../installed";
import { makeProject, PLUGIN, type Project } from "../project";
import { TsServer, type Range } from "./tsserver";
import { isMatrix } from "../../support/suites";

/** The one entry that serves the compiler and the editor. */
const ENTRY = {
  name: "lockweave/language-service",
  ...PLUGIN,
  defaults: { lockTime: "20s" },
  transactions: ["src/db.ts#inTransaction"],
};

const EVERYWHERE = "declare global { interface Everywhere { everywhere: string } }";
const ERRORS = `export const limit = 0;
${EVERYWHERE}
export class Busy extends Error {}
export class OrderBusy extends Busy {}
export abstract class AbstractBusy extends Error {}
export interface User { id: number; name?: string; greet(): void }
export interface Order { no: string; user?: User; lines: { sku: string }[] }
`;

const DATABASE = `export async function inTransaction(work: () => Promise<void>): Promise<void> { await work(); }
/** @redisLock businessFlag=stock */
export async function reserve(): Promise<void> {}
`;

let project: Project;
let server: TsServer;

test.before(async () => {
  project = await makeProject(
    {
      "src/orders.ts": "export {};\n",
      "src/service.ts": "export {};\n",
      "src/errors.ts": ERRORS,
      "src/db.ts": DATABASE,
    },
    { plugins: [ENTRY], noUnusedParameters: true },
  );
  server = new TsServer(project, isMatrix ? await oldestAndPatched() : undefined);
  await server.open("src/orders.ts");
});

test.after.always(() => server.stop());

/** Installs the oldest TypeScript for `npm run test:matrix`, patched by `ts-patch install` so that it weaves. */
async function oldestAndPatched(): Promise<string> {
  const modules = await installed("typescript-5");
  await promisify(execFile)(process.execPath, [join(modules, "ts-patch/bin/ts-patch.js"), "install"], {
    cwd: dirname(modules),
  });
  return join(modules, "typescript");
}

interface Diagnostic extends Range {
  readonly text: string;
  readonly code: number;
  readonly category: string;
  readonly source?: string;
}

test.serial(
  "one plugin entry serves the compiler and the editor, which report the same errors",
  async (t) => {
    await project.write({ "src/wrong.ts": WRONG });
    await server.open("src/wrong.ts");
    const { code, stdout } = await project.tspc("--noEmit");
    await project.write({ "src/wrong.ts": "export {};\n" });
    const expected = (await errorsOf("src/wrong.ts")).map(({ text, start, code: number }) => {
      return `src/wrong.ts(${start.line},${start.offset}): error TS${number}: ${text}\n`;
    });
    t.is(code, 2);
    t.is(stdout, expected.join(""));
  },
);

async function errorsOf(file: string): Promise<readonly Diagnostic[]> {
  return await server.ask<Diagnostic[]>("semanticDiagnosticsSync", { file: server.path(file) });
}

const WRONG = `/** @redisLock businessFlag=pay keyName=orderNO */
export async function pay(orderNo: string): Promise<string> { return orderNo; }
`;

test.serial("work that outlives its lock is a warning where it starts, while typing", async (t) => {
  const body = (inside: string): string => `/** @redisLock businessFlag=pay */
export async function pay(): Promise<void> { ${inside} }
declare function work(): Promise<void>;
`;
  await server.open("src/orders.ts", body("await work();"));
  t.deepEqual(await errorsOf("src/orders.ts"), []);
  await server.open("src/orders.ts", body("void work();"));
  const [warning, ...others] = await errorsOf("src/orders.ts");
  t.like(warning, { code: 901_503, category: "warning", start: { line: 2, offset: 51 } });
  t.deepEqual(others, []);
});

test.serial("a lock that a transaction outlives is a warning where it is called, while typing", async (t) => {
  const text = (call: string): string => `import { inTransaction, reserve } from "./db.js";
export const pay = (): Promise<void> => inTransaction(async () => { ${call} });
void reserve;
`;
  await server.open("src/orders.ts", text(""));
  t.deepEqual(await errorsOf("src/orders.ts"), []);
  await server.open("src/orders.ts", text("await reserve();"));
  const [warning, ...others] = await errorsOf("src/orders.ts");
  t.like(warning, { code: 901_509, category: "warning", start: { line: 2, offset: 75 } });
  t.deepEqual(others, []);
});

test.serial("a call without the lock that the function needs is a warning, while typing", async (t) => {
  const text = (call: string): string => `/** @needsLock businessFlag=ledger */
function post(): void {}
function book(): void { ${call} }
export {};
`;
  await server.open("src/orders.ts", text(""));
  t.deepEqual(await errorsOf("src/orders.ts"), []);
  await server.open("src/orders.ts", text("post();"));
  const [warning, ...others] = await errorsOf("src/orders.ts");
  t.like(warning, { code: 901_510, category: "warning", start: { line: 3, offset: 25 } });
  t.deepEqual(others, []);
});

test.serial("an invalid tag is an error at the wrong name, while typing", async (t) => {
  await server.open("src/orders.ts", WRONG);
  const [error, ...others] = await errorsOf("src/orders.ts");
  t.like(error, {
    text: "LW1202: The function has no parameter `orderNO`. Did you mean `orderNo`?",
    code: 901_202,
    category: "error",
    source: "lockweave",
  });
  t.is(error && server.textOf("src/orders.ts", error), "orderNO");
  t.deepEqual(others, []);
  await server.open("src/orders.ts", WRONG.replace("orderNO", "orderNo"));
  t.deepEqual(await errorsOf("src/orders.ts"), []);
});

const SERVICE = `import { limit, OrderBusy, AbstractBusy, type Order } from "./errors.js";
export class Orders {
  readonly tenant = "t";
  #secret = "s";
  private readonly region = "r";
  notify(): void {}
  /**
   * Pays.
   * TAG
   */
  async pay(order: Order, { sku }: { sku: string }, count?: number): Promise<string> {
    if (count === limit) throw new OrderBusy(AbstractBusy.name + this.#secret + this.region);
    return order.no + sku;
  }
}
export class Late extends Error {}
${EVERYWHERE}
`;

/** Returns the server's suggestions at the `|` in the tag. */
async function suggestedIn(tag: string): Promise<string[]> {
  const text = SERVICE.replace("TAG", tag.replace("|", ""));
  await server.open("src/service.ts", text);
  const [before = ""] = tag.split("|");
  const { line } = server.at("src/service.ts", before);
  const place = { line, offset: "   * ".length + before.length + 1 };
  const found = await server.ask<{ readonly entries: readonly { readonly name: string }[] } | undefined>(
    "completionInfo",
    { file: server.path("src/service.ts"), ...place },
  );
  return (found?.entries ?? []).map(({ name }) => name);
}

const SUGGESTIONS: readonly (readonly [title: string, tag: string, names: readonly string[]])[] = [
  [
    "parameters and this for a key",
    "@redisLock businessFlag=pay keyName=|",
    ["order", "sku", "count", "this"],
  ],
  ["parameters and this after a comma", "@redisLock keyName=sku,or|", ["order", "sku", "count", "this"]],
  ["fields of a parameter, and none of its methods", "@redisLock keyName=order.|", ["no", "user", "lines"]],
  ["fields of an optional value", "@redisLock keyName=order.user.|", ["id", "name"]],
  ["fields of an element, in quotes", '@redisLock keyName="count ?? order.lines[0].|', ["sku"]],
  [
    "all fields of this, including private ones",
    "@redisLock keyName=this.|",
    ["tenant", "#secret", "region"],
  ],
  [
    "fields of the key's object",
    "@redisLock keyName=order keyType=CLASS fieldName=no,|",
    ["no", "user", "lines"],
  ],
  [
    "fields of the fields of the key's object",
    "@redisLock keyName=order keyType=JSON fieldName=user.|",
    ["id", "name"],
  ],
  ["the key's types", "@redisLock keyType=|", ["VALUE", "CLASS", "JSON"]],
  [
    "classes and interfaces to check a key against",
    "@redisLock keyClass=|",
    ["Orders", "OrderBusy", "AbstractBusy", "Order", "Late", "Everywhere"],
  ],
  [
    "ways to fail, and error classes in scope",
    "@redisLock onFailure=|",
    ["throw", "skip", "OrderBusy", "Late"],
  ],
  ["units for a number", "@redisLock lockTime=20|", ["20ms", "20s", "20m", "20h"]],
  ["durations", "@redisLock waitTime=|", ["5s", "500ms"]],
  ["true and false", "@redisLock fencing=t|", ["true", "false"]],
  ["nothing for a name that the user chooses", "@redisLock businessFlag=|", []],
];

for (const [title, tag, names] of SUGGESTIONS) {
  test.serial(`suggests ${title}`, async (t) => {
    t.deepEqual((await suggestedIn(tag)).toSorted(), [...names].toSorted());
  });
}

test.serial("suggests the attributes that the tag does not have yet, with their documentation", async (t) => {
  const names = await suggestedIn("@redisLock businessFlag=pay lockTime=3s |");
  t.true(names.includes("keyName") && names.includes("onLost"));
  t.false(names.includes("businessFlag") || names.includes("lockTime"));
  const { line } = server.at("src/service.ts", "@redisLock");
  const [details] = await server.ask<readonly { documentation: readonly { text: string }[] }[]>(
    "completionEntryDetails",
    {
      file: server.path("src/service.ts"),
      line,
      offset: "   * @redisLock businessFlag=pay lockTime=3s ".length + 1,
      entryNames: ["fencing"],
    },
  );
  t.is(
    details?.documentation.map(({ text }) => text).join(""),
    "Draws a fencing token, which rises with each holder.\n\nDefault: `false`.",
  );
});

test.serial("suggests the tag along with JSDoc's own tags, and suggests nothing in prose", async (t) => {
  const names = await suggestedIn("@red|");
  t.true(names.includes("redisLock") && names.includes("param"));
  t.deepEqual(await suggestedIn("Mentions @redisLock in prose, |"), []);
  t.false((await suggestedIn("@redisLock businessFlag=pay\n   * @param |")).includes("fencing"));
});

interface Hover extends Range {
  readonly displayString: string;
  readonly documentation: string;
}

async function hoverOver(words: string): Promise<Hover | undefined> {
  return await server.ask("quickinfo", {
    file: server.path("src/service.ts"),
    ...server.at("src/service.ts", words),
  });
}

test.serial("hovering an attribute shows its documentation and the project's default", async (t) => {
  await suggestedIn("@redisLock businessFlag=pay keyName=order.no,sku lockTime=3s autoUnlock=false |");
  const lockTime = await hoverOver("lock|Time");
  t.is(lockTime && server.textOf("src/service.ts", lockTime), "lockTime");
  t.is(lockTime?.displayString, "(attribute) lockTime");
  t.is(
    lockTime?.documentation,
    "The time to live of the key, in seconds or with a unit. For example, `20`, `500ms`, `20s`, or `2m`.\n\nDefault: `20s` in this project.",
  );
  t.regex((await hoverOver("auto|Unlock"))?.documentation ?? "", /\n\nDefault: `true`\.$/);
});

test.serial("hovering a tag shows its lock, and hovering a name in it shows the declaration", async (t) => {
  await suggestedIn("@redisLock businessFlag=pay keyName=order.no,sku onFailure=OrderBusy |");
  const tag = await hoverOver("@redis|Lock");
  t.is(tag?.displayString, "(lock) LOCK_pay_{order.no},{sku}");
  t.regex(tag?.documentation ?? "", /`Orders\.pay`/);
  t.is((await hoverOver("=or|der.no"))?.displayString, "(parameter) order: Order");
  t.is((await hoverOver("order.n|o,"))?.displayString, "(property) Order.no: string");
  t.regex((await hoverOver("onFailure=Order|Busy"))?.displayString ?? "", /class OrderBusy/);
  t.is(await hoverOver("P|ays."), undefined);
  await suggestedIn('@redisLock key="mutex:${order.no}" |');
  t.is((await hoverOver("@redis|Lock"))?.displayString, "(lock) mutex:{order.no}");
  t.is((await hoverOver("order.n|o}"))?.displayString, "(property) Order.no: string");
});

test.serial("go to definition leads from a name in the tag to its declaration", async (t) => {
  await suggestedIn("@redisLock businessFlag=pay keyName=order.no |");
  const { definitions } = await server.ask<{ definitions: readonly (Range & { file: string })[] }>(
    "definitionAndBoundSpan",
    { file: server.path("src/service.ts"), ...server.at("src/service.ts", "order.n|o ") },
  );
  t.deepEqual(
    definitions.map(({ file }) => file),
    [server.path("src/errors.ts")],
  );
  // The request of older editors.
  const found = await server.ask<readonly (Range & { file: string })[]>("definition", {
    file: server.path("src/service.ts"),
    ...server.at("src/service.ts", "order.n|o "),
  });
  t.deepEqual(
    found.map(({ file }) => file),
    [server.path("src/errors.ts")],
  );
});

interface Renamed {
  readonly info: { readonly canRename: boolean; readonly displayName?: string };
  readonly locs: readonly { readonly file: string; readonly locs: readonly Range[] }[];
}

/** Returns the names in the tag that a rename at the cursor changes. */
async function renamedInTag(file: string, words: string): Promise<string[]> {
  const { info, locs } = await server.ask<Renamed>("rename", {
    file: server.path(file),
    ...server.at(file, words),
  });
  if (!info.canRename) return ["(none)"];
  const { line } = server.at("src/service.ts", "@redisLock");
  const inService = locs.find((one) => one.file === server.path("src/service.ts"))?.locs ?? [];
  return inService
    .filter(({ start }) => start.line === line)
    .map((range) => `${range.start.offset} ${server.textOf("src/service.ts", range)}`)
    .toSorted();
}

const BEFORE_KEY = "   * @redisLock businessFlag=pay keyName=".length + 1;

test.serial("renaming a parameter changes the tag, and starts from the code or the tag", async (t) => {
  await suggestedIn('@redisLock businessFlag=pay keyName=order.no,"`${order.lines[0]?.sku}-${sku}`" |');
  const orders = [`${BEFORE_KEY + 'order.no,"`${'.length} order`, `${BEFORE_KEY} order`].toSorted();
  t.deepEqual(await renamedInTag("src/service.ts", "pay(or|der"), orders);
  t.deepEqual(await renamedInTag("src/service.ts", "keyName=or|der"), orders);
  const sku = `${BEFORE_KEY + 'order.no,"`${order.lines[0]?.sku}-${'.length} sku`;
  t.deepEqual(await renamedInTag("src/service.ts", "order.no + sk|u"), [sku]);
});

test.serial("renaming a field changes the tags of other files", async (t) => {
  await server.open("src/errors.ts");
  await suggestedIn("@redisLock businessFlag=pay keyName=order.no,order.user?.name |");
  t.deepEqual(await renamedInTag("src/errors.ts", "n|o: string"), [`${BEFORE_KEY + "order.".length} no`]);
  t.deepEqual(await renamedInTag("src/errors.ts", "nam|e?:"), [
    `${BEFORE_KEY + "order.no,order.user?.".length} name`,
  ]);
  await suggestedIn("@redisLock businessFlag=pay keyName=order keyType=CLASS fieldName=user.id,no |");
  const beforeField = BEFORE_KEY + "order keyType=CLASS fieldName=".length;
  t.deepEqual(await renamedInTag("src/errors.ts", "n|o: string"), [`${beforeField + "user.id,".length} no`]);
});

test.serial("renaming an error class changes the onFailure of a tag", async (t) => {
  await suggestedIn("@redisLock businessFlag=pay onFailure=OrderBusy |");
  const place = BEFORE_KEY + " onFailure=".length - " keyName=".length;
  t.deepEqual(await renamedInTag("src/errors.ts", "class Order|Busy"), [`${place} OrderBusy`]);
});

test.serial("renaming a name that the tag does not use leaves the tag unchanged", async (t) => {
  await suggestedIn("@redisLock businessFlag=order keyName=order.no |");
  t.deepEqual(await renamedInTag("src/service.ts", "cou|nt?"), []);
  t.deepEqual(await renamedInTag("src/service.ts", "businessFlag=or|der"), ["(none)"]);
});

test.serial("names that only a tag uses are not reported as unused", async (t) => {
  const text = `import { OrderBusy, type Order, type User } from "./errors.js";
import type { Busy } from "./errors.js";
export class Orders {
  private readonly tenant = "t";
  private readonly region = "r";
  /** @redisLock businessFlag=pay keyName=orderNo,this.tenant,sku onFailure=OrderBusy */
  async pay(orderNo: string, count: number, { sku }: { sku: string }): Promise<void> {}
  /** @redisLock businessFlag=pay keyName=order keyType=CLASS keyClass=Order fieldName=no */
  async check(order: Order): Promise<void> {}
  /** @redisLock businessFlag=pay keyName=order keyType=CLASS keyClass=Busy fieldName=name */
  async busy(order: Error): Promise<void> {}
  static readonly size: number = "3";
}
`;
  await server.open("src/orders.ts", text);
  const namesIn = (found: readonly Diagnostic[]): string[] =>
    found.map((one) => server.textOf("src/orders.ts", one)).toSorted();
  t.deepEqual(namesIn(await errorsOf("src/orders.ts")), ["count", "size"]);
  const hints = await server.ask<Diagnostic[]>("suggestionDiagnosticsSync", {
    file: server.path("src/orders.ts"),
  });
  t.deepEqual(namesIn(hints), ["User", "region"]);
});

test.serial(
  "a type error in a tag is reported at the name, with unsaved changes of other files",
  async (t) => {
    await suggestedIn(
      "@redisLock businessFlag=pay keyName=order.user.id,order.nr,this.region onFailure=Lte |",
    );
    const found = await errorsOf("src/service.ts");
    t.deepEqual(
      found.map((one) => [server.textOf("src/service.ts", one), one.code, one.text]),
      [
        ["order.user", 18_048, "'order.user' is possibly 'undefined'."],
        ["nr", 2_339, "Property 'nr' does not exist on type 'Order'."],
        ["Lte", 2_552, "Cannot find name 'Lte'. Did you mean 'Late'?"],
      ],
    );
    // The text of another file is the one in the editor.
    await server.open("src/errors.ts", ERRORS.replace("user?:", "nr: number; user:"));
    t.deepEqual(
      (await errorsOf("src/service.ts")).map((one) => server.textOf("src/service.ts", one)),
      ["Lte"],
    );
    await server.open("src/errors.ts", ERRORS);
  },
);

test.serial("organizing imports keeps an import that only a tag uses", async (t) => {
  const sorted = `import { Busy, OrderBusy } from "./errors.js";
`;
  const using = (tag: string): string => `import { OrderBusy, Busy } from "./errors.js";
/** ${tag} */
export async function pay(): Promise<void> {}
export { Busy };
`;
  const organized = async (text: string): Promise<string[]> => {
    await server.open("src/orders.ts", text);
    const args = { file: server.path("src/orders.ts") };
    const edits = await server.ask<
      readonly { readonly textChanges: readonly { readonly newText: string }[] }[]
    >("organizeImports", { scope: { type: "file", args } });
    return edits.flatMap(({ textChanges }) => textChanges.map(({ newText }) => newText));
  };
  t.deepEqual(await organized(using("@redisLock businessFlag=pay onFailure=OrderBusy")), [sorted]);
  t.deepEqual(await organized(using("@redisLock businessFlag=pay")), [
    `import { Busy } from "./errors.js";\n`,
  ]);
});

interface Fix {
  readonly description: string;
  readonly changes: readonly { readonly textChanges: readonly (Range & { readonly newText: string })[] }[];
}

const MISSPELLED: readonly (readonly [tag: string, fixed: string])[] = [
  ["@redisLok businessFlag=pay", "@redisLock businessFlag=pay"],
  ["@redisLock busnessFlag=pay", "@redisLock businessFlag=pay"],
  ["@redisLock businessFlag=pay keyName=ordr.no", "@redisLock businessFlag=pay keyName=order.no"],
  [
    "@redisLock businessFlag=pay keyName=order keyType=CLAS fieldName=no",
    "@redisLock businessFlag=pay keyName=order keyType=CLASS fieldName=no",
  ],
  ["@redisLock businessFlag=pay onFailure=skp", "@redisLock businessFlag=pay onFailure=skip"],
  ["@redisLock businessFlag=pay onFailure=Lte", "@redisLock businessFlag=pay onFailure=Late"],
];

for (const [tag, fixed] of MISSPELLED) {
  test.serial(`offers to correct ${tag}`, async (t) => {
    await suggestedIn(`${tag} |`);
    const file = server.path("src/service.ts");
    const [error, ...others] = await errorsOf("src/service.ts");
    t.deepEqual(others, []);
    if (error === undefined) throw new Error("No error was reported.");
    const supported = await server.ask<string[]>("getSupportedCodeFixes", { file });
    t.true(supported.includes(String(error.code)));
    const { start, end } = error;
    const [fix, ...otherFixes] = await server.ask<Fix[]>("getCodeFixes", {
      file,
      startLine: start.line,
      startOffset: start.offset,
      endLine: end.line,
      endOffset: end.offset,
      errorCodes: [error.code],
    });
    const [change] = fix?.changes[0]?.textChanges ?? [];
    if (change === undefined) throw new Error("No fix was offered.");
    const { line } = start;
    const before = server.textOf("src/service.ts", { start: { line, offset: 6 }, end: change.start });
    const after = server.textOf("src/service.ts", { start: change.end, end: { line: line + 1, offset: 1 } });
    t.is(`${before}${change.newText}${after}`, `${fixed} \n`);
    t.deepEqual(otherFixes, []);
    t.is(fix?.description, `Change to \`${change.newText}\``);
  });
}

const FIXED: readonly (readonly [text: string, fixed: string, ...others: string[]])[] = [
  ["/** @redisLock(businessFlag=pay) */\nasync", "/** @redisLock businessFlag=pay */\nasync"],
  [
    "/** @redisLock businessFlag=pay, lockTime=3s */\nasync",
    "/** @redisLock businessFlag=pay lockTime=3s */\nasync",
  ],
  [
    "/** @redisLock businessFlag=pay keyName=a, */\nasync",
    "/** @redisLock businessFlag=pay keyName=a */\nasync",
  ],
  ["/** @redisLock businessFlag:pay */\nasync", "/** @redisLock businessFlag=pay */\nasync"],
  ["/** @redisLock businessFlag=pay; */\nasync", "/** @redisLock businessFlag=pay */\nasync"],
  [
    "/** @redisLock businessFlag=pay fencing=yes */\nasync",
    "/** @redisLock businessFlag=pay fencing=true */\nasync",
  ],
  [
    "/** @redisLock businessFlag=pay onLost=thrw */\nasync",
    "/** @redisLock businessFlag=pay onLost=throw */\nasync",
  ],
  [
    "/** @redisLock businessFlag=pay waitTime=5 */\nasync",
    "/** @redisLock businessFlag=pay waitTime=5s */\nasync",
    "/** @redisLock businessFlag=pay waitTime=5ms */\nasync",
  ],
  [
    "/** @redisLock businessFlag=pay keyName=a+a */\nasync",
    '/** @redisLock businessFlag=pay keyName="a+a" */\nasync',
  ],
  [
    '/** @redisLock businessFlag=pay keyName=a businessFlag="x y" lockTime=3s */\nasync',
    "/** @redisLock businessFlag=pay keyName=a lockTime=3s */\nasync",
  ],
  [
    '/** @redisLock businessFlag="pay keyName=a */\nasync',
    '/** @redisLock businessFlag="pay" keyName=a */\nasync',
  ],
  [
    '/** @redisLock businessFlag=pay keyName="a */\nasync',
    '/** @redisLock businessFlag=pay keyName="a" */\nasync',
  ],
  ["/** @redisLock keyName=a */\nasync", "/** @redisLock businessFlag=pay keyName=a */\nasync"],
  ["/* @redisLock businessFlag=pay */\nasync", "/** @redisLock businessFlag=pay */\nasync"],
  ["// @redisLock businessFlag=pay\nasync", "/** @redisLock businessFlag=pay */\nasync"],
  ["/** Pays. @redisLock businessFlag=pay */\nasync", "/** Pays.\n * @redisLock businessFlag=pay */\nasync"],
  ["/** @redisLock businessFlag=pay */\n", "/** @redisLock businessFlag=pay */\nasync "],
];

test.serial("offers the right fix for each mistake that has a mechanical fix", async (t) => {
  const file = server.path("src/orders.ts");
  for (const [text, ...expected] of FIXED) {
    const end = `${text.endsWith("async") ? " " : ""}function pay(a: string) { return a; }\nexport { pay };\n`;
    await server.open("src/orders.ts", text + end);
    const error = (await errorsOf("src/orders.ts")).find(({ source }) => source === "lockweave");
    const fixes =
      error &&
      (await server.ask<Fix[]>("getCodeFixes", {
        file,
        startLine: error.start.line,
        startOffset: error.start.offset,
        endLine: error.end.line,
        endOffset: error.end.offset,
        errorCodes: [error.code],
      }));
    const results = fixes?.map(({ changes }) => {
      const [change] = changes[0]?.textChanges ?? [];
      if (change === undefined) return "";
      const start = { line: 1, offset: 1 };
      const before = server.textOf("src/orders.ts", { start, end: change.start });
      const after = server.textOf("src/orders.ts", { start: change.end, end: { line: 9, offset: 1 } });
      return before + change.newText + after;
    });
    const whole = expected.map((start) => start + (start.endsWith("async") ? " " : "") + end.trimStart());
    t.deepEqual(results, whole, `${text}: ${error?.text ?? "no error"}`);
  }
});
