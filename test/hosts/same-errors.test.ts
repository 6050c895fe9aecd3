import { makeProject } from "./project";
import { inMatrixSerially } from "../support/suites";

// The compiler must report the same errors at the same positions for a tagged file as plain tsc.

/** Sources by the error in them, or by the error that a careless weave would add. */
const SOURCES: Readonly<Record<string, string>> = {
  "a branch behind an any": `declare const any: any; declare const has: boolean; declare const text: string;
/** @redisLock businessFlag=f */ export async function f(): Promise<number> { return has ? any : text; }
/** @redisLock businessFlag=f */ export const g = async (): Promise<number> => has ? any : text;
/** @redisLock businessFlag=f */ export async function h(): Promise<number> { return (has ? (has ? text : any) : any); }
/** @redisLock businessFlag=f */ export async function i(): Promise<{ a: number }> { return has ? any : { a: 1, b: 2 }; }`,
  "a value instead of a promise": `declare const has: boolean; declare const p: Promise<number>;
/** @redisLock businessFlag=f */ export function f(): Promise<number> { return 3; }
/** @redisLock businessFlag=f */ export const g = (): Promise<number> => 3;
/** @redisLock businessFlag=f */ export const h: (id: string) => Promise<number> = (id) => id.length;
/** @redisLock businessFlag=f */ export function i(): Promise<void> { has.valueOf(); }
/** @redisLock businessFlag=f */ export function j(): Promise<number> { if (has) return p; }
/** @redisLock businessFlag=f */ export function k(): Promise<void> { if (has) return; return Promise.resolve(); }
/** @redisLock businessFlag=f reentrant=true */ export function l(): Promise<number> { return has ? p : 3; }
export class C { /** @redisLock businessFlag=f */ m(): Promise<string> { return "text"; } }`,
  "types that narrow": `declare function all(list: number[]): Promise<number[]>;
/** @redisLock businessFlag=f */ export async function f(list: number[], limit?: number): Promise<number[]> {
  limit ??= 10; try { return all(list.filter((n) => n < limit)); } finally { list.pop(); }
}
/** @redisLock businessFlag=f reentrant=true */ export async function g(list: number[], limit: number | undefined, { id }: { id?: string }): Promise<number[]> {
  if (limit === undefined) limit = 1; id = id ?? "none"; return list.filter((n) => n < limit + id.length);
}
/** @redisLock businessFlag=f */ export async function h(list: number[], limit?: number): Promise<number[]> {
  for (const one of list) { limit ??= one; return all(list.map((n) => n + limit)); } return list;
}
/** @redisLock businessFlag=f */ export function i(list: number[], limit?: number): Promise<number[]> {
  limit = limit || 3; return all(list.filter((n) => n < limit));
}`,
  "a parameter that its default narrows": `/** @redisLock businessFlag=f */ export async function f(list: number[], limit: number | undefined = 5): Promise<number[]> {
  if (list.length > 3) limit = undefined; return list.filter((n) => limit === undefined || n < limit);
}
/** @redisLock businessFlag=f reentrant=true */ export async function g(list: number[], limit: "few" |
  undefined = "few"): Promise<number[]> { if (list.length > 3) limit = undefined; limit = "many"; return list; }
/** @redisLock businessFlag=f */ export const h = async (list: number[], limit: number | null = null): Promise<number[]> => { limit ??= 3; return list.filter((n) => n < limit); };`,
  "types that narrow where the body stands in a block": `/** @redisLock businessFlag=f */ export async function f(list: number[], limit?: number): Promise<number[]> {
  limit ??= 10; return list.filter((n) => n < limit);
}
/** @redisLock businessFlag=f */ export async function g(list: number[], limit?: number, { id }: { id?: string } = {}): Promise<number[]> {
  if (limit === undefined) limit = 1; id = id ?? "none"; const has = (n: number): boolean => n < limit + id.length; return list.filter(has);
}
/** @redisLock businessFlag=f */ export async function h(list: number[], limit?: number): Promise<number[]> {
  const early = list.map((n) => n + limit); limit = 1; const set = (): void => { limit = undefined; }; set(); return early.map((n) => n + limit);
}
/** @redisLock businessFlag=f */ export async function* i(list: number[], limit?: number) { limit ??= 10; yield list.filter((n) => n < limit); }
export class C { /** @redisLock businessFlag=f */ async j(limit: number | string) { limit = Number(limit); return [1].map((n) => limit.toFixed(n) + limit.length); } }`,
  "types that narrow in an expression": `/** @redisLock businessFlag=f */ export const f = async (list: number[], limit?: number) => (limit ??= 10, list.filter((n) => n < limit));
/** @redisLock businessFlag=f */ export const g = async (id: string | number) => (id = Number(id), { show: () => id.toFixed() + id.length });
/** @redisLock businessFlag=f */ export const h = async (limit?: number) => ((limit = 1), [1].map((n) => ((limit = undefined), n + limit)));
/** @redisLock businessFlag=f */ export const i = (list: number[], limit?: number): Promise<number[]> => (limit ??= 10, Promise.resolve(list.filter((n) => n < limit)));`,
  stubs: `class NotYet extends Error {}
export class Base {
  /** @redisLock businessFlag=f reentrant=true */ async pay(id: string) { throw new NotYet(id); }
  /** @redisLock businessFlag=f reentrant=true */ async ship(id: string) { if (id) { throw new NotYet(id); } else throw new NotYet(); }
}
export class Shop extends Base { override async pay(id: string) { await super.pay(id); } override async ship() {} }
/** @redisLock businessFlag=f reentrant=true */ export async function stub(id: string) { throw new NotYet(id); }
/** @redisLock businessFlag=f reentrant=true */ export const never = async (id: string) => { throw new NotYet(id); };`,
  "functions that never end": `declare function fail(id: string): never; declare function wait(): Promise<void>; declare const kind: "a" | "b";
export class Base {
  /** @redisLock businessFlag=f reentrant=true */ async poll() { while (true) { inner: for (;;) { await wait(); break inner; } } }
  /** @redisLock businessFlag=f reentrant=true */ async repeat() { do { if (kind === "a") continue; await wait(); } while (true); }
  /** @redisLock businessFlag=f reentrant=true */ async choose() { switch (kind) { case "a": throw 1; case "b": throw 2; } }
  /** @redisLock businessFlag=f reentrant=true */ async help(id: string) { fail(id); }
  /** @redisLock businessFlag=f reentrant=true */ async clean() { try { throw 1; } finally { await wait(); } }
  /** @redisLock businessFlag=f reentrant=true */ async late() { throw new Error(name()); function name(): string { return "a"; } }
  /** @redisLock businessFlag=f reentrant=true */ async hand(id: string) { return fail(id); }
  /** @redisLock businessFlag=f reentrant=true */ async ends() { outer: while (true) { while (true) break outer; } }
}
export class Real extends Base {
  override async poll() {} override async repeat() {} override async choose() {} override async help() {} override async clean() {} override async late() {} override async ends() {}
}
export const object = { /** @redisLock businessFlag=f reentrant=true */ async pay() { throw 1; } };
/** @redisLock businessFlag=f reentrant=true */ export async function poll() { for (;;) await wait(); }
/** @redisLock businessFlag=f reentrant=true */ export const never = async function (id: string) { fail(id); };`,
  "a thenable that is made in the body": `/** @redisLock businessFlag=f reentrant=true */ export async function f() { return { then(done: (n: number) => void) { done(1); } }; }
/** @redisLock businessFlag=f */ export async function g() { const made = { then(done: (n: number) => void) { done(1); } }; return made; }`,
  "a name declared twice": `/** @redisLock businessFlag=f */ export async function f() { var a; function a() { return 2; } return a; }
/** @redisLock businessFlag=f */ export const g = async () => { const a = 1; { var a = 2; } return a; };
/** @redisLock businessFlag=f */ export async function h() { function a() { return 1; } function a() { return 2; } return a(); }
/** @redisLock businessFlag=f */ export async function i() { function a(): void; function a(n?: number) { void n; } return a(); }`,
  "errors that are expected": `/** @redisLock businessFlag=f keyName=id */
// @ts-expect-error
export async function f(id: string): Promise<string> { return id.length; }
/** @redisLock businessFlag=f */
export const g: () => Promise<string> =
  // @ts-expect-error
  async () => 3;
/** @redisLock businessFlag=f */ export async function h(id: string): Promise<string> {
  // @ts-expect-error
  // In vain.
  return id;
}
// @ts-expect-error
/** @redisLock businessFlag=f */
export const i = async (id: string): Promise<number> =>
  // @ts-ignore
  id;`,
  "an error that is expected in parentheses": `/** @redisLock businessFlag=f */ export async function f(id: string): Promise<number> {
  return (
    // @ts-expect-error
    id.missing
  );
}`,
  "functions without a value that are skipped": `declare const has: boolean; declare function work(): Promise<void>;
export class Base {
  /** @redisLock businessFlag=f onFailure=skip */ async pay() { await work(); }
  /** @redisLock businessFlag=f onFailure=skip */ async ship() { if (has) return; await work(); }
  /** @redisLock businessFlag=f onFailure=skip reentrant=true */ async send() { await work(); }
  /** @redisLock businessFlag=f onFailure=skip */ async fail() { throw new Error(); }
  /** @redisLock businessFlag=f onFailure=skip */ later: () => Promise<void> = async () => { await work(); };
}
export class Shop extends Base { override async pay(): Promise<void> {} override async ship(): Promise<void> {} override async send(): Promise<void> {} override async fail(): Promise<void> {} }
/** @redisLock businessFlag=f onFailure=skip */ export const pay = async () => { await work(); };
/** @redisLock businessFlag=f onFailure=skip */ export async function ship(): Promise<void> { if (has) return; await work(); }
/** @redisLock businessFlag=f onFailure=skip */ export async function* all() { yield work(); }
/** @redisLock businessFlag=f onFailure=skip */ export async function* some(): AsyncGenerator<number, undefined> { yield 1; return undefined; }`,
  "errors in what an arrow function returns": `declare const order: { id: string }; declare const text: string;
/** @redisLock businessFlag=f */ export const f = async (): Promise<number> => order.id;
/** @redisLock businessFlag=f */ export const g = async (): Promise<{ a: number }> => ({ a: 1, b: 2 });
/** @redisLock businessFlag=f */ export const h: () => Promise<number> = async () => order.id;
/** @redisLock businessFlag=f */ export const i: (id: string) => Promise<number> = async id => text + id;
export class C { /** @redisLock businessFlag=f */ readonly j: () => Promise<number> = async () => text; }
export const k: { l(): Promise<number> } = {
  /** @redisLock businessFlag=f */ l: async () => text,
};`,
  "an awaited type parameter": `/** @redisLock businessFlag=f */ export async function f<T>(x: T): Promise<Awaited<T>> { return x; }
/** @redisLock businessFlag=f */ export const g = async <T>(x: Promise<T>): Promise<Awaited<T>> => x;
/** @redisLock businessFlag=f */ export async function h<T extends object>(x: T): Promise<{ of: Awaited<T> }> { return { of: x }; }
/** @redisLock businessFlag=f */ export async function i<T>(x: T): Promise<Awaited<T>> { return await x; }
/** @redisLock businessFlag=f */ export async function j<T>(x: T): Promise<T> { return x; }
export class C<T> { /** @redisLock businessFlag=f */ async m(x: T): Promise<Awaited<T>> { return x; } }
type Done<T> = Settled<T>; type Settled<T> = Awaited<T>; type Later<T> = Promise<Done<T>>; interface Of<T> { of: Done<T> }
/** @redisLock businessFlag=f */ export async function k<T>(x: T): Promise<Done<T>> { return x; }
/** @redisLock businessFlag=f */ export async function l<T>(x: T): Later<T> { return x; }
/** @redisLock businessFlag=f */ export async function m<T>(x: T): Promise<Of<T>> { return { of: x }; }`,
  "types of another file": `export type Done<T> = Awaited<T>; export type Later<T> = Promise<Done<T>>; export interface Of<T> { of: Done<T> }
export type Only<T> = T extends PromiseLike<infer U> ? U : T;`,
  "a type parameter that another file awaits": `import type { Done, Later, Of, Only } from "./types-of-another-file.js"; import type * as types from "./types-of-another-file.js";
type Own<T> = Done<T>;
/** @redisLock businessFlag=f */ export async function f<T>(x: T): Promise<Done<T>> { return x; }
/** @redisLock businessFlag=f */ export async function g<T>(x: T): Later<T> { return x; }
/** @redisLock businessFlag=f */ export async function h<T>(x: T): Promise<Of<T>> { return { of: x }; }
/** @redisLock businessFlag=f */ export async function i<T>(x: T): Promise<Only<T>> { return x; }
/** @redisLock businessFlag=f */ export const j = async <T>(x: T): Promise<types.Done<T>> => x;
/** @redisLock businessFlag=f */ export async function k<T>(x: T): Promise<Own<T>> { return x; }
export class C<T> { /** @redisLock businessFlag=f */ async m(x: T): Promise<Done<T>> { return x; } }`,
  "a parameter that is declared again": `/** @redisLock businessFlag=f */ export async function f(id: string) { const id = 1; return id; }
/** @redisLock businessFlag=f */ export async function g(id: string) { function id() {} return id; }
/** @redisLock businessFlag=f */ export async function h(id: string) { class id {} return id; }
/** @redisLock businessFlag=f */ export async function i(id: string) { { const id = 1; if (id) return "a"; } return id; }`,
  "a template type over two lines": `declare const text: \`a
\${string}b\`;
/** @redisLock businessFlag=f reentrant=true */ export async function f(): Promise<\`a
\${string}b\`> { return text; }
/** @redisLock businessFlag=f reentrant=true */ export async function g(): Promise<{ kind: \`a
b\`
  other: 1 }> { return { kind: \`a
b\`, other: 1 }; }`,
  iterators: `/** @redisLock businessFlag=f */ export async function f(rows: AsyncIterable<string>) { for await (const row of rows) return row; return "none"; }
/** @redisLock businessFlag=f */ export async function g(rows: Iterable<string>) { for (const row of rows) return row; return 1; }`,
};

