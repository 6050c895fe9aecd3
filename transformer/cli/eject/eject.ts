import type { Compiler } from "../../hosts/ts-patch/compiler";
import { shortPath } from "../../verify/outputs";
import { positionIn } from "../../verify/position";
import type { PlacedProblem, Project, WovenSource } from "../../verify/project";
import { UsageError } from "../../terminal/usage-error";
import { commandLine } from "../workspace/package-manager";
import { confirms, block, NOT_AGREED, print, printError, safe, type SafeText } from "../../terminal/printer";
import { problemLine } from "../rows/lines";
import { inOrder, problemsOf } from "../rows/tags";
import { writeFiles } from "../workspace/write-files";
import { writtenOut } from "./written-out";

/**
 * Replaces the tags in the sources with the woven code, for users who remove the transformer. The locks keep working, and the text of the
 * tags remains as comments. Writes nothing if the result would not compile.
 *
 * @returns the exit code
 * @throws {UsageError} if there is nothing to write, or no compiler that could check the result
 */
export async function eject(projects: readonly Project[], isAgreed: boolean, cwd: string): Promise<number> {
  const problems = inOrder(problemsOf(projects));
  if (problems.length > 0) {
    printError(
      ...problems.map((row) => problemLine(row, cwd)),
      safe`Lockweave cannot generate the code of a wrong tag, so nothing was changed.`,
    );
    return 1;
  }
  const texts = new Map<string, string>();
  let tags = 0;
  for (const project of projects) {
    for (const source of sourcesOf(project)) {
      if (texts.has(source.fileName)) continue; // Another project has the same file.
      texts.set(source.fileName, writtenOut(project.ts as Compiler, source));
      tags += source.woven.tags.length;
    }
  }
  if (tags === 0) throw new UsageError("This project has no tags, so there is nothing to eject.");
  const errors = projects.flatMap((project) => newErrors(project, texts));
  if (errors.length > 0) {
    printError(
      ...errors.map((error) => errorText(error, cwd)),
      safe`The result would not compile, so nothing was changed.`,
    );
    return 1;
  }
  const locks = tags === 1 ? "the lock of the only tag" : `the locks of all ${tags} tags`;
  print(...[...texts.keys()].toSorted().map((file) => safe`${shortPath(file, cwd)}`));
  const files = texts.size === 1 ? "this file" : `these ${texts.size} files`;
  if (!isAgreed && !(await confirms(safe`Write ${locks} into ${files}?`))) {
    print(
      safe`Nothing was changed. To apply the changes without confirmation, run \`${commandLine(cwd, "lockweave", "eject", "--yes")}\`.`,
    );
    return NOT_AGREED;
  }
  const before = new Map(projects.flatMap(sourcesOf).map(({ fileName, text }) => [fileName, text]));
  writeFiles(
    cwd,
    [...texts].map(([path, after]) => ({ path, before: before.get(path), after })),
  );
  print(
    safe`Wrote ${locks}. They need \`lockweave\` at run time, but no transformer.`,
    safe`Next, remove the \`lockweave/transformer\` entry from \`plugins\` in tsconfig.json, compile with \`tsc\`, and format ${files}.`,
  );
  return 0;
}

/**
 * Returns the woven sources of a project.
 *
 * @throws {UsageError} if no TypeScript that can write them is installed
 */
export function sourcesOf(project: Project): readonly WovenSource[] {
  const sources = project.wovenSources();
  if (sources === undefined) {
    throw new UsageError(
      "`diff` and `eject` need TypeScript 5.9 or 6, which can be installed alongside TypeScript 7. Fix: run `npm install --save-dev typescript6@npm:typescript@6`.",
    );
  }
  return sources;
}

function newErrors(project: Project, texts: ReadonlyMap<string, string>): PlacedProblem[] {
  const before = new Set(project.errorsWith(new Map()).map(keyOf));
  return project.errorsWith(texts).filter((error) => !before.has(keyOf(error)));
}

function keyOf({ file, problem: { code, message } }: PlacedProblem): string {
  return JSON.stringify([file?.fileName, code, message]);
}

function errorText({ file, problem: { code, message, start } }: PlacedProblem, cwd: string): SafeText {
  if (file === undefined) return safe`${code}: ${block(message)}`;
  const { line, column } = positionIn(file, start);
  return safe`${shortPath(file.fileName, cwd)}:${line}:${column}: ${code}: ${block(message)}`;
}
