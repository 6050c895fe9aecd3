import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { installed } from "../installed";
import { inMatrix, outsideMatrix } from "../../support/suites";
import { HOSTS, makeHosted } from "./project";

// Tools that compile a file themselves, and run it under the name of the file.

const PAY = `/** @redisLock businessFlag=pay keyName=id */
exports.pay = async (id) => id;
exports.format = (price) => price.toFixed(2);
`;
const REFUSED = "pay.js(1,5): error LW1404: `exports.pay` would run without its lock.";

const RUNS: Readonly<Record<string, string>> = {
  runInThisContext: `vm.runInThisContext(wrapped, { filename })`,
  "runInThisContext with only a name": `vm.runInThisContext(wrapped, filename)`,
  runInNewContext: `vm.runInNewContext(wrapped, {}, { filename })`,
  runInContext: `vm.runInContext(wrapped, vm.createContext({}), { filename })`,
  Script: `new vm.Script(wrapped, { filename }).runInThisContext()`,
  "a module": `(exports) => Object.assign(exports, compiledAsModule(code))`,
  compileFunction: `vm.compileFunction(code, ["exports"], { filename })`,
};

for (const [name, run] of Object.entries(RUNS)) {
  outsideMatrix(
    `code of a tagged file is an error if a tool compiles it without the lock: ${name}`,
    async (t) => {
      const project = await makeHosted({
        "package.json": "{}",
        "pay.js": PAY,
        "main.js": `const vm = require("node:vm");
const filename = require.resolve("./pay.js");
const text = require("node:fs").readFileSync(filename, "utf8");
const whole = text.replace(/\\/\\*.*?\\*\\//g, "");
const part = whole.replace(/^exports\\.pay.*$/m, "");
function compiledAsModule(code) {
  const made = new module.constructor(filename);
  made._compile(code, filename);
  return made.exports;
}
for (const code of [part, whole]) {
  const wrapped = "(function (exports) {" + code + "})";
  const exported = {};
  try { (${run})(exported); console.log(Object.keys(exported).join()); }
  catch ({ message }) { console.log(message); }
}
`,
      });
      const { stdout, stderr } = await project.run(...HOSTS.Node, "main.js");
      const [part, whole = ""] = stdout.split("\n");
      t.is(part, "format", stderr);
      t.true(whole.startsWith(REFUSED), stdout);
    },
  );
}

inMatrix("a tagged file that jiti loads is an error", async (t) => {
  const project = await makeHosted({
    "package.json": `{ "type": "module" }`,
    "pay.ts": `/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> { return id; }
`,
    "main.js": `import { createJiti } from "jiti";
const { pay } = await createJiti(import.meta.url).import("./pay.ts");
console.log(await pay("A1"));
`,
  });
  await symlink(join(await installed("jiti"), "jiti"), project.path("node_modules/jiti"));
  t.like(await project.run("main.js"), { code: 0, stdout: "A1\n" });
  const { code, stdout, stderr } = await project.run(...HOSTS.Node, "main.js");
  t.like({ code, stdout }, { code: 1, stdout: "" });
  t.true(stderr.includes("pay.ts(1,5): error LW1404: `pay` would run without its lock."), stderr);
});
