import { stripVTControlCharacters } from "node:util";
import test from "ava";
import { makeProject } from "./project";

/** The mistake in each tag, and the text at which the compiler must report it. */
const MISTAKES = [
  {
    what: "an unknown field of a path",
    tag: "businessFlag=f keyName=order.user.numbr",
    at: "numbr",
    error: "error TS2551: Property 'numbr' does not exist on type 'User'. Did you mean 'number'?",
  },
  {
    what: "an object for a key",
    tag: "businessFlag=f keyName=number,order",
    at: "order",
    error: "error TS2345: Argument of type 'Order' is not assignable to parameter of type 'KeyValue'.",
  },
  {
    what: "a key that may be undefined",
    tag: "businessFlag=f keyName=order.note",
    at: "order.note",
    error:
      "error TS2345: Argument of type 'string | undefined' is not assignable to parameter of type 'KeyValue'.",
  },
  {
    what: "a list for a key",
    tag: "businessFlag=f keyName=order.lines",
    at: "order.lines",
    error:
      "error TS2345: Argument of type '{ sku: string; }[]' is not assignable to parameter of type 'KeyValue'.",
  },
  {
    what: "a list of objects for a key each",
    tag: "businessFlag=f keyName=number,order.lines each=true",
    at: "order.lines",
    error:
      "error TS2345: Argument of type '{ sku: string; }[]' is not assignable to parameter of type 'KeyValue | readonly KeyValue[]'.",
  },
  {
    what: "an expression with a type error",
    tag: `businessFlag=f keyName="order.lines[0]?.skuu ?? ''"`,
    at: "skuu",
    error: "error TS2551: Property 'skuu' does not exist on type '{ sku: string; }'. Did you mean 'sku'?",
  },
  {
    what: "an unknown keyClass",
    tag: "businessFlag=f keyName=order keyType=CLASS fieldName=orderNo keyClass=Ordr",
    at: "Ordr",
    error: "error TS2552: Cannot find name 'Ordr'. Did you mean 'Order'?",
  },
  {
    what: "a fieldName that the class does not have",
    tag: "businessFlag=f keyName=order keyType=CLASS fieldName=user.number,orderNoo",
    at: "orderNoo",
    error: "error TS2551: Property 'orderNoo' does not exist on type 'Order'. Did you mean 'orderNo'?",
  },
  {
    what: "an object in a whole key",
    tag: 'key="mutex:${number}:${order}"',
    at: "order",
    error: "error TS2345: Argument of type 'Order' is not assignable to parameter of type 'KeyValue'.",
  },
  {
    what: "an unknown field in a whole key",
    tag: "key=mutex:${order.user.numbr}/x",
    at: "numbr",
    error: "error TS2551: Property 'numbr' does not exist on type 'User'. Did you mean 'number'?",
  },
  {
    what: "a condition that is not a boolean",
    tag: `businessFlag=f when="order.lines.length"`,
    at: "order.lines.length",
    error: "error TS2345: Argument of type 'number' is not assignable to parameter of type 'boolean'.",
  },
  {
    what: "a condition that is a promise of a boolean",
    tag: `businessFlag=f when="Promise.resolve(true)"`,
    at: "Promise.resolve(true)",
    error:
      "error TS2345: Argument of type 'Promise<boolean>' is not assignable to parameter of type 'boolean'.",
  },
  {
    what: "a signal that is something else",
    tag: "businessFlag=f signal=order.orderNo",
    at: "order.orderNo",
    error: "error TS2322: Type 'string' is not assignable to type 'AbortSignal'.",
  },
  {
    what: "an unknown field in the path to a signal",
    tag: "businessFlag=f signal=order.user.signl",
    at: "signl",
    error: "error TS2339: Property 'signl' does not exist on type 'User'.",
  },
  {
    what: "a time from a number",
    tag: 'businessFlag=f lockTime="${order.user.number}"',
    at: "order.user.number",
    error:
      "error TS2322: Type 'number' is not assignable to type '`${number}ms` | `${number}s` | `${number}m` | `${number}h` | undefined'.",
  },
  {
    what: "a count from text",
    tag: 'businessFlag=f permits="${order.orderNo}"',
    at: "order.orderNo",
    error: "error TS2322: Type 'string' is not assignable to type 'number'.",
  },
  {
    what: "an unknown name in an expression",
    tag: 'businessFlag=f wait="${order.user.numbr}s"',
    at: "numbr",
    error: "error TS2551: Property 'numbr' does not exist on type 'User'. Did you mean 'number'?",
  },
  {
    what: "an unknown error class",
    tag: "businessFlag=f onFailure=OrderBussy",
    at: "OrderBussy",
    error: "error TS2552: Cannot find name 'OrderBussy'. Did you mean 'OrderBusy'?",
  },
  {
    what: "an error class that takes no message",
    tag: "businessFlag=f onFailure=Numbered",
    at: "Numbered",
    error:
      "error TS2345: Argument of type 'typeof Numbered' is not assignable to parameter of type 'FailureClass'.",
  },
  {
    what: "onUnreachable=skip with a return type without undefined",
    tag: "businessFlag=f onUnreachable=skip onFailure=OrderBusy",
    at: "onUnreachable=skip",
    error: "error TS2322: Type 'undefined' is not assignable to type 'string'.",
  },
  {
    what: "onFailure=skip with a return type without undefined",
    tag: "businessFlag=f onFailure=skip",
    at: "onFailure=skip",
    error: "error TS2322: Type 'undefined' is not assignable to type 'string'.",
  },
];

