import { relative } from "node:path";

/** What may hold tags, by a host's id for it. */
export const SOURCE_FILES = /\.[cm]?[jt]sx?(?:\?|$)|[?&]lang[.=][cm]?[jt]sx?(?:&|$)/;

/** What another package has built. */
export const INSTALLED = /[\\/]node_modules[\\/]/;

/** What is asked for as text, or as a URL, and not to be run. */
export const AS_TEXT = /[?&](?:raw|url)(?:[&=]|$)/;

/** All that is left alone. The last are what plugins have made up. */
export const OTHER_FILES: readonly RegExp[] = [INSTALLED, AS_TEXT, /^\0/];

/**
 * The name by which to parse what a host knows by this id: without what follows the path, as in `pay.ts?v=1`, and with
 * the language of a part of a file, as in `Pay.vue?vue&type=script&lang.ts`.
 *
 * @returns `undefined` where there is nothing to weave
 */
export function sourceFileOf(id: string): string | undefined {
  if (!SOURCE_FILES.test(id) || OTHER_FILES.some((others) => others.test(id))) return undefined;
  const [, language] = /[?&]lang[.=](\w+)/.exec(id) ?? [];
  return language === undefined ? pathOf(id) : `${pathOf(id)}.${language}`;
}

/** The file on disk. */
export function pathOf(id: string): string {
  return id.replace(/\?.*$/s, "");
}

/** As compilers write it. */
export function shortPath(path: string, directory = process.cwd()): string {
  return relative(directory, path).replaceAll("\\", "/");
}
