import { readFileSync, statSync } from "node:fs";
import { basename, relative, sep } from "node:path";
import { mayHaveTags } from "../../read/spelling";
import { tagsOfSource } from "../../read/declared-tags";
import { problem } from "../../text/problems";
import { mappedSources, tagsInFile, unlockedIn, unlockedOf, type Unlocked } from "../../verify/declared";
import { fileError } from "../one-file/file-error";
import { parser } from "../../parser/parser";

/**
 * Rejects JavaScript that was built without the weave. Such code has no locks, although there are tags in its own comments, in the
 * declarations beside it, or in its source. Also rejects tagged TypeScript of a package, which tsx would run without a weave. Without a
 * tag, the cost is a lookup of the declarations and the source, and a search in their text.
 *
 * @throws an error in the format of the compiler
 */
export function refuseUnlocked(path: string, code: string): void {
  const isJavaScript = /\.[cm]?jsx?$/.test(path);
  if (!isJavaScript && !isInstalled(path)) return;
  const unlocked = isJavaScript
    ? (byDeclarations(path, code) ?? byItself(path, code) ?? bySource(path, code))
    : byItself(path, code);
  if (unlocked === undefined) return;
  const names = unlocked.tags.map(({ name, flag }) => `\`${name ?? flag}\``).join(", ");
  const { code: number, message } = problem(
    "unlockedDependency",
    { start: 0, end: 0 },
    names,
    basename(path),
  );
  throw fileError(`${relative(process.cwd(), path)}: error ${number}: ${message}`);
}

/** Whether another package built the file, so that it must not be woven here. */
export function isInstalled(path: string): boolean {
  return path.includes(`${sep}node_modules${sep}`);
}

function byDeclarations(path: string, code: string): Unlocked | undefined {
  const name = path.replace(/\.([cm]?)jsx?$/, ".d.$1ts");
  if (!isFile(name)) return undefined;
  const text = readFileSync(name, "utf8");
  if (!mayHaveTags(text)) return undefined;
  const ts = parser();
  return unlockedIn(ts, ts.createSourceFile(name, text, ts.ScriptTarget.Latest), code);
}

function byItself(path: string, code: string): Unlocked | undefined {
  if (!mayHaveTags(code)) return undefined;
  const ts = parser();
  return unlockedOf(ts, tagsOfSource(ts, path, code), path, code);
}

/**
 * Compares the code with the tags of its source, because a compiler may have removed the comments. With several sources, a bundler may have
 * dropped unused functions, so their absence proves nothing.
 */
function bySource(path: string, code: string): Unlocked | undefined {
  const [source, another] = mappedSources({ fileName: path, text: code });
  if (source === undefined || another !== undefined || !isFile(source)) return undefined;
  if (!mayHaveTags(readFileSync(source, "utf8"))) return undefined;
  const ts = parser();
  return unlockedOf(ts, tagsInFile(ts, source), path, code);
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
