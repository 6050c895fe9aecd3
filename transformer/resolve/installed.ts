import { realpathSync } from "node:fs";

/** Matches paths in `node_modules`. A link there may lead to a package of the user's own: see {@link isInstalled}. */
export const INSTALLED = /[\\/]node_modules[\\/]/;

const PACKAGE = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/s;
const isInstalledByPackage = new Map<string, boolean>();

/**
 * Whether the file belongs to an installed package. Lockweave does not weave it, and Node runs no TypeScript there. A link to a package of
 * the workspace leads out of `node_modules`.
 */
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
    return true; // There is no such directory: a plugin made up the ID, or the path is in an archive.
  }
}
