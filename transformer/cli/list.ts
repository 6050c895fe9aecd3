import { shortPath } from "../verify/outputs";
import type { Project } from "../verify/project";
import { print, printError, printJson, safe, type SafeText } from "../terminal/printer";
import { table } from "../terminal/table";
import { writeLockList } from "./lock-list";
import { aboutSources, problemLine } from "./rows/lines";
import { optionText, tagsOf, type TagRow } from "./rows/tags";

interface Options {
  readonly json: boolean;
  /** The file to write the list to. Without it, the list is printed. */
  readonly write: string | undefined;
}

/**
 * Prints all tags with their keys and options, or writes them to a file.
 *
 * @returns the exit code
 * @throws {UsageError} if the file cannot be written
 */
export function list(projects: readonly Project[], { json, write }: Options, cwd: string): number {
  const { tags, problems } = tagsOf(projects);
  printError(...aboutSources(projects));
  if (json) {
    const withPath = <R extends { readonly file?: string }>(row: R): R =>
      row.file === undefined ? row : { ...row, file: shortPath(row.file, cwd) };
    printJson({ tags: tags.map(withPath), problems: problems.map(withPath) }, 2);
    return problems.length === 0 ? 0 : 1;
  }
  if (write === undefined) {
    print(...(tags.length === 0 ? [safe`There are no tags.`] : tagTable(tags, cwd)));
  } else if (problems.length === 0) {
    print(writeLockList(tags, write, cwd));
  } else {
    printError(safe`Nothing was written to ${write}. Fix these errors first:`);
  }
  printError(...problems.map((row) => problemLine(row, cwd)));
  return problems.length === 0 ? 0 : 1;
}

function tagTable(tags: readonly TagRow[], cwd: string): SafeText[] {
  return table(
    ["tag", "function", "key", "options"],
    tags.map((tag) => [
      `${shortPath(tag.file, cwd)}:${tag.line}`,
      tag.function,
      tag.key,
      [...(tag.isNeeded ? ["@needsLock"] : []), ...Object.entries(tag.options).map(optionText)].join(" "),
    ]),
  );
}
