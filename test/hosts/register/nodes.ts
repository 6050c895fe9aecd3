import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** Whether to take the time to install what is big: see `npm run test:matrix`. */
export const isMatrix = process.env["MATRIX"] !== undefined;

/** The versions of Node that are promised to work, but for this one. */
export const OTHER_NODES = isMatrix ? ["22.18.0", "22", "24", "26"] : [];

const HOME = join(tmpdir(), "lockweave-matrix");

/** A Node of that version, from npm. */
export async function installNode(version: string): Promise<string> {
  return join(await install(`node-of-${version}`, [`node@${version}`]), "node/bin/node");
}

/** Installs packages once for all runs on this machine. Returns their `node_modules`. */
export async function install(name: string, packages: readonly string[]): Promise<string> {
  const dir = join(HOME, name);
  const modules = join(dir, "node_modules");
  if (existsSync(modules)) return modules;
  await mkdir(HOME, { recursive: true });
  const fresh = await mkdtemp(join(HOME, "installing-"));
  await writeFile(join(fresh, "package.json"), "{}");
  const args = ["install", "--prefer-offline", "--no-audit", "--no-fund", ...packages];
  await promisify(execFile)("npm", args, { cwd: fresh });
  // Whole or not at all: another test may be installing the same.
  await rename(fresh, dir).catch(() => rm(fresh, { recursive: true }));
  return modules;
}