inMatrixSerially("the errors and declarations of tagged files equal those of plain tsc", async (t) => {
  const files = Object.entries(SOURCES).map(([name, text]) => [
    `src/${name.replaceAll(" ", "-")}.ts`,
    `${text}\n`,
  ]);
  const project = await makeProject(Object.fromEntries(files) as Record<string, string>, {
    declaration: true,
  });
  const plain = await project.tsc("--outDir", "plain");
  const woven = await project.tspc();
  const bySource = ({ stdout }: { stdout: string }): string[] =>
    stdout.split(/\n(?=src)/).map((error) => error.trim());
  t.deepEqual(bySource(woven), bySource(plain));
  t.is(woven.code, plain.code);
  for (const name of Object.keys(SOURCES)) {
    const file = `${name.replaceAll(" ", "-")}.d.ts`;
    t.is(await project.read(`out/${file}`), await project.read(`plain/${file}`), file);
  }
});

inMatrixSerially("declaration errors with --noEmit equal those of plain tsc", async (t) => {
  const project = await makeProject(
    {
      "src/a.ts": `class Hidden { private id = 1; }
/** @redisLock businessFlag=f */ export async function f() { return new Hidden(); } export const g = new Hidden();
/** @redisLock businessFlag=f */ export async function h(id = Math.random() > 0.5) { return id; } export const i = Math.max(1, 2);
`,
    },
    { declaration: true, isolatedDeclarations: true },
  );
  const plain = await project.tsc("--noEmit");
  t.regex(plain.stdout, /src\/a\.ts\(3,\d\d\d\): error TS90/);
  t.is((await project.tspc("--noEmit")).stdout, plain.stdout);
});

