import type { Parser } from "../parser/parser";
import { groupedBy } from "../text/grouped-by";
import { because, compare, expectedOf, isSame, type Expected, type Unproved } from "./check";
import { functionsNamed, type NamedFunction } from "./functions-in";
import { locksIn, readsOf, type Lock } from "./locks/locks";
import { outputFiles, readOutput, shortPath } from "./outputs";
import type { Project } from "./project";
import { unlockedIn } from "./unlocked-file";

// A bundler that builds an application compiles the sources of its libraries itself. The copies that then run are not in the output that
// TypeScript wrote for the libraries.

/** A file or a directory that may contain the code that runs. */
export interface OtherOutput {
  readonly path: string;
  /** Whether another tool has written it, because TypeScript writes no code for this project. */
  readonly isByAnotherTool: boolean;
}

export interface Copies {
  /** The tags of which a copy has no lock. */
  readonly unproved: readonly Unproved[];
  /** The output of other tools in which some locks were not found, perhaps because the functions are not in it either. */
  readonly unchecked: readonly OtherOutput[];
}

/**
 * Searches these outputs for copies of the tagged functions without their locks. A copy is recognized by a source map, by the comment with
 * its tag, or by its name and what it reads. A minified copy may remain unrecognized.
 *
 * @param compared the files that were compared already
 */
export function checkCopies(
  projects: readonly Project[],
  outputs: readonly OtherOutput[],
  compared: ReadonlySet<string>,
  cwd: string,
): Copies {
  const filesOf = new Map(
    outputs.map((output) => [output, filesIn(output, cwd).filter((file) => !compared.has(file))] as const),
  );
  const [first] = projects;
  const hasFiles = [...filesOf.values()].some((files) => files.length > 0);
  const { expected } = hasFiles ? expectedOf(projects, ({ files }) => files) : { expected: [] };
  if (first === undefined || expected.length === 0) return { unproved: [], unchecked: [] };
  const unproved: Unproved[] = [];
  const unchecked: OtherOutput[] = [];
  for (const [output, files] of filesOf) {
    if (files.length === 0) continue;
    const texts = files.map((file) => ({ file, text: readOutput(file) ?? "" }));
    const found = texts.map(({ file, text }) => locksIn(first.ts, file, text));
    const all = {
      locks: found.flatMap(({ locks }) => locks),
      broken: found.flatMap(({ broken }) => broken),
    };
    const absent = expected.filter((one) => !all.locks.some((lock) => isSame(one.lock, lock, "loose")));
    const copies = texts.flatMap(({ file, text }) => copiesIn(projects, absent, file, text, cwd));
    const isWrong = ({ reason }: Unproved): boolean => ["stale", "broken", "lowered"].includes(reason);
    const wrong = compare(expected, all, shortPath(output.path, cwd), "loose").filter(isWrong);
    for (const { reason: _, ...rest } of [...copies, ...wrong]) unproved.push({ ...rest, reason: "bundled" });
    if (output.isByAnotherTool && absent.length > copies.length + wrong.length) unchecked.push(output);
  }
  return { unproved: firstOfEach(unproved), unchecked };
}

function filesIn({ path }: OtherOutput, cwd: string): string[] {
  return outputFiles([path], cwd);
}

function firstOfEach(unproved: readonly Unproved[]): Unproved[] {
  return [...groupedBy(unproved, ({ file, line, column }) => `${file}:${line}:${column}`).values()].flatMap(
    ([one]) => one ?? [],
  );
}

/** Returns the tags whose functions are in the file without their locks. */
function copiesIn(
  projects: readonly Project[],
  expected: readonly Expected[],
  file: string,
  text: string,
  cwd: string,
): Unproved[] {
  const [first] = expected;
  if (first === undefined) return [];
  const { ts } = first.project;
  const known = new Set(unlockedIn(ts, file, text)?.tags.map(({ name }) => name));
  const names = new Set(expected.map(({ site }) => lastOf(site.name)).filter((name) => text.includes(name)));
  const functions =
    names.size === 0
      ? []
      : functionsNamed(ts, ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true), names);
  const isCopy = ({ site, lock }: Expected): boolean =>
    known.has(site.name) ||
    (functions.some((fn) => fn.name === lastOf(site.name) && isOf(ts, lock, fn)) &&
      !hasNamesake(projects, lastOf(site.name)));
  return expected
    .filter(isCopy)
    .map((copy) => because("bundled", copy, `\`${shortPath(file, cwd)}\` has a copy without its lock`));
}

/** Whether the function has the body of the locked one. A body that reads nothing could be any function's. */
function isOf(ts: Parser, { reads }: Lock, { fn, body }: NamedFunction): boolean {
  return reads !== "" && readsOf(ts, fn, body) === reads;
}

function lastOf(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

/** Whether the sources have a function of this name without a tag. The copy could be of that one. */
function hasNamesake(projects: readonly Project[], name: string): boolean {
  return projects.some(({ ts, sources, files }) =>
    sources.some((path) => {
      const text = /\.[cm]?[jt]sx?$/.test(path) ? readOutput(path) : undefined;
      if (text?.includes(name) !== true) return false;
      const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest);
      const { functions = [] } = files.find(({ source }) => source.fileName === path) ?? {};
      const named = functions.filter((one) => lastOf(one.name) === name);
      const tagged = new Set(named.map(({ bodyAt }) => bodyAt)).size; // A function may have several tags.
      return functionsNamed(ts, file, new Set([name])).length > tagged;
    }),
  );
}
