import { dirname } from "node:path";
import { checkBuilds, type CheckedBuilds } from "../verify/builds";
import { checkCopies, type Copies } from "../verify/bundled-copies";
import {
  checkBundled,
  countTags,
  settingThatPreventsOutput,
  type Checked,
  type Unproved,
} from "../verify/check";
import { bundles, fixesFor } from "../verify/fixes";
import { shortPath } from "../verify/outputs";
import type { Position } from "../verify/position";
import type { Project } from "../verify/project";
import { UsageError } from "../terminal/usage-error";
import { staleList } from "./lock-list";
import { analysisRows, type AnalysisRows, type FindingRow } from "./rows/analysis";
import { alternativesOf, namesOf } from "./build-projects";
import { commandLine } from "./workspace/package-manager";
import { cyan, print, printError, printJson, red, safe, type SafeText } from "../terminal/printer";
import { nestOutputOf } from "./init/nest-builders";
import { otherOutputs } from "./other-outputs";
import { namesFile, openProjects } from "./project";
import { aboutSources, problemLine, warningLine } from "./rows/lines";
import {
  dependencyProblems,
  inOrder,
  problemsOf,
  storeWarnings,
  tagsOf,
  typeProblems,
  warningsOf,
  type ProblemRow,
} from "./rows/tags";

interface Options {
  readonly project: string | undefined;
  readonly outputs: readonly string[];
  /** The file with the reviewed list of all locks. */
  readonly list: string | undefined;
  /** How many warnings are allowed. Undefined if any number is. */
  readonly maxWarnings: number | undefined;
  readonly json: boolean;
  readonly typescript: string | undefined;
}

interface Result extends Checked {
  readonly projects: readonly Project[];
  /** Undefined if TypeScript does not write the output. */
  readonly builds: CheckedBuilds | undefined;
  /** Whether there was output to read. */
  readonly hasOutput: boolean;
  /** Output of other tools that may contain copies of the functions. */
  readonly unchecked: Copies["unchecked"];
  /** The projects whose types `tspc` has checked. */
  readonly byTspc: readonly Project[];
  readonly analysis: AnalysisRows;
  readonly problems: readonly Row[];
  readonly warnings: readonly Row[];
}

type Row = ProblemRow | FindingRow;

/**
 * Checks that the output contains the lock of every tag.
 *
 * @returns the exit code
 * @throws {UsageError} if there is nothing to check
 */
export function check(options: Options, cwd: string): number {
  const { project: named, outputs, maxWarnings = Infinity, json, typescript } = options;
  const open = opener(typescript, cwd);
  const projects = open(named);
  // A file that `-p` names is the project itself. Otherwise another project may have written the output.
  const isExact = named !== undefined && namesFile(named, cwd);
  const search = (): CheckedBuilds => checkBuilds(projects, (one) => alternativesOf(one, open), cwd);
  const isCompiled = outputs.length === 0 && projects.every(({ builder }) => builder !== "another");
  const builds = isCompiled ? (isExact ? checkBuilds(projects, () => [], cwd) : search()) : undefined;
  const result = resultOf(projects, builds, isExact, options, cwd);
  const { tags, problems, warnings, unproved } = result;
  const others = (): OtherBuilds => (isExact || builds === undefined ? search() : builds);
  const hasTooManyWarnings = warnings.length > maxWarnings;
  if (builds?.silent !== undefined && problems.length === 0 && !hasTooManyWarnings) {
    throw new UsageError(withoutOutput(builds.silent, others(), cwd));
  }
  if (tags + problems.length === 0) {
    throw new UsageError("This project has no tags. Fix: name the tsconfig of the tagged sources with `-p`.");
  }
  printError(...aboutSources(projects));
  const advice = adviceOn(result, others, outputs.length > 0, cwd);
  const isPassed = problems.length + unproved.length === 0 && !hasTooManyWarnings;
  if (json) printJson(jsonOf(result, advice, cwd), 2);
  else {
    printError(
      ...warnings.map((row) => warningLine(row, cwd)),
      ...inOrder([...problems, ...unproved]).map((row) => problemLine(row, cwd)),
      ...(hasTooManyWarnings ? [tooManyWarnings(warnings.length, maxWarnings)] : []),
      ...advice.map((fix) => cyan(`-> ${fix}`)),
    );
    if (isPassed) print(summaryOf(result, cwd));
  }
  return isPassed ? 0 : 1;
}

