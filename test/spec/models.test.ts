import { readFileSync } from "node:fs";
import test from "ava";
import { MODELS } from "./models";
import { fileOf } from "./verifier";

function inOrder(names: readonly (string | undefined)[]): readonly (string | undefined)[] {
  return names.toSorted((one = "", other = "") => one.localeCompare(other));
}

for (const [name, { searches, mutants }] of Object.entries(MODELS)) {
  test(`each rule in ${name}.pml has a mutant, and each mutant removes one rule from a search`, (t) => {
    const rules = [...readFileSync(fileOf(name), "utf8").matchAll(/\bRULE (\w+):/g)].map(([, rule]) => rule);
    t.deepEqual(inOrder(mutants.map((defines) => defines.at(-1))), inOrder(rules));
    const verified = new Set(searches.map((defines) => defines.join(" ")));
    for (const defines of mutants) {
      const search = defines.slice(0, -1).filter((define) => define !== "ONLY_PROPERTY");
      t.true(verified.has(search.join(" ")), defines.join(" "));
    }
  });
}
