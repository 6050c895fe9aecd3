// npm run spec, or some of its models: npm run spec -- lock quorum
//
// SPIN translates each model to a C program, which visits all of its states. A line for each search shows the result. A model must have no
// error. A mutant removes one rule, and must have one. With `--large`, the models have larger bounds. With `--trail`, the program also prints
// the steps of each counterexample.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildVerifier, fileOf, need, runVerifier } from "./verifier";
import { judge, unreachedIn, type Search } from "./verdict";
import { MODELS, type Model } from "./models";

const { values: flags, positionals: names } = parseArgs({
  options: { large: { type: "boolean", default: false }, trail: { type: "boolean", default: false } },
  allowPositionals: true,
});
const unknown = names.filter((name) => !Object.hasOwn(MODELS, name));
if (unknown.length > 0) {
  console.error(`No model ${unknown.join(", ")}. The models are ${Object.keys(MODELS).join(", ")}.`);
  process.exit(2);
}

/** The longest path on which a model is searched. A longer one counts as a failure. */
const LONGEST_PATH = 5_000_000;
/**
 * The options of gcc and of the verifier if assertions are searched, or cycles in which each process goes on. Also the longest path on which
 * a mutant is searched. A search that finds an error need not be complete, and short paths are easier to read.
 */
const ASSERTIONS = { gcc: ["-DSAFETY"], pan: [], longestError: 200 };
const CYCLES = { gcc: ["-DNFAIR=3"], pan: ["-a", "-f"], longestError: 400 };

for (const [name, model] of Object.entries(MODELS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const searches: Search[] = [
    ...[...model.searches, ...(flags.large ? model.large : [])].map((defines) => ({
      defines,
      isMutant: false,
    })),
    ...model.mutants.map((defines) => ({ defines, isMutant: true })),
  ];
  for (const search of searches) run(name, model, search);
}

function run(name: string, { searches: [first], isLiveness = false }: Model, search: Search): void {
  const startedAt = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "lockweave-spec-"));
  try {
    const { gcc, pan, longestError } = isLiveness ? CYCLES : ASSERTIONS;
    const longest = search.isMutant ? longestError : LONGEST_PATH;
    // An error is found within seconds, so gcc would take longer to optimize than it saves.
    const optimization = search.isMutant ? "-O0" : "-O2";
    buildVerifier(folder, name, search.defines, ["-DNOREDUCE", optimization, ...gcc]);
    const stdout = runVerifier(folder, [`-m${longest}`, ...pan]);
    const { problem, states, depth } = judge(stdout, search);
    const title = [name, ...search.defines].join(" ");
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    const result = problem ?? (search.isMutant ? "has a counterexample" : "no error");
    console.log(
      `${problem === undefined ? "✔" : "✘"} ${title}: ${result}, ${states} states, depth ${depth}, ${seconds} s`,
    );
    if (problem !== undefined) process.exitCode = 1;
    // Smaller bounds leave some statements out, and so does code that is inlined several times.
    if (search.defines === first && !isLiveness)
      for (const line of unreachedIn(stdout)) console.log(`    never runs: ${line}`);
    const hasTrail = search.isMutant
      ? problem === undefined
      : problem?.startsWith("there is an error") === true;
    if (flags.trail && hasTrail) {
      const defines = search.defines.map((define) => `-D${define}`);
      const trail = ["-p", "-g", "-t", "-k", `${name}.pml.trail`];
      console.log(need(folder, "spin", ...defines, ...trail, fileOf(name)));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
