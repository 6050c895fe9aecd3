import { fileURLToPath } from "node:url";
import { compilerFor, type Compiled } from "./compilers/compiler";
import { formatOf } from "./format";
import { isScript, weaveFile } from "./tagged-file";

/**
 * What Node is to run in the place of a tagged file.
 *
 * @param told what the hooks around say of its format
 * @returns `undefined` when it is of no concern to us
 */
export function loadFile(name: string, told?: string | null): Compiled | undefined {
  const path = name.replace(/\?.*$/s, ""); // Some hosts load a file twice by giving it queries.
  if (!isScript(path)) return undefined;
  const known = formatOf(path, told);
  const woven = weaveFile(path, known);
  if (woven === undefined) return undefined;
  const compiler = compilerFor(path);
  const format = known ?? (woven.syntax === "esm" ? compiler.formatOfModules : "commonjs");
  return compiler.compile(woven, path, format);
}

/** The path of a file that is loaded by its URL. */
export function pathOf(url: string): string | undefined {
  return url.startsWith("file:") ? fileURLToPath(url) : undefined;
}
