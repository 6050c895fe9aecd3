import { symlink } from "node:fs/promises";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { inMatrix } from "../../support/suites";
import { installed } from "../installed";
import type { Finished } from "../project";
import { makeHosted, orders } from "./project";

// Packages that compile TypeScript for `require()`, such as `@swc-node/register`, `@babel/register`, and `sucrase/register`. All of them hook
// the extension as `acme-hook` does here, most of them with the package `pirates`.

const FILES = {
  "package.json": "{}",
  "tsconfig.json": "{}",
  "node_modules/acme-hook/index.js": `const { _extensions } = require("node:module");
exports.addHook = (compile, extension) => {
  const load = _extensions[extension] ?? _extensions[".js"];
  _extensions[extension] = (module, path) => {
    const compileOutput = module._compile;
    module._compile = (code) => {
      module._compile = compileOutput;
      module._compile(compile(code, path), path);
    };
    load(module, path);
  };
};
`,
  "node_modules/acme-register/index.js": `const { readFileSync } = require("node:fs");
const ts = require("typescript");
const compilerOptions = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 };
require("acme-hook").addHook((code, path) => {
  const text = process.argv.includes("cached") ? readFileSync(path, "utf8") : code;
  return ts.transpileModule(text, { compilerOptions }).outputText;
}, ".ts");
`,
  "main.ts": `import { configure, memoryStore, shutdown } from "lockweave";
import { Kind, Orders } from "./orders";
configure({ store: memoryStore() });
void new Orders().pay("A1").then((paid) => { console.log(paid, Kind.Fast); return shutdown(); });
`,
  "orders.ts": `${orders("pay")}export enum Kind { Fast = "fast" }\n`,
};
const ACME = ["--require", "acme-register"];
const OURS = ["--require", "lockweave/register"];

async function run(...args: readonly string[]): Promise<Finished> {
  const project = await makeHosted(FILES);
  return await project.run(...args);
}

function refused(t: ExecutionContext, { code, stdout, stderr }: Finished, message: RegExp): void {
  t.like({ code, stdout }, { code: 1, stdout: "" });
  t.regex(stderr, message);
}

for (const [order, hooks] of [
  ["before", [...ACME, ...OURS]],
  ["after", [...OURS, ...ACME]],
] as const) {
  test(`a package that hooks require() ${order} Lockweave compiles the woven text`, async (t) => {
    const { stdout, stderr } = await run(...hooks, "main.ts");
    t.is(stdout, "A1 under LOCK_pay_A1 fast\n", stderr);
  });
}

for (const [name, entry] of [
  ["@swc-node", "@swc-node/register"],
  ["esbuild-register", "esbuild-register"],
  ["sucrase", "sucrase/register"],
] as const) {
  inMatrix(`${entry} compiles the woven text, before and after Lockweave`, async (t) => {
    const project = await makeHosted(FILES);
    await symlink(join(await installed("require-hooks"), name), project.path(`node_modules/${name}`));
    for (const hooks of [
      ["--require", entry, ...OURS],
      [...OURS, "--require", entry],
    ]) {
      const { stdout, stderr } = await project.run(...hooks, "main.ts");
      t.is(stdout, "A1 under LOCK_pay_A1 fast\n", stderr);
    }
  });
}

test("a hook that compiles other text than the woven one is an error that names its package", async (t) => {
  const message =
    /orders\.ts\(4,7\): error LW1404: `Orders\.pay` would run without its lock\. `acme-register` compiled .* Fix: /;
  refused(t, await run(...OURS, ...ACME, "main.ts", "cached"), message);
});

const cannotStrip = "typescript" in process.features ? test.skip : test;
cannotStrip(
  "TypeScript that a hook does not receive, because it is imported, is an error that names the hook",
  async (t) => {
    const message =
      /main\.ts, which is TypeScript\. Hooks such as `acme-register` receive .* Fix: load the hook and `lockweave\/register` with `--require`/;
    refused(t, await run(...ACME, "--import", "lockweave/register", "main.ts"), message);
  },
);
