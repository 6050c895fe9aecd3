import { basename, relative, sep } from "node:path";
import { problem } from "../../text/problems";
import { unlockedIn } from "../../verify/unlocked-file";
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
  const unlocked = unlockedIn(parser(), path, code);
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
