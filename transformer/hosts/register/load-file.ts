import { statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Compiled, Compiler } from "./compilers/compiler";
import { byNode } from "./compilers/node";
import { registeredTsNode } from "./compilers/ts-node";
import { registeredTsx } from "./compilers/tsx";
import { formatOf } from "./compilers/format";
import { hasNoEnding, isScript, weaveFile } from "./tagged-file";

/**
 * Returns the code that Node runs in place of a tagged file.
 *
 * @param reportedFormat the format that Node or the other hooks report
 * @param otherCompiler returns the compiler that another package registered
 * @returns `undefined` if the file needs no weave
 */
export function loadFile(
  name: string,
  reportedFormat?: string | null,
  otherCompiler?: () => Compiler | undefined,
): Compiled | undefined {
  const path = withoutQuery(name);
  if (!isScript(path)) return undefined;
  const known = formatOf(path, reportedFormat);
  const woven = weaveFile(path, known);
  if (woven === undefined) return undefined;
  const compiler = knownCompiler(path) ?? otherCompiler?.() ?? byNode;
  const format = known ?? (woven.syntax === "esm" ? compiler.formatOfModules : "commonjs");
  return compiler.compile(woven, path, format);
}

/** Returns the path without its query. Some hosts load a file twice by adding queries, and the names of directories may contain a `?`. */
function withoutQuery(path: string): string {
  if (!path.includes("?") || isFile(path)) return path;
  const shorter = Array.from(path.matchAll(/\?/g), ({ index }) => path.slice(0, index));
  return shorter.find(isFile) ?? path;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function knownCompiler(path: string): Compiler | undefined {
  return hasNoEnding(path) ? byNode : (registeredTsNode(path) ?? registeredTsx());
}

/** Returns the path of a file that is loaded by its URL. */
export function pathOf(url: string): string | undefined {
  return url.startsWith("file:") ? fileURLToPath(url) : undefined;
}