const DECLARATIONS = `import { OrderBusy } from "./busy.js";

export { OrderBusy };
interface User { number: number }
export interface Order { orderNo: string; user: User; note?: string; lines: { sku: string }[] }
export interface Invoice { invoiceNo: string }
export class Numbered extends Error { constructor(code: number) { super(String(code)); } }
`;

test.serial("errors that the type checker finds in woven code have positions in the tag", async (t) => {
  const functions = MISTAKES.map(
    ({ tag }, index) =>
      `/** @redisLock ${tag} */\nexport async function f${index}(order: Order, number: number): Promise<string> { return order.orderNo + number; }\n`,
  );
  const project = await makeProject({
    "src/signal.d.ts": "interface AbortSignal { readonly aborted: boolean }\n",
    "src/busy.ts": "export class OrderBusy extends Error {}\n",
    "src/a.ts": DECLARATIONS + functions.join(""),
  });
  const { code, stdout } = await project.tspc("--noEmit");
  t.is(code, 2);
  const found = stdout.split("\n").filter((line) => /^\S/.test(line));
  const firstLine = DECLARATIONS.split("\n").length;
  MISTAKES.forEach(({ what, tag, at, error }, index) => {
    const column = "/** @redisLock ".length + tag.indexOf(at) + 1;
    t.is(found[index], `src/a.ts(${firstLine + 2 * index},${column}): ${error}`, what);
  });
  t.is(found.length, MISTAKES.length);
  const hints = stdout.split("\n  A key is a string, ");
  t.deepEqual(
    hints
      .slice(0, -1)
      .map(
        (before) =>
          /'(.*)' is not assignable to parameter of type 'KeyValue'/.exec(
            before.split("src/a.ts").at(-1) ?? "",
          )?.[1],
      ),
    ["Order", "string | undefined", "Order"],
  );
});

test.serial("the error for onFailure=skip with a wrong return type names the right type", async (t) => {
  const project = await makeProject({
    "src/a.ts": `/** @redisLock businessFlag=f onFailure=skip */
export async function f(): Promise<{ id: string }[]> { return []; }
/** @redisLock businessFlag=f onFailure=skip */
export const g = async (no: string): Promise<string> => no;
/** @redisLock businessFlag=f onFailure=skip reentrant=true */
export async function h(): Promise<"a" | "b"> { return "a"; }
/** @redisLock businessFlag=f onFailure=skip */
export async function i(): Promise<string | undefined> { return "a"; }
`,
  });
  const { stdout } = await project.tspc("--noEmit");
  const found = stdout.split("\n").filter((line) => line.includes("`onFailure=skip`"));
  const suggested = found.map((line) => /declare the return type `(.*?)`/.exec(line)?.[1]);
  t.deepEqual(
    suggested,
    ["{ id: string; }[]", "string", '"a" | "b"'].map((type) => `Promise<${type} | undefined>`),
    stdout,
  );
});

test.serial("a keyClass that does not match the object is an error at the keyClass", async (t) => {
  const project = await makeProject({
    "src/a.ts": `export interface Order { orderNo: string }
export interface Invoice { invoiceNo: string }
/** @redisLock businessFlag=f keyName=order keyType=CLASS fieldName=orderNo keyClass=Invoice */
export async function pay(order: Order): Promise<string> { return order.orderNo; }
`,
  });
  const { stdout } = await project.tspc("--noEmit");
  t.is(
    stdout.split("\n")[0],
    `${await project.placeOf("Invoice */", "src/a.ts")}: error TS1360: Type 'Order' does not satisfy the expected type 'Invoice'.`,
  );
});

test.serial("code frames show the file on disk", async (t) => {
  const project = await makeProject({
    "src/a.ts": `/**
 * Pays.
 * @redisLock businessFlag=payOrder
 *            keyName=order.number
 */
export const pay = async (order: { orderNo: string }): Promise<string> => order.orderNo + missing;
`,
  });
  const { stdout } = await project.tspc("--noEmit", "--pretty");
  t.is(
    stripVTControlCharacters(stdout).trim(),
    `src/a.ts:4:29 - error TS2339: Property 'number' does not exist on type '{ orderNo: string; }'.

4  *            keyName=order.number
                              ~~~~~~

src/a.ts:6:91 - error TS2304: Cannot find name 'missing'.

6 export const pay = async (order: { orderNo: string }): Promise<string> => order.orderNo + missing;
                                                                                            ~~~~~~~


Found 2 errors in the same file, starting at: src/a.ts:4`,
  );
});