inMatrixSerially("comments that suppress the errors of a line do not suppress errors in a tag", async (t) => {
  const tag = "/** @redisLock businessFlag=f keyName=order.idd */";
  const pay = (name: string): string =>
    `export async function ${name}(order: { id: string }): Promise<string> { return order.id; }`;
  const project = await makeProject({
    "src/a.ts": `// @ts-ignore\n${tag} ${pay("onOneLine")}
${tag}\n// @ts-ignore\n${pay("between")}
/** @redisLock businessFlag=f onFailure=Missing.Error\n   @ts-ignore */\n${pay("inComment")}
`,
    "src/b.ts": `${tag}\n// @ts-expect-error\n${pay("expected")}\n`,
  });
  const { stdout } = await project.tspc("--noEmit");
  const places = stdout.split("\n").map((line) => line.replace(/: (?:Property|Cannot|Unused).*/, ""));
  t.deepEqual(places, [
    "src/a.ts(2,45): error TS2339",
    "src/a.ts(3,45): error TS2339",
    "src/a.ts(6,41): error TS2304",
    "src/b.ts(1,45): error TS2339",
    "src/b.ts(2,1): error TS2578",
    "",
  ]);
});

inMatrixSerially(
  "a file with syntax errors gets the same errors as with plain tsc, and refuses to run",
  async (t) => {
    const project = await makeProject({
      "src/a.ts": `export const before = 1;
/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> { return id +; }
export const after = ;
`,
    });
    const plain = await project.tsc("--noEmit");
    const woven = await project.tspc();
    t.is(woven.stdout, plain.stdout);
    t.is(woven.code, 2);
    t.regex((await project.run("out/a.js")).stderr, /Error: a\.ts:3: LW1402: |SyntaxError/);
  },
);

