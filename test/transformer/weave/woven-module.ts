import { runInThisContext } from "node:vm";
import ts from "typescript";
import * as runtime from "../../support/whole-runtime";
import { weave } from "../../../transformer/weave/weave";
import { observed } from "../../support/observed-store";

/** The events in their order. The store adds `acquire` and `release`, and the bodies add the others. */
export const events: string[] = [];

/** The keys that are held. */
export const held = new Set<string>();

/** Configures the real runtime with a memory store that records events. */
export function configureObserved(): void {
  const store = observed(runtime.memoryStore(), {
    onAcquired: (key) => {
      held.add(key);
      events.push("acquire");
    },
    onRelease: (key) => {
      held.delete(key);
      events.push("release");
    },
  });
  runtime.configure({ store }, "woven");
}

/**
 * Weaves, compiles, and runs a module. It imports `world` from "world".
 *
 * @param lower compiles the woven code with another compiler
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
