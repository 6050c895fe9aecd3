#!/usr/bin/env node
import { packageVersion } from "../hosts/ts-patch/woven-files";
import { checkBundled, checkCompiled, countTags, settingAgainstOutput } from "../verify/check";
import { cures } from "../verify/cures";
import { shortPath } from "../verify/outputs";
import type { Place } from "../verify/place";
import type { Project } from "../verify/project";
import { UsageError } from "../verify/usage-error";
import { analysisRows, type AnalysisRows, type FindingRow } from "./analysis";
import { HELP, parseCommand, type Command } from "./arguments";
import { build } from "./build";
import { diff } from "./eject/diff";
import { eject } from "./eject/eject";
import { init } from "./init/init";
import { inspectLock, releaseLock } from "./live/lock";
import { tail } from "./live/tail";
import { top } from "./live/top";
import { ui } from "./live/ui/ui";
import { block, bold, cyan, print, printError, printJson, red, safe, type SafeText } from "./printer";
import { configFile, openProjects } from "./project";
import { table } from "./table";
import { watchTags } from "./watch-tags";
import {
  dependencyProblems,
  inOrder,
  problemsOf,
  storeWarnings,
  tagsOf,
  typeProblems,
  warningsOf,
  type ProblemRow,
  type TagRow,
} from "./tags";

void main(process.argv.slice(2), process.cwd()).then((code) => {
  process.exitCode = code;
});

