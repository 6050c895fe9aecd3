import { readFileSync, statSync } from "node:fs";
import { basename, relative } from "node:path";
import { mayHaveTags } from "../../read/spelling";
import { tagsOfSource } from "../../read/declared-tags";
import { problem } from "../../text/problems";
import { unlockedIn, unlockedOf, type Unlocked } from "../../verify/declared";
import { parser } from "../../parser/parser";

/**
 * Refuses JavaScript that was built without the weave: tags in its own comments or in the declarations beside it, and no
 * locks. Without a tag, it costs a look for declarations and a search in their text.
 *
 * @throws in the compiler's words
 */
export function refuseUnlocked(path: string, code: string): void {
  if (!/\.[cm]?jsx?$/.test(path)) return;
  const unlocked = byDeclarations(path, code) ?? byItself(path, code);
  if (unlocked === undefined) return;
  const names = unlocked.tags.map(({ name, flag }) => `\`${name ?? flag}\``).join(", ");
  const { code: number, message } = problem(
    "unlockedDependency",
    { start: 0, end: 0 },
    names,
    basename(path),
  );
  throw new Error(`${relative(process.cwd(), path)}: error ${number}: ${message}`);
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

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
