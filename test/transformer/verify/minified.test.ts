import test from "ava";
import ts from "typescript";
import { isSame } from "../../../transformer/verify/check";
import { locksIn, type Lock } from "../../../transformer/verify/locks/locks";
import { weave } from "../../../transformer/weave/weave";
import { SeededRandom } from "../../support/seeded-random";
import { inMatrix } from "../../support/suites";
import { EDITS, WOVEN } from "./edits";
import { MINIFIERS } from "./minifiers";

// Woven code of many shapes, rewritten by tools with random settings. The locks must count, and those with work outside of them must not.

const TARGETS = [
  undefined,
  ts.ScriptTarget.ES2015,
  ts.ScriptTarget.ES2016,
  ts.ScriptTarget.ES2017,
  ts.ScriptTarget.ES2018,
  ts.ScriptTarget.ES2022,
];

const TAGS = [
  "keyName=id",
  "keyName=id onFailure=skip",
  "keyName=id onFailure=skip skipValue=\"'busy'\"",
  "keyName=id reentrant=true",
  "keyName=id mode=read",
  "keyName=id when=live",
  "keyName=\"live === undefined ? 'none' : live\"",
  "keyName=id onFailure=skip skipValue=\"live === undefined ? 'busy' : live\"",
  "keyName=id lockTime=45s retryTimes=3 fencing=true",
  "keyName=id onFailure=skip skipValue=\"{ status: 'busy', id }\"",
];

/** Functions that are called once or twice, so that a minifier moves them into the bodies. */
const HELPERS = `
function region(s) { return "eu:" + s; }
function once(s) { var r = s; for (let i = 0; i < 2; i++) { r += i; } return r; }
function twice(s) { let r; if (s) { r = s + s; } else { r = 0; } return r; }
const pure = (s) => { const t = s.trim(); return t; };
async function work(a) { const c = await Promise.resolve(a); return c; }
async function list(a) { return [[a]]; }
`;

const BODIES = [
  "return region(id);",
  "return region(`${id}/x`);",
  "await work(id); return 1;",
  "const a = pure(id); for (const b of [1, 2, 3]) { await work(b, a); } return a;",
  "if (id) return twice(id); else throw new Error(region(id));",
  "try { return await work(id); } catch (error) { log(error); throw error; } finally { log(1); }",
  "let n = 0; while (n < 3) n++; const f = () => n; return f() + n;",
  "function inner(x) { var y = x + 1; return y * 2; } return inner(inner(id.length));",
  "switch (id) { case 'a': return once(1); case 'b': { const { x, y = 2 } = await work(id); return x + y; } default: return id?.length ?? 0; }",
  "var v = once(2); class K { static z = v; m() { return v; } } return new K().m();",
  "label: for (const a of await list(id)) { for (const b of a) { if (b) continue label; if (a) break label; } } return arguments.length;",
  "const { a, ...rest } = await work(id); return { ...rest, [a]: twice(a) };",
];

/** Functions whose keys and conditions refer to `this`, to a part of a parameter, or to its default, and generators. */
const SHAPES = `${HELPERS}
export class Shops {
  region = "eu";
  isOpen = true;
  /** @redisLock businessFlag=a keyName=this.region */
  async pay(id) { await work(id); return this.region; }
  /** @redisLock businessFlag=b keyName=id when=this.isOpen */
  async bill(id) { return await work(id, this.region); }
  /** @redisLock businessFlag=c keyName=this.region onFailure=skip skipValue=this.region */
  ship = async (id) => { await work(id, this.region); };
  /** @redisLock businessFlag=d keyName=this.region,id */
  async *list(id) { yield 1; await work(id); }
}
/** @redisLock businessFlag=e keyName=id */
export async function refund({ id, live = 3, ...rest }) { await work(id); return { live, ...rest }; }
/** @redisLock businessFlag=f keyName=live */
export async function close({ order: { id, live = 3 }, by }) { await work(id, by); return live; }
/** @redisLock businessFlag=g keyName=live */
export async function reopen(id, live = "x") { await work(id); return live; }
/** @redisLock businessFlag=h keyName=id */
export async function* all(id, live = 3) { yield live; yield* await list(id); }
`;

/** Returns woven code with locks of a function, a method, and an arrow function. */
function wovenCode(tag: string, body: string, target: ts.ScriptTarget | undefined): string {
  const inArrow = body.includes("arguments") ? "return id;" : body;
  const source = `${HELPERS}
/** @redisLock businessFlag=a ${tag} */
export async function pay(id, live) { ${body} }
export class Orders { /** @redisLock businessFlag=b ${tag} */ async pay(id, live = true) { ${body} } }
/** @redisLock businessFlag=c ${tag} */
export const ship = async (id, live) => { ${inArrow} };
`;
  return wovenFor(target, source);
}

function wovenFor(target: ts.ScriptTarget | undefined, source: string): string {
  const { code } = weave("a.js", source, { ts, module: "esm" }) ?? { code: "" };
  if (target === undefined) return code;
  return ts.transpileModule(code, { compilerOptions: { target, module: ts.ModuleKind.ESNext } }).outputText;
}

function locksOf(code: string): readonly Lock[] {
  return locksIn(ts, "a.js", code).locks;
}

for (const [name, { load, isInMatrix, unread = [] }] of Object.entries(MINIFIERS)) {
  const run = isInMatrix ? inMatrix : test;

  run(`each lock counts after ${name} rewrote it, whatever its settings are`, async (t) => {
    const minify = await load();
    const random = new SeededRandom(1);
    const assertAllCount = async (code: string, count: number): Promise<void> => {
      const made = locksOf(code);
      t.is(made.length, count, code);
      const minified = await minify(code, random);
      const found = locksOf(minified);
      const refused = made.filter((one) => !found.some((other) => isSame(one, other, "loose")));
      t.deepEqual(
        refused.map(({ site }) => site).filter((site) => !unread.includes(site)),
        [],
        `${code}\n${minified}`,
      );
    };
    for (const target of TARGETS) {
      for (let round = 0; round < 15; round += 1) await assertAllCount(wovenFor(target, SHAPES), 8);
      for (const tag of TAGS)
        for (const body of BODIES) await assertAllCount(wovenCode(tag, body, target), 3);
    }
  });

  run(`no lock counts that had work outside of it before ${name} rewrote it`, async (t) => {
    const minify = await load();
    const random = new SeededRandom(2);
    t.is(locksOf(await minify(WOVEN, random)).length, 1);
    for (const [what, [from, to]] of Object.entries(EDITS)) {
      if (what.includes("may call a getter")) continue; // A minifier may remove that.
      for (let round = 0; round < 5; round += 1) {
        const minified = await minify(WOVEN.replace(from, to), random);
        t.deepEqual(locksOf(minified), [], `${what}\n${minified}`);
      }
    }
  });
}