inMatrixSerially(
  "JavaScript checks keyClass against a typedef, and TSX files parse keys as TSX",
  async (t) => {
    const project = await makeProject(
      {
        "src/a.js": `/** @typedef {{ orderNo: string }} Order */
/** @typedef {{ invoiceNo: string }} Invoice */
/**
 * @redisLock businessFlag=f keyName=order keyType=CLASS fieldName=orderNo keyClass=Order
 * @param {Order} order
 */
export async function pay(order) { return order.orderNo; }
/**
 * @redisLock businessFlag=f keyName=order keyType=CLASS fieldName=orderNo keyClass=Invoice
 * @param {Order} order
 */
export async function ship(order) { return order.orderNo; }
`,
        "src/b.tsx": `/** @redisLock businessFlag=f keyName="<string>id" */
export async function pay(id: string): Promise<string> { return id; }
`,
      },
      { allowJs: true, checkJs: true, jsx: "preserve" },
    );
    const { stdout } = await project.tspc("--noEmit");
    const first = await project.placeOf("Invoice\n", "src/a.js");
    const second = await project.placeOf("<string>id", "src/b.tsx");
    t.deepEqual(
      stdout.split(/\n(?=src)/).map((error) => error.split("\n")[0]),
      [
        `${first}: error TS1360: Type 'Order' does not satisfy the expected type 'Invoice'.`,
        `${second}: error TS901203: LW1203: Expected an expression between the quotes, got \`<string>id\`.`,
      ],
    );
  },
);

