import { readFileSync, statSync } from "node:fs";
import { basename, relative, sep } from "node:path";
import { mayHaveTags } from "../../read/spelling";
import { tagsOfSource } from "../../read/declared-tags";
import { problem } from "../../text/problems";
import { mappedSources, tagsInFile, unlockedIn, unlockedOf, type Unlocked } from "../../verify/declared";
import { fileError } from "../one-file/file-error";
import { parser } from "../../parser/parser";

/**
 * Refuses JavaScript that was built without the weave: tags in its own comments, in the declarations beside it or in the
 * source that it was made of, and no locks. So is TypeScript of a package, which tsx runs and nobody weaves. Without a tag, it
 * costs a look for declarations and source, and a search in their text.
 *
 * @throws in the compiler's words
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

/** What others have built is not ours to compile. */
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

/** Compilers may take the comments out. Of several sources a bundler may have left out what nobody calls. */
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
