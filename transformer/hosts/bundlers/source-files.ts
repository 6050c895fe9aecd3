import { relative } from "node:path";
import { isInstalled } from "../../resolve/installed";

/** Matches the module IDs of files that may contain tags. */
export const SOURCE_FILES = /\.[cm]?[jt]sx?(?:\?|#[^/\\]*$|$)|[?&]lang[.=][cm]?[jt]sx?(?:&|$)/;

/** Matches modules that are imported as text or as a URL, and do not run. Vite runs `?raw=0`. */
export const AS_TEXT = /[?&](?:raw|url)(?:&|$)/;

/** Matches other modules that are not woven. The last pattern matches virtual modules of plugins. */
const OTHER_FILES: readonly RegExp[] = [AS_TEXT, /^\0/];

/** Whether the module is not woven. */
export function isOtherFile(id: string): boolean {
  return OTHER_FILES.some((others) => others.test(id)) || isInstalled(id);
}

/**
 * Returns the file name with which to parse a module. It drops the query of `pay.ts?v=1`, and adds the language of a part of a file, such
 * as `Pay.vue?vue&type=script&lang.ts`.
 *
 * @returns `undefined` if there is nothing to weave
 */
export function sourceFileOf(id: string): string | undefined {
  if (!SOURCE_FILES.test(id) || isOtherFile(id)) return undefined;
  const [, language] = /[?&]lang[.=](\w+)/.exec(id) ?? [];
  return language === undefined ? pathOf(id) : `${pathOf(id)}.${language}`;
}

/** Returns the path of the file on disk. A `#` may be a part of its name. */
export function pathOf(id: string): string {
  return id.replace(/\?.*$/s, "").replace(/(?<=\.[cm]?[jt]sx?)#[^/\\]*$/, "");
}

/** Returns the path as compilers print it. */
export function shortPath(path: string, directory = process.cwd()): string {
  return relative(directory, path).replaceAll("\\", "/");
}