const JAVASCRIPT: Readonly<Record<string, string>> = {
  casts: `/** @returns {unknown} */ const work = () => 1;
/** @redisLock businessFlag=f */ export async function f() { return /** @type {Promise<number>} */ (work()); }
/** @redisLock businessFlag=f */ export async function g() { return /** @type {{ go(): Promise<string> }} */ (work()).go(); }
/** @redisLock businessFlag=f */ export async function h() { return work() ? /** @type {Promise<number>} */ (work()) : /** @type {string} */ (work()); }
/** @redisLock businessFlag=f */ export async function i() { return /** @type {Promise<number>} */ (work() ? work() : 2); }
/** @redisLock businessFlag=f */ export async function j() { try { return /** @type {Promise<number>} */ (work()); } finally { work(); } }
/** @redisLock businessFlag=f */ export const k = async () => /** @type {{ go(): Promise<string> }} */ (work()).go();
/** @redisLock businessFlag=f */ export const l = async () => /** @type {"a" | "b"} */ ("a");
/** @redisLock businessFlag=f */ export const m = async () => /**
  * @type {{ a: "x" }} */ ({ a: "x" });
/** @redisLock businessFlag=f */ export const n = async () => /** @satisfies {Promise<unknown>} */ (2);
/** @redisLock businessFlag=f reentrant=true */ export const o = async () => /** @type {Promise<number>} */ (work());`,
  "documented types": `/** @redisLock businessFlag=f reentrant=true
 * @returns {Promise<"a" | "b">} */ export async function f() { return "a"; }
/** @redisLock businessFlag=f reentrant=true
 * @returns {Promise<
 *   "a" | "b">} */ export const g = async () => "a";
export class C { /** @redisLock businessFlag=f reentrant=true
   * @returns {Promise<"a">} */ async pay() { return "b"; } }`,
  stubs: `export class Base { /** @redisLock businessFlag=f reentrant=true */ async pay() { throw new Error("not yet"); } }
export class Real extends Base { async pay() {} }
/** @redisLock businessFlag=f reentrant=true */ export async function pay() { throw new Error("not yet"); }`,
  "arguments that the body uses": `/** @redisLock businessFlag=f reentrant=true
 * @param {string} id */ export async function f(id) { return id + arguments.length; }
/** @redisLock businessFlag=f */ export async function g() { try { return Promise.resolve(arguments[0]); } finally { f(""); } }
/** @redisLock businessFlag=f reentrant=true */ export async function h() { const own = function () { return arguments; }; return own; }
/** @redisLock businessFlag=f reentrant=true */ export async function i() { return { arguments: 1 }.arguments; }
/** @redisLock businessFlag=f reentrant=true */ export async function j() { return { all: arguments }.all.length; }
export class C { /** @redisLock businessFlag=f reentrant=true */ async pay() { arguments; } }
void f("a", 1); void g(1, 2); void h(1); void i(1); void j(1); void new C().pay(1, 2);`,
  "a parameter that its default narrows": `/** @redisLock businessFlag=f
 * @param {number[]} list
 * @param {number | undefined} [limit] */
export async function f(list, limit = 5) { if (list.length > 3) limit = undefined; return list.filter((n) => limit === undefined || n < limit); }
/** @redisLock businessFlag=f reentrant=true
 * @param {number[]} list
 * @param {"few" |
 *   undefined} [limit] */
export async function g(list, limit = "few") { if (list.length > 3) limit = undefined; return limit; }
/** @redisLock businessFlag=f reentrant=true
 * @param {string=} id */
export const h = async (id = "a") => { if (id.length > 3) id = undefined; return id; };
/** @redisLock businessFlag=f reentrant=true */
export const i = async (/** @type {string | null} */ id = "a") => { if (id.length > 3) id = null; return id; };
/** @redisLock businessFlag=f reentrant=true
 * @template T
 * @param {T | string} id */
export async function j(id = "a") { if (id === "b") id = "c"; return id; }
/** @redisLock businessFlag=f reentrant=true */ export async function k(id = "a") { id = 3; return id; }`,
  "TypeScript in JavaScript": `/** @redisLock businessFlag=f reentrant=true */ export async function f(): Promise<number> { return 1; }`,
};

