import test from "ava";
import { transformSync } from "esbuild";
import ts from "typescript";
import { locksIn } from "../../../transformer/verify/locks/locks";
import { weave } from "../../../transformer/weave/weave";

// How the check of a lock that a function needs is found in what compilers and minifiers write.

const SOURCE = `import { db, work } from "./work.js";
export class Ledger {
  tenant = "t";
  /** @needsLock businessFlag=order keyName=id */
  async post(id: string) { return work(id); }
  /** @needsLock businessFlag=order keyName=id */
  check(id: string) { if (work(id)) throw new Error(id); work("x"); }
  /** @needsLock businessFlag=tenant keyName=id mode=read */
  static own = (id: string) => work(id) || db;
  /** @needsLock businessFlag=order keyName=a.id
    * @needsLock businessFlag=order keyName=b.id */
  async move({ a, b }: { a: { id: string }; b: { id: string } }, limit = 5) { for (const x of db.list) work(a.id + b.id + limit + x); }
  /** @needsLock key="mutex:\${id}" store=other
    * @redisLock businessFlag=account keyName=account */
  async book(id: string, account: string) { await work(id); return work(account); }
  /** @needsLock businessFlag=order keyName=id */
  async *stream(id: string) { yield work(id); }
  /** @needsLock businessFlag=order keyName=id */
  async using(id: string) { using gate = db.open(); gate.pass(id); }
  /** @needsLock businessFlag=order keyName=id */
  loop(id: string) { while (work(id)) work(1); }
  /** @needsLock businessFlag=order keyName=id */
  inner(id: string) { "use strict"; return more(1) + more(2); function more(x: number) { return x + work(id); } }
  /** @needsLock businessFlag=order keyName=id */
  choose(id: string) { switch (this.tenant) { case "a": return 1; default: return work(id); } }
}
/** @needsLock businessFlag=all */
export const nothing = () => {};
`;

const woven = weave("ledger.ts", SOURCE, { ts, module: "esm" });
const code = woven?.code ?? "";

const byTypeScript = (target: ts.ScriptTarget, module = ts.ModuleKind.ESNext): string =>
  ts.transpileModule(code, { compilerOptions: { target, module } }).outputText;
const byEsbuild = (options: object): string => transformSync(code, { loader: "ts", ...options }).code;

const COMPILED: Readonly<Record<string, () => string>> = {
  "the compiler, for CommonJS": () => byTypeScript(ts.ScriptTarget.ES2022, ts.ModuleKind.CommonJS),
  "the compiler, for es2017": () => byTypeScript(ts.ScriptTarget.ES2017),
  "the compiler, for es2015": () => byTypeScript(ts.ScriptTarget.ES2015),
  esbuild: () => byEsbuild({}),
  "esbuild's minifier": () => byEsbuild({ minify: true }),
  "esbuild's minifier, for es2015 and with names": () =>
    byEsbuild({ minify: true, keepNames: true, target: "es2015" }),
};

for (const [by, compile] of Object.entries(COMPILED)) {
  test(`every check and every lock is found in the output of ${by}`, (t) => {
    const { locks, broken } = locksIn(ts, "ledger.js", compile());
    t.deepEqual(broken, []);
    const found = locks.map(({ tag, site }) => `${tag} ${site}`);
    const expected = [
      ...(woven?.needs ?? []).map(({ site }) => `needsLock ${site}`),
      ...(woven?.sites ?? []).map(({ name }) => `redisLock ${name}`),
    ];
    t.is(expected.length, 13);
    t.deepEqual(found.toSorted(), expected.toSorted());
  });
}

const CHECK = 'lockweave.needs({ site: "post", businessFlag: "order" }, id)';

/** Forms that a minifier of another version or kind may write. */
const FIRST: Readonly<Record<string, string>> = {
  "a sequence": `{ return ${CHECK}, work(id); }`,
  "a condition": `{ if (${CHECK}, work(id)) return 1; }`,
  "the start of a loop": `{ for (${CHECK}; work(id);); }`,
  "the object of a loop": `{ for (key in ${CHECK}, work(id)); }`,
  "what is awaited": `{ await (${CHECK}, work)(id); }`,
  "a loop that runs at least once": `{ do { ${CHECK}; } while (work(id)); }`,
  "another check before it": `{ ${CHECK}, ${CHECK}, work(id); }`,
  "a call by a name of the bundler": `{ n2({ site: "post", businessFlag: "order" }, id); }`,
};

for (const [where, body] of Object.entries(FIRST)) {
  test(`a check counts in this form: ${where}`, (t) => {
    const { locks, broken } = locksIn(ts, "ledger.js", `async function post(id) ${body}`);
    t.true(locks.some(({ tag, site }) => tag === "needsLock" && site === "post"));
    t.deepEqual(broken, []);
  });
}

const NOT_FIRST: Readonly<Record<string, string>> = {
  "work is done before it": `async function post(id) { work(id); ${CHECK}; }`,
  "work is done before it in a sequence": `async function post(id) { work(id), ${CHECK}; }`,
  "it depends on a condition": `async function post(id) { if (id) ${CHECK}; work(id); }`,
  "it is the second part of a condition": `async function post(id) { id && ${CHECK}; work(id); }`,
  "it is a default of a parameter": `async function post(id, by = ${CHECK}) { work(id); }`,
  "it is in a function inside": `async function post(id) { work(id); const check = () => { work(id); ${CHECK}; }; }`,
  "it is in no function": `${CHECK};`,
  "it is in a variable": `async function post(id) { const x = work(id) || ${CHECK}; }`,
  "another step is called": `async function post(id) { ${CHECK.replace(".needs", ".open")}; work(id); }`,
};

for (const [what, text] of Object.entries(NOT_FIRST)) {
  test(`a check does not count if ${what}`, (t) => {
    const { locks, broken } = locksIn(ts, "ledger.js", text);
    t.deepEqual(locks, []);
    t.deepEqual(
      broken.map(({ site }) => site),
      ["post"],
    );
  });
}
