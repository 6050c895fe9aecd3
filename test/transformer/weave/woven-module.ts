import { runInThisContext } from "node:vm";
import ts from "typescript";
import * as runtime from "../../../runtime";
import { weave } from "../../../transformer/weave/weave";
import { observed } from "../../support/observed-store";

/** What happened, in its order: `acquire` and `release` by the store, the rest by the bodies. */
export const events: string[] = [];

/** The keys that are held. */
export const held = new Set<string>();

/** The real runtime on a memory store that takes notes. */
export function configureObserved(): void {
  const store = observed(runtime.memoryStore(), {
    onTaken: (key) => {
      held.add(key);
      events.push("acquire");
    },
    onDrop: (key) => {
      held.delete(key);
      events.push("release");
    },
  });
  runtime.configure({ store }, "woven");
}

/**
 * Weaves, compiles and runs a module, in which `world` is imported from "world".
 *
 * @param lower what another compiler makes of the woven code
 */
export function runWoven(
  source: string,
  world: object = {},
  target: ts.ScriptTarget = ts.ScriptTarget.ES2022,
  lower: (code: string) => string = (code) => code,
): object {
  const text = `import { world } from "world";\n${source}\nexport { world };`;
  const woven = weave("a.ts", text, { ts, module: "esm" });
  if (woven === undefined || woven.diagnostics.length > 0)
    throw new Error(JSON.stringify(woven?.diagnostics));
  return evaluate(lower(woven.code), world, target);
}

/** Compiles and runs a module. */
export function evaluate(code: string, world: object, target: ts.ScriptTarget): object {
  const compilerOptions = { module: ts.ModuleKind.CommonJS, target };
  const { outputText } = ts.transpileModule(code, { compilerOptions });
  const exports = {};
  const module = runInThisContext(`(function (exports, require) {${outputText}\n})`) as (
    exports: object,
    require: (name: string) => object,
  ) => void;
  module(exports, (name) => (name === "world" ? { world } : runtime));
  return exports;
}
