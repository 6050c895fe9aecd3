import { readFileSync } from "node:fs";
import { extname, relative, sep } from "node:path";
import { mayNeedWeave } from "../../weave/weave";
import { tagError } from "../one-file/file-error";
import { fileWeaver, shown, type FileWeaver, type WovenFile } from "../one-file/weaver";
import type { Format } from "./format";
import { parser } from "../../parser/parser";
import { tsconfigFor } from "./tsconfig";
import { isInstalled, refuseUnlocked } from "./unlocked";

/** Whether files of this name may hold tags. */
export function isScript(path: string): boolean {
  return hasNoEnding(path) || /\.(?:[cm]?[jt]s|[jt]sx)$/.test(path);
}

/** Of a command, say: it is JavaScript to Node. */
export function hasNoEnding(path: string): boolean {
  return extname(path) === "";
}

/**
 * The file with its locks, on their way into Node.
 *
 * @param format `undefined` when its own words decide
 * @returns `undefined` where there is nothing to weave
 * @throws all that is wrong with its tags, in the compiler's words; and where the locks of its declarations are missing
 */
export function weaveFile(path: string, format: Format | undefined): WovenFile | undefined {
  const text = readFileSync(path, "utf8");
  const woven = isInstalled(path) ? undefined : weaveText(path, text, format);
  refuseUnlocked(path, woven?.code ?? text);
  return woven;
}

function weaveText(path: string, text: string, format: Format | undefined): WovenFile | undefined {
  if (!mayNeedWeave(text)) return undefined;
  const fileName = hasNoEnding(path) ? `${path}.js` : path;
  const woven = weaverFor(path)(fileName, text, format === "module" ? "esm" : "as written");
  if (woven === undefined) return undefined;
  const name = shownPath(path);
  const { errors, warnings } = woven;
  if (errors.length > 0) throw tagError(name, errors);
  for (const found of warnings) process.stderr.write(`${shown(name, found, "warning")}\n`);
  return woven;
}

/** As compilers print it. */
function shownPath(path: string): string {
  return relative(process.cwd(), path).replaceAll(sep, "/");
}

const weavers = new Map<string, FileWeaver>();

function weaverFor(path: string): FileWeaver {
  const { path: config, pluginOptions } = tsconfigFor(path);
  let weaver = weavers.get(config);
  if (weaver === undefined) weavers.set(config, (weaver = fileWeaver(parser(), pluginOptions)));
  return weaver;
}