/** Returns a function that opens the projects of a path, and each path only once. */
function opener(typescript: string | undefined, cwd: string): (path: string | undefined) => Project[] {
  const opened = new Map<string | undefined, Project[]>();
  return (path) => {
    const found = opened.get(path) ?? openProjects(path, cwd, { typescript });
    opened.set(path, found);
    return found;
  };
}

/** Runs all checks. With `isExact`, no other output is searched for copies of the functions. */
function resultOf(
  projects: readonly Project[],
  builds: CheckedBuilds | undefined,
  isExact: boolean,
  options: Options,
  cwd: string,
): Result {
  const isBundled = options.outputs.length > 0;
  const all = [...projects, ...(builds?.builders ?? [])];
  const copies = isExact ? NO_COPIES : copiesOf(builds, all, cwd);
  const output = isBundled ? checkBundled(projects, options.outputs, cwd) : withCopies(builds, copies);
  // It may never have seen the sources of a bundle.
  const byTspc = isBundled ? [] : checkedByTspc(projects, builds, output?.unproved ?? []);
  const analysis = analysisRows(projects);
  return {
    projects,
    builds,
    hasOutput: output !== undefined,
    tags: output?.tags ?? countTags(projects),
    unproved: output?.unproved ?? [],
    unchecked: copies.unchecked,
    byTspc,
    analysis,
    problems: inOrder<Row>([
      ...problemsOf(all),
      ...dependencyProblems(all, isBundled),
      ...typeProblems(projects.filter((project) => !byTspc.includes(project))),
      ...analysis.certain,
      ...listProblems(projects, options, cwd),
    ]),
    warnings: inOrder<Row>([...warningsOf(all), ...storeWarnings(all), ...analysis.likely]),
  };
}

const NO_COPIES: Copies = { unproved: [], unchecked: [] };

/** Returns copies of the functions in output that TypeScript has not written, but that may be what runs. */
function copiesOf(builds: CheckedBuilds | undefined, projects: readonly Project[], cwd: string): Copies {
  if (builds === undefined || builds.silent !== undefined) return NO_COPIES;
  return checkCopies(projects, otherOutputs(projects, builds.writers, cwd), builds.outputs, cwd);
}

/** Adds the copies to the result, except those of tags that are reported already. Returns `undefined` if there is no output to read. */
function withCopies(builds: CheckedBuilds | undefined, copies: Copies): Checked | undefined {
  if (builds === undefined || builds.silent !== undefined) return undefined;
  const { tags, unproved } = builds;
  const isKnown = (copy: Unproved): boolean =>
    unproved.some(
      ({ file, line, column }) => file === copy.file && line === copy.line && column === copy.column,
    );
  return { tags, unproved: [...unproved, ...copies.unproved.filter((copy) => !isKnown(copy))] };
}

/**
 * Returns the projects whose types `tspc` has checked. It has written their locks, and so has also checked the types in the tags. It may
 * never have seen the files that a build leaves out. With `noEmitOnError`, a missing lock may be the result of a type error.
 */
function checkedByTspc(
  projects: readonly Project[],
  builds: CheckedBuilds | undefined,
  unproved: readonly Unproved[],
): Project[] {
  const unprovedFiles = new Set(unproved.map(({ file }) => file));
  return projects.filter(
    (project) =>
      project.builder === "tspc" &&
      project.plugin?.transformProgram === true &&
      settingThatPreventsOutput(project) === undefined &&
      builds?.shared.includes(project) !== true &&
      !project.files.some(({ source }) => unprovedFiles.has(source.fileName)),
  );
}