inMatrixSerially("the errors and declarations of checked JavaScript equal those of plain tsc", async (t) => {
  const files = Object.entries(JAVASCRIPT).map(([name, text]) => [
    `src/${name.replaceAll(" ", "-")}.js`,
    text,
  ]);
  const settings = { allowJs: true, checkJs: true, declaration: true };
  const project = await makeProject(Object.fromEntries(files) as Record<string, string>, settings);
  const plain = await project.tsc("--outDir", "plain");
  t.is((await project.tspc()).stdout, plain.stdout);
  for (const name of Object.keys(JAVASCRIPT)) {
    const file = `${name.replaceAll(" ", "-")}.d.ts`;
    t.is(await project.read(`out/${file}`), await project.read(`plain/${file}`), file);
  }
});

for (const packageType of ["module", "commonjs"]) {
  inMatrixSerially(`the weave adds no import to declaration files, with type ${packageType}`, async (t) => {
    const project = await makeProject(
      {
        "package.json": JSON.stringify({ type: packageType }),
        "src/a.ts": `import { currentLock } from "lockweave";
/** @redisLock businessFlag=f */ export async function f() { return currentLock(); }
/** @redisLock businessFlag=f */ export const g = async () => ({ locks: [currentLock()] });
`,
        "src/b.ts": `import { f } from "./a.js";
export class C { /** @redisLock businessFlag=f */ async m() { return new Map([[1, await f()]]); } }
`,
        "src/c.ts": `import { when } from "lockweave/runtime";
/** @redisLock businessFlag=f */ export async function f() { return when(true); }
`,
      },
      { declaration: true },
    );
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.tsc("--outDir", "plain"), { code: 0, stdout: "" });
    for (const name of ["a.d.ts", "b.d.ts", "c.d.ts"]) {
      t.is(await project.read(`out/${name}`), await project.read(`plain/${name}`));
    }
  });
}

