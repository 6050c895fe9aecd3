import type { Setup } from "./setup";
import { transpileModule, ModuleKind, ScriptTarget } from "typescript";
import { execFileSync } from "node:child_process";
import { shopText } from "./program";
import { outcomeOf } from "./judge";
import { RESULT } from "./program";

const controls = new Map<string, string>();

/** Returns the results of the program without locks, compiled by TypeScript alone. */
export function controlOf(setup: Setup): string {
  const key = `${setup.form} ${setup.mode === "metadata"}`;
  const found = controls.get(key) ?? results(setup);
  controls.set(key, found);
  return found;
}

function results(setup: Setup): string {
  const calls = `Promise.all([exports.pay("A1", "first"), exports.pay("A1", "second")]).then((results) =>
  console.log("${RESULT}" + JSON.stringify({ results, noted: exports.noted, most: exports.mostInside() })));`;
  const compilerOptions = {
    module: ModuleKind.CommonJS,
    target: ScriptTarget.ES2022,
    experimentalDecorators: true,
  };
  const { outputText } = transpileModule(shopText(setup, "untagged"), { compilerOptions });
  const outcome = outcomeOf(
    0,
    execFileSync(process.execPath, ["--eval", `${outputText}\n${calls}`], { encoding: "utf8" }),
  );
  if (outcome.kind !== "free") throw new Error("the program without locks must run unlocked");
  return outcome.results;
}