/** Compares the reviewed list with the sources. Wrong tags are not in it, so they come first. */
function listProblems(
  projects: readonly Project[],
  { list, project: named, typescript }: Options,
  cwd: string,
): ProblemRow[] {
  if (list === undefined) return [];
  const { tags, problems } = tagsOf(projects);
  if (problems.length > 0) return [];
  const options = [
    ...(named === undefined ? [] : ["-p", named]),
    ...(typescript === undefined ? [] : ["--typescript", typescript]),
  ];
  const update = commandLine(cwd, "lockweave", "list", ...options, "--write", list);
  const stale = staleList(tags, list, cwd, update);
  return stale === undefined ? [] : [stale];
}

function withoutOutput(project: Project, { builders, unbuilt }: OtherBuilds, cwd: string): string {
  const setting = settingThatPreventsOutput(project) ?? "noEmit";
  const others =
    builders.length > 0
      ? ` ${namesOf(builders, cwd)} has written code.`
      : unbuilt.length > 0
        ? ` ${namesOf(unbuilt, cwd)} writes code, but its output does not exist yet.`
        : "";
  return `${project.config} has \`${setting}\`, so TypeScript writes no code.${others} Fix: use \`-p\` to name the tsconfig that builds, or \`--output\` to name the output of a bundler. If no tool writes output, \`${commandLine(cwd, "lockweave", "check", "--watch")}\` checks only the tags.`;
}

type OtherBuilds = Pick<CheckedBuilds, "builders" | "unbuilt">;

/** Returns advice on what to do, one piece of advice a line. */
function adviceOn(
  { projects, builds, unproved }: Result,
  others: () => OtherBuilds,
  isBundled: boolean,
  cwd: string,
): string[] {
  const nest = nestOutputOf(dirname(projects[0]?.config ?? cwd));
  return [
    ...fixesFor(builds === undefined || builds.builders.length === 0 ? projects : builds.writers, unproved, {
      cwd,
      isBundled,
      nest,
      running: (...words) => commandLine(cwd, ...words),
    }),
    // No tsconfig describes a bundle.
    ...(builds === undefined || bundles(nest) ? [] : aboutOtherProjects(builds, others, cwd)),
  ];
}

/** Returns advice on which other tsconfig to name with `-p`. */
function aboutOtherProjects(
  { unproved, builders, writers }: CheckedBuilds,
  find: () => OtherBuilds,
  cwd: string,
): string[] {
  if (builders.length > 0 && unproved.length > 0) {
    return [
      `Compared with the output of ${namesOf(writers, cwd)}. If another tsconfig builds this, name it with \`-p\`.`,
    ];
  }
  if (!unproved.some(({ reason }) => reason === "missing")) return [];
  const others = find();
  if (others.builders.length > 0) {
    return [`${namesOf(others.builders, cwd)} has written output. If it is your build, name it with \`-p\`.`];
  }
  return others.unbuilt.length === 0
    ? []
    : [
        `The output of ${namesOf(others.unbuilt, cwd)} does not exist either. If another tsconfig builds this, name it with \`-p\`.`,
      ];
}

function tooManyWarnings(count: number, allowed: number): SafeText {
  return red(
    `${count === 1 ? "There is 1 warning" : `There are ${count} warnings`}, and \`--max-warnings\` allows ${allowed}.`,
  );
}