for (const verbatimModuleSyntax of [false, true]) {
  inMatrixSerially(
    `the weave adds no error to CommonJS with erasable syntax and verbatimModuleSyntax ${verbatimModuleSyntax}`,
    async (t) => {
      const tagged = `/** @redisLock businessFlag=f keyName=id */
async function pay(id: string): Promise<string> { return id; }
`;
      const project = await makeProject(
        {
          "package.json": "{}",
          "src/a.ts": verbatimModuleSyntax
            ? `import type { Order } from "./order.js";\n${tagged}module.exports = { pay: (order: Order) => pay(order.id) };\n`
            : `${tagged}export { pay };\n`,
          "src/order.ts": "export interface Order { id: string }\n",
          "run.cjs": `const { configure, memoryStore } = require("lockweave"); configure({ store: memoryStore(), woven: false });
const { pay } = require("./out/a.js"); pay(${verbatimModuleSyntax ? '{ id: "A1" }' : '"A1"'}).then(console.log);`,
        },
        { erasableSyntaxOnly: true, verbatimModuleSyntax, types: ["node"], declaration: true },
      );
      t.like(await project.tspc(), { code: 0, stdout: "" });
      t.regex(await project.read("out/a.js"), /lockweave\.acquire/);
      t.is((await project.run("run.cjs")).stdout, "A1\n");
    },
  );
}

inMatrixSerially(
  "Lockweave's declarations have no errors without skipLibCheck and with an older lib",
  async (t) => {
    const project = await makeProject(
      {
        "src/a.ts": `import { configure, withLock } from "lockweave";
configure({ redis: "redis://localhost:6379" });
/** @redisLock businessFlag=f keyName=id */
export async function pay(id: string): Promise<string> { return withLock(id, {}, async () => id); }
`,
      },
      { skipLibCheck: false, lib: ["es2020"], target: "es2020", types: ["node"] },
    );
    t.like(await project.tspc("--noEmit"), { code: 0, stdout: "" });
  },
);
