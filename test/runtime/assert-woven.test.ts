import vm from "node:vm";
import test from "ava";
import * as esbuild from "esbuild";
import ts from "typescript";
import { assertWoven } from "../../runtime";
import { weave } from "../../transformer/weave/weave";

const TAG = "/** @redisLock businessFlag=pay keyName=id */";

/** Functions with a tag, as `name: source`. */
const TAGGED = `
${TAG} export async function declared(id: string, { a = "}" } = {}) { return /[{"\`]/.test(id + a); }
${TAG} export const arrow = async (id: string) => id;
${TAG} export const promised = (id: string): Promise<string> => other(id);
${TAG} export async function* stream(id: string) { yield id; }
export class Orders {
  ${TAG} async method(id: string, limit = 3) { limit += 1; return \`\${id}{\${limit}\`; }
  ${TAG} static async fixed(id: string) { "use strict"; return id; }
  ${TAG} property = async (id: string) => { return this.method(id); };
  ${TAG} async *items(id: string) { yield* stream(id); }
}
export const literal = { ${TAG} async inLiteral(id: string) { return id / 2 / 1; } };
/** @redisLock businessFlag=pay keyName=id when="id.length > 1" reentrant=true */
export async function conditional(id: string) { return id; }
${TAG} export async function outer(id: string) { ${TAG} const inner = async (id: string) => id; return inner(id); }
/** @needsLock businessFlag=pay keyName=id */ export function needing(id: string) { return id; }
/** @needsLock businessFlag=pay keyName=id */ export const needingLater = async (id: string) => { await other(id); };
/** @needsLock businessFlag=pay keyName=id */ export function* needingItems(id: string) { yield id; }
async function other(id: string) { return id; }
export const functions: Record<string, any> = { needing, needingLater, needingItems, declared, arrow, promised, stream, method: Orders.prototype.method, fixed: Orders.fixed,
  property: new Orders().property, items: Orders.prototype.items, inLiteral: literal.inLiteral, conditional, outer };
`;

/** Functions without a tag that contain a woven function, or text that looks like one. */
const UNTAGGED = `
export async function holdsArrow(id: string) { ${TAG} const inner = async (id: string) => id; return inner(id); }
export async function holdsFunction(id: string) { return inner(id); ${TAG} async function inner(id: string) { return id; } }
export const arrowHoldsArrow = async (id: string) => { ${TAG} const inner = async (id: string) => id; return inner(id); };
export const returnsArrow = () => { ${TAG} const inner = async (id: string) => id; return inner; };
export async function holdsObject(id: string) { const a = { ${TAG} async inner(id: string) { return id; } }; return a.inner(id); }
export async function holdsClass(id: string) { class A { ${TAG} async inner(id: string) { return id; } } return new A().inner(id); }
export async function byDefault(id: string, inner = /** @redisLock businessFlag=pay */ async () => 1) { return inner(); }
export async function* streams(id: string) { ${TAG} const inner = async (id: string) => id; yield inner(id); }
export async function quotes(id: string) {
  // const lock = lockweave.open({ site: "a" }); lockweave.acquire(lock); lockweave.retryCheck(lock); lockweave.release(lock);
  return [\`lw.open({ site: "a" }); \${"lw.acquire(lock)"} lw.retryCheck(lock)\`, /lw.release(lock)/, id];
}
export function holdsNeeding(id: string) { return inner(id); /** @needsLock businessFlag=pay keyName=id */ function inner(id: string) { return id; } }
export class Shop { run = async (id: string) => { ${TAG} const inner = async (id: string) => id; return inner(id); }; }
export const functions: Record<string, any> = { holdsArrow, holdsFunction, arrowHoldsArrow, returnsArrow, holdsObject, holdsClass, byDefault,
  streams, quotes, holdsNeeding, run: new Shop().run, Shop };
`;

type Functions = Readonly<Record<string, (...args: never[]) => unknown>>;

/** Weaves and compiles a module, and returns its functions. */
function loaded(source: string, compile: (text: string) => string): Functions {
  const woven = weave("a.ts", source, { ts, module: "esm" });
  if (woven === undefined || woven.diagnostics.length > 0) throw new Error("not woven");
  const module = { exports: {} };
  const run: unknown = vm.runInThisContext(
    `(function (module, exports, require) { ${compile(woven.code)}\n})`,
  );
  (run as (...args: unknown[]) => void)(module, module.exports, () => ({ expectNeeds: () => {} }));
  return (module.exports as { readonly functions: Functions }).functions;
}

const byTypeScript = (target: ts.ScriptTarget) => (text: string) =>
  ts.transpileModule(text, {
    compilerOptions: { target, module: ts.ModuleKind.CommonJS, ignoreDeprecations: "6.0" },
  }).outputText;
const byEsbuild = (options: esbuild.TransformOptions) => (text: string) =>
  esbuild.transformSync(text, { ...options, loader: "ts", format: "cjs" }).code;

const withTslib = (text: string): string =>
  byTypeScript(ts.ScriptTarget.ES2015)(text).replaceAll(
    "return __awaiter(",
    "return (0, tslib_1.__awaiter)(",
  );

/** Adds the counters that coverage tools write before each statement. */
const withCounters = (text: string): string =>
  byTypeScript(ts.ScriptTarget.ES2022)(text).replaceAll(
    /const lock = (lockweave\.open\([^;]*\));/g,
    "c().f[0]++; const lock = (c().s[0]++, $1);",
  );

for (const [what, compile] of [
  ["TypeScript for ES2022", byTypeScript(ts.ScriptTarget.ES2022)],
  ["TypeScript for ES2017", byTypeScript(ts.ScriptTarget.ES2017)],
  ["TypeScript for ES2015", byTypeScript(ts.ScriptTarget.ES2015)],
  ["TypeScript for ES5", byTypeScript(ts.ScriptTarget.ES5)],
  ["TypeScript with imported helpers", withTslib],
  ["esbuild", byEsbuild({})],
  ["esbuild for ES2016", byEsbuild({ target: "es2016" })],
  ["esbuild, minified", byEsbuild({ minify: true })],
  ["a tool for coverage", withCounters],
] as const) {
  test(`assertWoven() distinguishes tagged functions from functions that contain one: ${what}`, (t) => {
    const tagged = Object.entries(loaded(TAGGED, compile));
    t.is(tagged.length, 14);
    for (const [name, fn] of tagged) t.notThrows(() => assertWoven(fn), `${name}: ${String(fn)}`);
    const untagged = Object.entries(loaded(UNTAGGED, compile));
    t.is(untagged.length, 12);
    for (const [name, fn] of untagged)
      t.throws(() => assertWoven(fn), { code: "LOCK_NOT_WOVEN" }, `${name}: ${String(fn)}`);
  });
}

test("the error of assertWoven() says how to fix it", (t) => {
  const messageOf = (fn: (...args: never[]) => unknown): string => t.throws(() => assertWoven(fn)).message;
  const plain = messageOf(async () => {});
  for (const fix of ["@redisLock", "lockweave/vite", "lockweave/jest", "lockweave/register"])
    t.true(plain.includes(fix), plain);
  const { holdsArrow = () => {} } = loaded(UNTAGGED, byEsbuild({}));
  t.regex(
    messageOf(holdsArrow),
    /^The function `holdsArrow` was not woven: it has no lock, but a function inside it has one\. Fix: put/,
  );
  t.regex(
    messageOf(holdsArrow.bind(null)),
    /`bound holdsArrow` was not woven: .* Fix: give assertWoven\(\) the function itself/,
  );
});
