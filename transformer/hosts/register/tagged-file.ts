import { readFileSync, statSync } from "node:fs";
import { extname, relative, sep } from "node:path";
import { mayNeedWeave } from "../../weave/weave";
import { tagError } from "../one-file/file-error";
import { fileWeaver, formatFinding, type FileWeaver, type WovenFile } from "../one-file/weaver";
import type { Format } from "./compilers/format";
import { parser } from "../../parser/parser";
import { mappedSources } from "../../verify/source-maps";
import { tsconfigFor } from "./compilers/tsconfig";
import { isInstalled } from "../../resolve/installed";
import { refuseUnlocked } from "./unlocked";

/** Whether a file with this name may contain tags. */
export function isScript(path: string): boolean {
  return hasNoEnding(path) || /\.(?:[cm]?[jt]s|[jt]sx)$/.test(path);
}

/** Whether the file has no extension, like many commands. Node runs it as JavaScript. */
export function hasNoEnding(path: string): boolean {
  return extname(path) === "";
}

/**
 * Weaves a file before Node runs it.
 *
 * @param format the format of the file, or `undefined` if its module syntax decides
 * @returns `undefined` if there is nothing to weave
 * @throws if the tags have errors, or if the file is built code without the locks that its tags require
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
  if (errors.length > 0) throw errorInSource(path, text) ?? tagError(name, errors);
  for (const found of warnings) process.stderr.write(`${formatFinding(name, found, "warning")}\n`);
  return woven;
}

/** Returns the error in the source, if the file is compiled code with tags, as swc writes it. */
function errorInSource(path: string, code: string): Error | undefined {
  const [source, another] = mappedSources({ fileName: path, text: code });
  if (source === undefined || another !== undefined) return undefined;
  const isOnDisk = statSync(source.path, { throwIfNoEntry: false })?.isFile() === true;
  const text = isOnDisk ? readFileSync(source.path, "utf8") : source.content;
  const errors = text === undefined ? [] : (weaverFor(path)(source.path, text)?.errors ?? []);
  return errors.length === 0 ? undefined : tagError(shownPath(source.path), errors);
}

/** Returns the path as compilers print it. */
export function shownPath(path: string): string {
  return relative(process.cwd(), path).replaceAll(sep, "/");
}

const weavers = new Map<string, FileWeaver>();

function weaverFor(path: string): FileWeaver {
  const { path: config, pluginOptions } = tsconfigFor(path);
  let weaver = weavers.get(config);
  if (weaver === undefined) weavers.set(config, (weaver = fileWeaver(parser(), pluginOptions)));
  return weaver;
}