/** Returns the result for `--json`, with short paths. */
function jsonOf({ builds, analysis, ...result }: Result, advice: readonly string[], cwd: string): object {
  const short = <R extends Partial<Position>>(row: R): R =>
    row.file === undefined ? row : { ...row, file: shortPath(row.file, cwd) };
  const withProof = (row: Row): Row =>
    "proof" in row ? { ...short(row), proof: row.proof.map(short) } : short(row);
  return {
    tags: result.tags,
    problems: result.problems.map(withProof),
    warnings: result.warnings.map(withProof),
    unproved: result.unproved.map(short),
    unfollowed: analysis.unfollowed.map(short),
    builders: builds?.builders.map(({ config }) => shortPath(config, cwd)) ?? [],
    unchecked: result.unchecked.map(({ path }) => shortPath(path, cwd)),
    leftOut: builds?.leftOut.map(short) ?? [],
    fixes: advice,
  };
}

// ---- what was checked -----------------------------------------------------------------------------------

/** Returns one sentence for each thing that was checked. */
function summaryOf(result: Result, cwd: string): SafeText {
  const { tags, builds, projects, byTspc } = result;
  const sentences = [
    result.hasOutput ? proved(tags, builds, cwd) : onlyTagsChecked(tags),
    aboutTests(builds),
    aboutBundles(result.unchecked, cwd),
    aboutTypes(projects, byTspc, cwd),
    aboutCalls(result.analysis),
  ];
  return safe`${sentences.filter((sentence) => sentence !== "").join(" ")}`;
}

function proved(tags: number, builds: CheckedBuilds | undefined, cwd: string): string {
  const locks = tags === 1 ? "The lock of the only tag is" : `The locks of all ${tags} tags are`;
  const { builders = [] } = builds ?? {};
  return `${locks} in the output${builders.length === 0 ? "" : ` of ${namesOf(builders, cwd)}`}.`;
}

function onlyTagsChecked(tags: number): string {
  const right = tags === 1 ? "The only tag is valid." : `All ${tags} tags are valid.`;
  return `${right} No output was checked. If you build this project, name the output with \`--output\`.`;
}

/** Reports tags in tests that the build leaves out. They do not count as proved. */
function aboutTests(builds: CheckedBuilds | undefined): string {
  const { leftOut = [] } = builds ?? {};
  if (leftOut.length === 0) return "";
  const tags = leftOut.length === 1 ? "One tag in a test is" : `${leftOut.length} tags in tests are`;
  return `${tags} not built. \`--json\` lists ${leftOut.length === 1 ? "it" : "them"}.`;
}

/** Names the output of bundlers that may have unlocked copies of the functions. */
function aboutBundles(unchecked: Copies["unchecked"], cwd: string): string {
  return unchecked
    .map(({ path }) => {
      const name = shortPath(path, cwd);
      return `Another tool wrote \`${name}\`, and not all locks were found there. To check that output, run \`${commandLine(cwd, "lockweave", "check", "--output", name)}\`.`;
    })
    .join(" ");
}

function aboutTypes(projects: readonly Project[], byTspc: readonly Project[], cwd: string): string {
  if (projects.some(({ checksTypes }) => !checksTypes)) {
    return "The types in tags were not checked, because this needs TypeScript 5.9 or 6.";
  }
  if (byTspc.length === 0) return "The types in tags were checked.";
  if (byTspc.length === projects.length) return "`tspc` checks the types in tags.";
  const left = byTspc.map(({ config }) => `\`${shortPath(config, cwd)}\``).join(", ");
  return `The types in tags were checked, except for ${left}, where \`tspc\` checks them.`;
}

/** Reports how many calls the analysis could not follow. */
function aboutCalls({ unfollowed, left }: AnalysisRows): string {
  // Without type checks, the sentence about types already names the compiler that is needed.
  if (left.some(({ checksTypes }) => checksTypes))
    return "Calls inside locks were not analyzed, because this needs TypeScript 5.9 or 6.";
  if (unfollowed.length === 0) return "";
  const calls = unfollowed.length === 1 ? "One call" : `${unfollowed.length} calls`;
  return `${calls} inside locks could not be analyzed. \`--json\` lists them.`;
}
