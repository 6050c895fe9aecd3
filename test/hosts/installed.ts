import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const HOME = join(tmpdir(), "lockweave-test-tools");

/** The suffix of directories that tests modify, so that two checkouts can run their tests at the same time. */
export const OF_THIS_CHECKOUT = digestOf(join(__dirname, "../.."));

/** Returns a short name for any text. */
export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/**
 * Installs packages together, once for all test runs on this machine. Returns their `node_modules`.
 *
 * @param name the name of the directory, for lists of packages that are too long for one
 * @param options more options of `npm install`
 */
export async function installed(
  packages: readonly string[],
  name = packages.join("+"),
  options: readonly string[] = [],
): Promise<string> {
  const dir = join(HOME, name.replaceAll("/", "-"));
  const modules = join(dir, "node_modules");
  if (packages.length === 0 || existsSync(modules)) return modules;
  await mkdir(HOME, { recursive: true });
  const fresh = await mkdtemp(join(HOME, "installing-"));
  await writeFile(join(fresh, "package.json"), "{}");
  const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...options, ...packages];
  await promisify(execFile)("npm", args, { cwd: fresh });
  // Renames atomically, since another test may install the same packages.
  await rename(fresh, dir).catch(() => rm(fresh, { recursive: true }));
  return modules;
}
