import { readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { onOneLine } from "../terminal/escape";
import { safe, type SafeText } from "../terminal/printer";
import { UsageError } from "../terminal/usage-error";
import { groupedBy } from "../text/grouped-by";
import { problem } from "../text/problems";
import { shortPath } from "../verify/outputs";
import { optionText, type ProblemRow, type TagRow } from "./rows/tags";
import { writeFiles } from "./workspace/write-files";

// A Markdown file with one line for each lock and each needed lock, so that the diff of a pull request shows which locks change. It has no line numbers, and
// nothing is aligned, so that no line changes because of another lock.

const HEAD = "# Locks\n\nWritten by `lockweave list --write`. Do not edit.\n";

/**
 * Writes the list of all locks, unless the file already contains it.
 *
 * @returns a sentence about the result
 * @throws {UsageError} if the file is not such a list, or cannot be written
 */
export function writeLockList(tags: readonly TagRow[], path: string, cwd: string): SafeText {
  const before = readList(path, cwd);
  const after = lockList(tags, path, cwd);
  if (before !== undefined && normalized(before) === after) return safe`${path} is up to date.`;
  writeFiles(cwd, [{ path, before, after }]);
  const needs = tags.filter(({ isNeeded }) => isNeeded).length;
  const parts = [counted(tags.length - needs, "lock"), ...(needs > 0 ? [counted(needs, "needed lock")] : [])];
  return safe`Wrote ${parts.join(" and ")} to ${path}.`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/**
 * Compares the list in the file with the locks of the sources.
 *
 * @param fix the command that writes the list again
 * @returns a problem if they differ
 * @throws {UsageError} if there is no such list
 */
export function staleList(
  tags: readonly TagRow[],
  path: string,
  cwd: string,
  fix: string,
): ProblemRow | undefined {
  const found = readList(path, cwd);
  if (found === undefined)
    throw new UsageError(`There is no file \`${path}\`. Fix: create it with \`${fix}\`.`);
  const [listed, expected] = [normalized(found), lockList(tags, path, cwd)];
  if (listed === expected) return undefined;
  const { code, message } = problem("staleList", { start: 0, end: 0 }, differences(listed, expected), fix);
  return { file: resolve(cwd, path), code, message };
}

/** Returns the text of the file. `undefined` if it does not exist. */
function readList(path: string, cwd: string): string | undefined {
  const full = resolve(cwd, path);
  const found = statSync(full, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  const text = found.isFile() ? readFileSync(full, "utf8") : undefined;
  if (text !== undefined && (text.trim() === "" || normalized(text).startsWith(HEAD))) return text;
  throw new UsageError(
    `\`${path}\` is not a list that \`lockweave list --write\` wrote. Fix: name another file, such as \`LOCKS.md\`.`,
  );
}

/** Git may have changed the line breaks of the file. */
function normalized(text: string): string {
  return text.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
}

/** Returns the list. Its paths are relative to its own directory, so they do not depend on where the command runs. */
function lockList(tags: readonly TagRow[], path: string, cwd: string): string {
  const base = dirname(resolve(cwd, path));
  const byFile = groupedBy(tags, ({ file }) => shortPath(file, base));
  const sections = [...byFile.keys()]
    .toSorted()
    .map((file) => `\n## ${codeSpan(file)}\n\n${(byFile.get(file) ?? []).map(lockLine).toSorted().join("")}`);
  return `${HEAD}${sections.length === 0 ? "\nThere are no locks.\n" : sections.join("")}`;
}

function lockLine({ function: name, key, options, isNeeded }: TagRow): string {
  const parts = [key, ...Object.entries(options).map(optionText).toSorted()];
  return `- ${codeSpan(name)}${isNeeded ? " needs" : ""}: ${parts.map(codeSpan).join(", ")}\n`;
}

/** Returns a code span in Markdown. */
function codeSpan(text: string): string {
  const content = onOneLine(text);
  const runs = content.match(/`+/g) ?? [];
  const fence = "`".repeat(Math.max(0, ...runs.map((run) => run.length)) + 1);
  const pad = fence.length > 1 || /^ .* $/.test(content) ? " " : "";
  return `${fence}${pad}${content}${pad}${fence}`;
}

const SHOWN_DIFFERENCES = 20;

/** Returns the locks of only one of the lists, as the lines of a diff. */
function differences(listed: string, expected: string): string {
  const [old, current] = [locksIn(listed), locksIn(expected)];
  const lines = [
    ...without(old, current).map((lock) => `  - ${lock}`),
    ...without(current, old).map((lock) => `  + ${lock}`),
  ];
  if (lines.length === 0) return "  Its locks are right, but its text was changed.";
  const left = lines.length - SHOWN_DIFFERENCES;
  return [...lines.slice(0, SHOWN_DIFFERENCES), ...(left > 0 ? [`  and ${left} more`] : [])].join("\n");
}

/** Returns the lines of the locks, each after the name of its file. */
function locksIn(list: string): string[] {
  return list.split("\n## ").flatMap((section) => {
    const [file = "", ...lines] = section.split("\n");
    return lines.filter((line) => line.startsWith("- ")).map((line) => `${file} ${line.slice(2)}`);
  });
}

/** Returns the first list without the items of the second one. Equal items count one by one. */
function without(these: readonly string[], those: readonly string[]): string[] {
  const left = [...those];
  return these.filter((one) => {
    const at = left.indexOf(one);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}
