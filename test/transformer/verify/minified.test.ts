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
  const { code } = weave("a.js", source, { ts, module: "esm" }) ?? { code: "" };
  if (target === undefined) return code;
  return ts.transpileModule(code, { compilerOptions: { target, module: ts.ModuleKind.ESNext } }).outputText;
}

function locksOf(code: string): readonly Lock[] {
  return locksIn(ts, "a.js", code).locks;
}

for (const [name, { load, isInMatrix }] of Object.entries(MINIFIERS)) {
  const run = isInMatrix ? inMatrix : test;

  run(`each lock counts after ${name} rewrote it, whatever its settings are`, async (t) => {
    const minify = await load();
    const random = new SeededRandom(1);
    for (const tag of TAGS) {
      for (const body of BODIES) {
        for (const target of TARGETS) {
          const code = wovenCode(tag, body, target);
          const made = locksOf(code);
          t.is(made.length, 3, code);
          const minified = await minify(code, random);
          const found = locksOf(minified);
          const refused = made.filter((one) => !found.some((other) => isSame(one, other, "loose")));
          t.deepEqual(
            refused.map(({ site }) => site),
            [],
            `${tag}\n${minified}`,
          );
        }
      }
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