test.serial("other errors in a tagged file equal those of plain tsc word for word", async (t) => {
  const project = await makeProject(
    {
      "src/a.ts": `import { absent } from "./b.js"; import * as nowhere from "./nowhere.js";
export const before: number = "1";
/** @redisLock businessFlag=f keyName=id */
export async function f(id: string): Promise<number> { const unused = 1; return id; }; export const after: number = "2";
export class C {
  /** @redisLock businessFlag=f keyName=id */ async m(id: string): Promise<number> {
    await this.n(id, 1); if (id) { return id.lenght; }
    // @ts-expect-error -- There is none.
    return 1;
  } n(id: number): void { return id; }
}
/** @redisLock businessFlag=f */ export const g = async () => wrong + wronger; g(1); export const h = class { private x = 1; };
`,
      "src/b.ts": "export const present = 1;\n",
    },
    { declaration: true, noUnusedLocals: true },
  );
  for (const args of [
    ["--pretty"],
    ["--pretty", "--incremental"],
    ["--pretty", "--incremental"],
    ["--noEmit"],
  ]) {
    const plain = await project.tsc(...args, "--tsBuildInfoFile", "plain.tsbuildinfo");
    const woven = await project.tspc(...args, "--tsBuildInfoFile", "woven.tsbuildinfo");
    t.is(woven.stdout, plain.stdout, args.join(" "));
    t.is(woven.code, plain.code);
  }
});

test.serial("a syntax error in a tagged file equals that of plain tsc", async (t) => {
  const project = await makeProject({
    "src/a.ts": `/** @redisLock businessFlag=f keyName=id */
export async function f(id: string): Promise<string> { return id ; } const = 3;
`,
  });
  const plain = await project.tsc("--noEmit");
  const woven = await project.tspc("--noEmit");
  t.is(woven.stdout, plain.stdout);
});

const CLEAN = `import { currentLock } from "lockweave";
import type { Order } from "./order.js";
import { OrderBusy } from "./order.js";

export class OrderService {
  private readonly tenant = "t";

  /** @redisLock businessFlag=pay keyName=order.orderNo,this.tenant onFailure=OrderBusy */
  async pay(order: Order): Promise<string> {
    if (order.note === undefined) return order.orderNo;
    switch (order.note) {
      case "a": return await this.charge(order);
      default: throw new OrderBusy(currentLock().key);
    }
  }

  /** @redisLock businessFlag=pay keyName=order keyType=CLASS keyClass=Order fieldName=orderNo onFailure=skip reentrant=true */
  async tryToPay(order: Order): Promise<string | undefined> {
    for (const line of order.lines) if (line.sku !== "") return this.charge(order);
    return undefined;
  }

  /** @redisLock businessFlag=json keyName=body keyType=JSON fieldName=orderNo autoUnlock=false watchdog=false */
  readonly payJson = async (body: string): Promise<void> => {
    if (body.length > 3) return;
    await this.charge({ orderNo: body, lines: [] });
  };

  /** @redisLock businessFlag=when keyName=order.orderNo when="order.lines.length > 3" */
  async payLarge(order: Order): Promise<string | undefined> {
    return currentLock()?.key;
  }

  /** @redisLock businessFlag=pay */
  private async charge<T extends Order>({ orderNo, ...rest }: T): Promise<T["orderNo"]> {
    return rest.lines.length > 0 ? orderNo : Promise.resolve(orderNo);
  }
}

/** @redisLock businessFlag="close day" keyName="at.getTime()" fencing=true */
export default async function (at: Date): Promise<number> { return at.getTime(); }
`;
const CLEAN_ORDER = `export interface Order { orderNo: string; note?: string; lines: { sku: string }[] }
export class OrderBusy extends Error {}
`;
const STRICTEST = {
  lib: ["es2022"],
  types: ["node"],
  skipLibCheck: false,
  declaration: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  noImplicitReturns: true,
  noImplicitOverride: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  noFallthroughCasesInSwitch: true,
  allowUnreachableCode: false,
  exactOptionalPropertyTypes: true,
  isolatedModules: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
};

test.serial("the weave adds no error to a clean file under the strictest options", async (t) => {
  const project = await makeProject({ "src/clean.ts": CLEAN, "src/order.ts": CLEAN_ORDER }, STRICTEST);
  t.like(await project.tspc(), { code: 0, stdout: "" });
});

test.serial("the weave adds no error to a clean CommonJS file under the strictest options", async (t) => {
  const { erasableSyntaxOnly: _, ...strictest } = STRICTEST;
  const project = await makeProject(
    {
      "package.json": "{}",
      "src/clean.ts": `import lockweave = require("lockweave");
import type { Order } from "./order.js" with { "resolution-mode": "require" };

/** @redisLock businessFlag=pay keyName=order.orderNo */
async function pay(order: Order): Promise<string> { return lockweave.lockKey(order.orderNo); }
export = { pay };
`,
      "src/order.ts": `export interface Order { orderNo: string }\n`,
    },
    strictest,
  );
  t.like(await project.tspc(), { code: 0, stdout: "" });
});
