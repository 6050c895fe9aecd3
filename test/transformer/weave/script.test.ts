import test from "ava";
import ts from "typescript";
import { fileWeaver } from "../../../transformer/hosts/one-file/weaver";
import { weave } from "../../../transformer/weave/weave";

const weaver = fileWeaver(ts);
const PAY = "/** @redisLock businessFlag=pay */ async function pay() {}";

/** Returns the inserted import of the runtime, with the text before it. */
function runtimeIn(text: string, fileName = "pay.cts"): string | undefined {
  const woven = weaver(fileName, text, "as written");
  return /^(.*lockweave\/runtime"\)?;)/s.exec(woven?.code ?? "")?.[1];
}

test("CommonJS requires the runtime before all other code", (t) => {
  const runtime = 'const lockweave = require("lockweave/runtime");';
  for (const [text, before] of [
    [`${PAY}; module.exports = { pay };`, ""],
    [`"use strict"; ${PAY}`, '"use strict"; '],
    [`"use strict"\n${PAY}`, '"use strict"; '],
    [`#!/usr/bin/env node\n${PAY}`, "#!/usr/bin/env node\n"],
    [`import type { A } from "a"; export type { B } from "b"; export type C = A; ${PAY}`, ""],
  ] as const) {
    t.is(runtimeIn(text), before + runtime);
    if (!/^(?:#!.*\n)?\/\*\*/.test(text)) t.is(runtimeIn(text, "pay.cjs"), before + runtime);
  }
});

test("JavaScript requires the runtime after a first function with JSDoc types, which would be lost otherwise", (t) => {
  const runtime = 'const lockweave = require("lockweave/runtime");';
  const typed = "/** @redisLock businessFlag=pay\n * @param {string} id */";
  for (const [first, separator] of [
    ["async function pay(id) {}", ""],
    ["exports.pay = async (id) => id;", ""],
    ["exports.pay = async (id) => id", ";"],
    ["const pay = async function (id) {};", ""],
  ] as const) {
    for (const before of ["", "#!/usr/bin/env node\n"]) {
      const { code } = weaver("pay.cjs", `${before}${typed} ${first}\npay();`, "as written") ?? {};
      t.true(code?.startsWith(`${before}/** @redisLock`));
      t.true(code?.endsWith(`${separator} ${runtime}\npay();`), code);
    }
  }
  for (const [first, fileName] of [
    ["pay(); async function pay(id) {}", "pay.cjs"], // It may run the tagged function.
    ["module.exports = pay(); async function pay(id) {}", "pay.cjs"],
    ["class Pay { static { pay(); } } async function pay(id) {}", "pay.cjs"],
    ["async function pay(id) {}", "pay.cts"],
  ] as const) {
    const text = `/** @type {A} */ ${first.replace("async", `\n${typed} async`)}`;
    t.is(runtimeIn(text, fileName), runtime, first);
  }
  t.is(runtimeIn(`\n${typed} async function pay(id) {}`, "pay.cjs"), runtime);
});

test("a file with `import =` or with ES module syntax imports the runtime in the same way", (t) => {
  t.is(runtimeIn(`import a = require("a"); ${PAY}`), 'import lockweave = require("lockweave/runtime");');
  t.true(runtimeIn(`${PAY} export = pay;`)?.endsWith('; import lockweave = require("lockweave/runtime");'));
  const esm = 'import * as lockweave from "lockweave/runtime";';
  for (const text of [
    `import { a } from "a"; ${PAY}`,
    `export * from "a"; ${PAY}`,
    `${PAY} export { pay };`,
    `${PAY} export default pay;`,
    `${PAY} export const a = 1;`,
    `import { type A } from "a"; ${PAY}`,
    `${PAY} console.log(import.meta.url);`,
  ]) {
    t.true(runtimeIn(text)?.endsWith(esm), text);
  }
});

test("a script that is already woven is not woven again", (t) => {
  const once = weave("pay.cjs", PAY, { ts, module: "script" });
  t.is(weave("pay.cjs", once?.code ?? "", { ts, module: "script" }), undefined);
});

test("each part of the inserted `require` of the runtime maps to the tag, even after a directive", (t) => {
  const text = `"use strict"; ${PAY}`;
  const { code = "", positions } = weave("pay.cjs", text, { ts, module: "script" }) ?? {};
  const start = code.indexOf("const lockweave");
  for (const end of [start + 5, start + 20]) {
    const tag = positions?.toDisk({ start: end - 4, end });
    t.is(text.slice(tag?.start, tag?.end), "@redisLock");
  }
});
