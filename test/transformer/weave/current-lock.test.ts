import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

/** Weaves a tagged function with these statements. */
function woven(body: string, imports = 'import { currentLock } from "lockweave";'): string {
  const source = `${imports}
/** @redisLock businessFlag=pay */
export async function pay(list: any) { ${body} }`;
  return weave("a.ts", source, { ts, module: "esm" })?.code ?? "";
}

/** Returns the statements of the function in woven code. */
function bodyIn(code: string): string | undefined {
  return code.split("assertHeld(lock);")[1]?.split("} catch (error)")[0]?.trim();
}

/** `‸` marks where the weave inserts the lock. */
const OURS = [
  "currentLock(‸);",
  'import("lockweave").then((locks) => locks.currentLock(‸));',
  'import("lockweave").then(({ currentLock: own }) => own(‸));',
  'import("lockweave").then(function (locks) { return locks["currentLock"](‸); });',
  'const locks = await import("lockweave"); locks.currentLock(‸);',
  'const locks = import("lockweave"); (await locks).currentLock(‸);',
  'const { currentLock: own } = require("lockweave"); own(‸);',
  "(0, currentLock)(‸);",
  "(currentLock as any)(‸);",
];

const OTHERS = [
  "list.map((locks) => locks.currentLock());",
  "list.then((locks) => locks.currentLock());",
  "list.then(({ currentLock }) => currentLock());",
  'import("other").then((locks) => locks.currentLock());',
  'import("lockweave").catch((locks) => locks.currentLock());',
  'import("lockweave").then(list, (locks) => locks.currentLock());',
  'import("lockweave").then((locks, others) => others.currentLock());',
  'const locks = import("lockweave"); locks.currentLock();',
  "list.currentLock();",
  "{ const currentLock = list; currentLock(); }",
  "((currentLock) => currentLock())(list);",
  "(currentLock, list)();",
];

for (const marked of OURS) {
  const body = marked.replace("‸", "");
  test(`the weave passes the lock to currentLock() in: ${body}`, (t) => {
    t.is(bodyIn(woven(body)), marked.replace("‸", "lock"));
  });
}

for (const body of OTHERS) {
  test(`the weave does not change a call of another currentLock in: ${body}`, (t) => {
    t.is(bodyIn(woven(body)), body);
  });
}
