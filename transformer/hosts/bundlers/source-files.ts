import { relative } from "node:path";

/** Matches the module IDs of files that may contain tags. */
export const SOURCE_FILES = /\.[cm]?[jt]sx?(?:\?|$)|[?&]lang[.=][cm]?[jt]sx?(?:&|$)/;

/** Matches files of installed packages. */
export const INSTALLED = /[\\/]node_modules[\\/]/;

/** Matches modules that are imported as text or as a URL, and do not run. */
export const AS_TEXT = /[?&](?:raw|url)(?:[&=]|$)/;

/** Matches all modules that are not woven. The last pattern matches virtual modules of plugins. */
export const OTHER_FILES: readonly RegExp[] = [INSTALLED, AS_TEXT, /^\0/];

/**
 * Returns the file name with which to parse a module. It drops the query of `pay.ts?v=1`, and adds the language of a part of a file, such
 * as `Pay.vue?vue&type=script&lang.ts`.
 *
 * @returns `undefined` if there is nothing to weave
 */
export function sourceFileOf(id: string): string | undefined {
  if (!SOURCE_FILES.test(id) || OTHER_FILES.some((others) => others.test(id))) return undefined;
  const [, language] = /[?&]lang[.=](\w+)/.exec(id) ?? [];
  return language === undefined ? pathOf(id) : `${pathOf(id)}.${language}`;
}

/** Returns the path of the file on disk. */
export function pathOf(id: string): string {
  return id.replace(/\?.*$/s, "");
}

/** Returns the path as compilers print it. */
export function shortPath(path: string, directory = process.cwd()): string {
  return relative(directory, path).replaceAll("\\", "/");
}
