import { realpathSync } from "node:fs";
import { relative } from "node:path";

/** What may hold tags, by a host's id for it. */
export const SOURCE_FILES = /\.[cm]?[jt]sx?(?:\?|#[^/\\]*$|$)|[?&]lang[.=][cm]?[jt]sx?(?:&|$)/;

/** A path in `node_modules`, where a link may lead to a package of the user's own: see {@link isInstalled}. */
export const INSTALLED = /[\\/]node_modules[\\/]/;

const PACKAGE = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/s;
const isInstalledByPackage = new Map<string, boolean>();

/** Whether another package has built the file. A link to a package of the workspace leads out of `node_modules`. */
export function isInstalled(path: string): boolean {
  if (!INSTALLED.test(path)) return false;
  const [directory = path] = PACKAGE.exec(path) ?? [];
  let found = isInstalledByPackage.get(directory);
  if (found === undefined) {
    found = leadsToInstalled(directory);
    isInstalledByPackage.set(directory, found);
  }
  return found;
}

function leadsToInstalled(directory: string): boolean {
  try {
    return INSTALLED.test(realpathSync(directory));
  } catch {
    return true; // No directory: an id that a plugin made up, or a path in an archive.
  }
}

/** What is asked for as text, or as a URL, and not to be run. Vite runs `?raw=0`. */
export const AS_TEXT = /[?&](?:raw|url)(?:&|$)/;

/** What is left alone beside installed files. The last are what plugins have made up. */
const OTHER_FILES: readonly RegExp[] = [AS_TEXT, /^\0/];

export function isOtherFile(id: string): boolean {
  return OTHER_FILES.some((others) => others.test(id)) || isInstalled(id);
}

/**
 * The name by which to parse what a host knows by this id: without what follows the path, as in `pay.ts?v=1`, and with
 * the language of a part of a file, as in `Pay.vue?vue&type=script&lang.ts`.
 *
 * @returns `undefined` where there is nothing to weave
 */
export function sourceFileOf(id: string): string | undefined {
  if (!SOURCE_FILES.test(id) || isOtherFile(id)) return undefined;
  const [, language] = /[?&]lang[.=](\w+)/.exec(id) ?? [];
  return language === undefined ? pathOf(id) : `${pathOf(id)}.${language}`;
}

/** The file on disk. A `#` may be a part of its name. */
export function pathOf(id: string): string {
  return id.replace(/\?.*$/s, "").replace(/(?<=\.[cm]?[jt]sx?)#[^/\\]*$/, "");
}

/** As compilers write it. */
export function shortPath(path: string, directory = process.cwd()): string {
  return relative(directory, path).replaceAll("\\", "/");
}
