import { parseArgs } from "node:util";
import { changedText, changesOf, folderOf, type Change } from "./change";
import { makeMirrors } from "./mirror";
import { measureReach, type ReachingTest } from "./reach";
import { countRegions, regionAround } from "./regions";
import { describe, report, type Tried } from "./score";
import { Results } from "./results";
import { filesAt, FOLDERS, hashOf, textOf } from "./sources";
import { Trials, type Verdict } from "./trial";
import { TypeCheck } from "./type-check";

// npm run proof -- mutate [path ... [--tests path]... [--sample count] [--seed number] [--jobs count] [--minutes count]
// [--budget seconds]]
//
// Makes small changes to the code, one at a time, and runs the tests that reach it, the most promising first. It prints
// each change that no test notices. Without paths it changes all of transformer/ and runtime/, including Lua.
//
//   --tests    run only these tests; the default is all tests
//   --sample   try this many mutants of each folder, chosen at random (--seed sets the seed)
//   --minutes  stop after this many minutes; the next run continues from there
//   --budget   the usual run time of the tests that may be spent on one mutant; a mutant that they do not notice within
//              it counts as survived
//
// It saves report.json next to this file. A survivor that changes no observable behavior belongs in equivalent.json, with
// the reason. Every other survivor means that a test is missing. The results are cached in node_modules/.cache/mutation.
// Delete that folder to start over.

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    tests: { type: "string", multiple: true },
    sample: { type: "string" },
    seed: { type: "string", default: "1" },
    jobs: { type: "string", default: "1" },
    minutes: { type: "string" },
    budget: { type: "string", default: "60" },
  },
});

async function main(): Promise<void> {
  const { tests: testPaths = ["test"], seed } = values;
  const paths = positionals.length === 0 ? FOLDERS : positionals.map(mutatedPath);
  const sample = numberOf("sample", values.sample ?? "Infinity");
  const jobs = numberOf("jobs", values.jobs);
  const budgetSeconds = numberOf("budget", values.budget);
  const end = performance.now() + 60_000 * numberOf("minutes", values.minutes ?? "Infinity");
  const isOver = (): boolean => performance.now() > end;

  const { plain, counting } = makeMirrors();
  const tests = await measureReach(counting, testPaths, isOver);
  const results = new Results([...new Set(tests.map(({ testFile }) => testFile))]);
  const changes = filesAt(...paths).flatMap(changesOf);
  const chosen = choose(changes, sample, seed);
  const open = chosen.filter((change) => results.of(change) === undefined);
  console.log(`${changes.length} mutants, ${chosen.length} chosen, ${open.length} still to try`);

  const typeCheck = new TypeCheck();
  const noticed = new Map<string, number>();
  const work = async (job: number): Promise<void> => {
    const trials = new Trials(plain, budgetSeconds * 1_000, job, noticed);
    for (let change = open.shift(); change !== undefined && !isOver(); change = open.shift()) {
      const verdict: Verdict = typeCheck.compiles(change.file, changedText(change))
        ? await trials.try(change, testsThatReach(change, tests))
        : { kind: "does not compile" };
      results.add(change, verdict);
      if (verdict.kind === "survived") console.log(`survived: ${describe(change)}`);
    }
    trials.close();
  };
  await Promise.all(Array.from({ length: jobs }, (_, job) => work(job)));

  const tried = chosen.flatMap((change): Tried[] => {
    const verdict = results.of(change);
    return verdict === undefined ? [] : [{ change, verdict }];
  });
  const what = { mutants: changes.length, chosen: chosen.length, tried: tried.length };
  report({ ...what, sample: values.sample ?? "all", seed, tests: testPaths.join(" ") }, tried);
}

function mutatedPath(path: string): string {
  if (FOLDERS.some((folder) => path === folder || path.startsWith(`${folder}/`))) return path;
  throw new Error(
    `Expected a path in ${FOLDERS.join("/ or ")}/, got ${path}: pass paths of tests with --tests`,
  );
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (value > 0) return value;
  throw new Error(`Expected --${name} to be a number above 0, got ${text}`);
}

/** Chooses the same mutants for the same seed, even if other code has changed. */
function choose(changes: readonly Change[], sample: number, seed: string): Change[] {
  const counts = new Map<string, number>();
  const places = new Map(
    changes.map((change) => {
      const name = `${change.file} ${change.from} ${change.to}`;
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return [change, hashOf(`${seed} ${count} ${name}`)];
    }),
  );
  const placeOf = (change: Change): string => places.get(change) ?? "";
  const inOrder = changes.toSorted((a, b) => placeOf(a).localeCompare(placeOf(b)));
  const taken = new Map<string, number>();
  return inOrder.filter((change) => {
    const folder = folderOf(change);
    const count = (taken.get(folder) ?? 0) + 1;
    taken.set(folder, count);
    return count <= sample;
  });
}

function testsThatReach(change: Change, tests: readonly ReachingTest[]): ReachingTest[] {
  const { file } = change;
  const region = regionAround(countRegions(file, textOf(file)).regions, change);
  return tests.filter(({ reached }) => reached[file]?.includes(region));
}

void main();