async function main(args: readonly string[], cwd: string): Promise<number> {
  try {
    return await run(parseCommand(args), cwd);
  } catch (error) {
    if (error instanceof UsageError) {
      printError(safe`lockweave: ${error.message}`, safe`See \`lockweave --help\`.`);
    } else {
      printError(safe`lockweave has a fault:`, block(stackOf(error)));
    }
    return 2;
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function run(command: Command, cwd: string): number | Promise<number> {
  switch (command.name) {
    case "help":
      print(block(HELP.trimEnd()));
      return 0;
    case "version":
      print(safe`${packageVersion()}`);
      return 0;
    case "init":
      return init(cwd, command.isAgreed);
    case "list":
      return list(openProjects(command.project, cwd), command.json, cwd);
    case "top":
      return top(command.urls, command, command.json);
    case "tail":
      return tail(command.urls, command, command.json);
    case "ui":
      return ui(command.urls, command, command.port);
    case "inspect":
      return inspectLock(command.urls, command.key, command, command.json);
    case "release":
      return releaseLock(command.urls, command.key, command, command);
    case "diff":
      return diff(openProjects(command.project, cwd), command.wanted, cwd);
    case "eject":
      return eject(openProjects(command.project, cwd), command.isAgreed, cwd);
    case "build":
      return build(configFile(command.project, cwd), cwd, command.watch);
    default:
      if (command.watch) watchTags(command.project, cwd);
      return command.watch ? 0 : check(openProjects(command.project, cwd), command, cwd);
  }
}

// ---- list -----------------------------------------------------------------------------------------------

function list(projects: readonly Project[], json: boolean, cwd: string): number {
  const { tags, problems } = tagsOf(projects);
  printError(...aboutSources(projects));
  if (json) {
    const withPath = <R extends { readonly file?: string }>(row: R): R =>
      row.file === undefined ? row : { ...row, file: shortPath(row.file, cwd) };
    printJson({ tags: tags.map(withPath), problems: problems.map(withPath) }, 2);
  } else {
    print(...(tags.length === 0 ? [safe`There are no tags.`] : tagTable(tags, cwd)));
    printError(...problems.map((row) => problemLine(row, cwd)));
  }
  return problems.length === 0 ? 0 : 1;
}

function tagTable(tags: readonly TagRow[], cwd: string): SafeText[] {
  return table(
    ["tag", "function", "key", "options"],
    tags.map((tag) => [
      `${shortPath(tag.file, cwd)}:${tag.line}`,
      tag.function,
      tag.key,
      Object.entries(tag.options)
        .map(([name, value]) => `${name}=${String(value)}`)
        .join(" "),
    ]),
  );
}

/** Of a lock that is not proved, no tag is wrong, and so there is no code. */
type Row = Partial<Place> & Pick<ProblemRow, "message"> & { readonly code?: string };

function problemLine(row: Row, cwd: string): SafeText {
  return safe`${bold(`${placeText(row, cwd)}:`)} ${red(messageText(row))}`;
}

function warningLine(row: Row, cwd: string): SafeText {
  return safe`${bold(`${placeText(row, cwd)}:`)} warning: ${messageText(row)}`;
}

function placeText({ file, line, column }: Row, cwd: string): string {
  const place = [file === undefined ? undefined : shortPath(file, cwd), line, column];
  return place.filter((part) => part !== undefined).join(":");
}

/** A compiler's message may have several lines. */
function messageText({ code, message }: Row): SafeText {
  return code === undefined ? block(message) : safe`${code}: ${block(message)}`;
}

// ---- check ----------------------------------------------------------------------------------------------

function check(
  projects: readonly Project[],
  { outputs, json }: { readonly outputs: readonly string[]; readonly json: boolean },
  cwd: string,
): number {
  const isBundled = outputs.length > 0;
  // Where `tspc` compiles, it says what a type checker knows. Of a bundle nobody knows whether `tspc` ever saw the sources.
  const writesNothing = (project: Project): boolean => settingAgainstOutput(project) !== undefined;
  const byTspc = projects.filter(
    (project) =>
      !isBundled &&
      project.builder === "tspc" &&
      project.plugin?.transformProgram === true &&
      !writesNothing(project),
  );
  const unchecked = projects.filter((project) => !byTspc.includes(project));
  const analysis = analysisRows(projects);
  const problems = inOrder<ProblemRow | FindingRow>([
    ...problemsOf(projects),
    ...dependencyProblems(projects, isBundled),
    ...typeProblems(unchecked),
    ...analysis.certain,
  ]);
  const warnings = inOrder<ProblemRow | FindingRow>([
    ...warningsOf(projects),
    ...storeWarnings(projects),
    ...analysis.likely,
  ]);
  const isWrongUnwritten = problems.length > 0 && projects.some((project) => writesNothing(project));
  const hasOutput =
    isBundled || (!isWrongUnwritten && projects.every(({ builder }) => builder !== "another"));
  const { tags, unproved } = isBundled
    ? checkBundled(projects, outputs, cwd)
    : hasOutput
      ? checkCompiled(projects, cwd)
      : { tags: countTags(projects), unproved: [] };
  if (tags + problems.length === 0) {
    throw new UsageError("This project has no tags, so there is nothing to prove. Is it the right one?");
  }
  printError(...aboutSources(projects));
  const advice = cures(projects, unproved, isBundled);
  const isProved = problems.length + unproved.length === 0;
  if (json) {
    const short = <R extends Partial<Place>>(row: R): R =>
      row.file === undefined ? row : { ...row, file: shortPath(row.file, cwd) };
    const withProof = (row: ProblemRow | FindingRow): ProblemRow | FindingRow =>
      "proof" in row ? { ...short(row), proof: row.proof.map(short) } : short(row);
    const result = {
      tags,
      problems: problems.map(withProof),
      warnings: warnings.map(withProof),
      unproved: unproved.map(short),
      unfollowed: analysis.unfollowed.map(short),
      cures: advice,
    };
    printJson(result, 2);
  } else {
    printError(
      ...warnings.map((row) => warningLine(row, cwd)),
      ...inOrder([...problems, ...unproved]).map((row) => problemLine(row, cwd)),
      ...advice.map((cure) => cyan(`-> ${cure}`)),
    );
    if (isProved) {
      const said = [proved(tags, hasOutput), aboutTypes(projects, byTspc, cwd), aboutCalls(analysis)];
      print(safe`${said.filter((sentence) => sentence !== "").join(" ")}`);
    }
  }
  return isProved ? 0 : 1;
}

// ---- what was looked at ---------------------------------------------------------------------------------

function proved(tags: number, hasOutput: boolean): string {
  if (hasOutput)
    return `${tags === 1 ? "The lock of the only tag is" : `The locks of all ${tags} tags are`} in the output.`;
  const right = tags === 1 ? "The only tag is as it should be." : `All ${tags} tags are as they should be.`;
  return `${right} No output was looked at: if something is built, name it with \`--output\`.`;
}

function aboutTypes(projects: readonly Project[], byTspc: readonly Project[], cwd: string): string {
  if (projects.some(({ checksTypes }) => !checksTypes)) {
    return "Types were not checked: that takes TypeScript 5.9 or 6.";
  }
  if (byTspc.length === 0) return "Types were checked.";
  if (byTspc.length === projects.length) return "Types are left to `tspc`, which checks them as it compiles.";
  const left = byTspc.map(({ config }) => `\`${shortPath(config, cwd)}\``).join(", ");
  return `Types were checked, but for ${left}, where \`tspc\` checks them as it compiles.`;
}

/** What cannot be followed is told, and never guessed. */
function aboutCalls({ unfollowed, left }: AnalysisRows): string {
  // Where types were not checked, it is told that this takes a compiler.
  if (left.some(({ checksTypes }) => checksTypes))
    return "Calls between locks were not followed: that takes TypeScript 5.9 or 6.";
  if (unfollowed.length === 0) return "";
  const calls = unfollowed.length === 1 ? "One call" : `${unfollowed.length} calls`;
  return `${calls} inside locks could not be followed: \`--json\` names them.`;
}

/** Where nobody has said which files are the sources. */
function aboutSources(projects: readonly Project[]): SafeText[] {
  const [project] = projects;
  if (project?.builder !== "another") return [];
  const count = project.sources.length - 1; // Without the place of tsconfig.json.
  return [
    safe`There is no tsconfig.json. Looked at ${count === 1 ? "the one source" : `all ${count} sources`} in this directory and below, but for node_modules, dist, build, out and coverage.`,
  ];
}
