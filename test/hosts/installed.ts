import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const HOME = join(tmpdir(), "lockweave-test-tools");

/** For what the tests change in the directory: those of another checkout, which may run at the same time, have their own. */
export const OF_THIS_CHECKOUT = digestOf(join(__dirname, "../.."));

/** Returns a short name for any text. */
export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/**
 * Installs packages beside each other, once for all runs of the tests on this machine. Returns their `node_modules`.
 *
 * @param name for the directory: of very many packages their names would be too long
 */
export async function installed(packages: readonly string[], name = packages.join("+")): Promise<string> {
  const dir = join(HOME, name.replaceAll("/", "-"));
  const modules = join(dir, "node_modules");
  if (packages.length === 0 || existsSync(modules)) return modules;
  await mkdir(HOME, { recursive: true });
  const fresh = await mkdtemp(join(HOME, "installing-"));
  await writeFile(join(fresh, "package.json"), "{}");
  const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...packages];
  await promisify(execFile)("npm", args, { cwd: fresh });
  // Whole or not at all: another test may be installing the same.
  await rename(fresh, dir).catch(() => rm(fresh, { recursive: true }));
  return modules;
}
