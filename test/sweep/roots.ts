import { cp, mkdir, symlink } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json";
import { installedJest } from "../hosts/jest/installed-jest";
import { fileOfTool } from "./hosts/tools";
import { run } from "./processes";
import type { Setup } from "./setup";

const PACKAGE = join(__dirname, "../..");
const OWN = join(PACKAGE, "node_modules");

// Each directory has the packages of some hosts in its `node_modules`, and contains the projects of their setups.

const made = new Map<string, Promise<string>>();

/** Returns the directory for the project of a setup. */
export function rootFor(root: string, setup: Setup): Promise<string> {
  const name = ["patched-tsc", "typescript-7", "jest"].includes(setup.host) ? setup.host : "others";
  const found = made.get(name) ?? makeRoot(join(root, name), setup.host);
  made.set(name, found);
  return found;
}

async function makeRoot(dir: string, host: Setup["host"]): Promise<string> {
  const modules = join(dir, "node_modules");
  await mkdir(join(modules, "@types"), { recursive: true });
  // A copy, since bundlers do not treat a linked directory as an installed package.
  for (const part of ["dist", "package.json"]) {
    await cp(join(PACKAGE, part), join(modules, "lockweave", part), { recursive: true });
  }
  for (const name of [
    ...Object.keys(packageJson.dependencies),
    "@types/node",
    "tsx",
    "ts-node",
    "ts-patch",
  ]) {
    await symlink(join(OWN, name), join(modules, name));
  }
  await linkHost(modules, host);
  const typescript = join(modules, "typescript");
  if (!existsSync(typescript)) await symlink(join(OWN, "typescript"), typescript);
  return dir;
}

async function linkHost(modules: string, host: Setup["host"]): Promise<void> {
  const link = async (from: string, name: string): Promise<void> =>
    symlink(join(from, name), join(modules, name));
  if (host === "typescript-7") await link(await fileOfTool("typescript-7", "."), "typescript");
  if (host === "jest") {
    const jest = await installedJest();
    for (const name of ["jest", "ts-jest", "typescript"]) await link(jest, name);
  }
  if (host === "patched-tsc") await patchCompiler(join(modules, ".."));
}

/** Gives the directory its own TypeScript, patched with `ts-patch install`. */
async function patchCompiler(dir: string): Promise<void> {
  const copy = join(dir, "node_modules/typescript");
  for (const part of ["package.json", "bin", "lib"]) {
    await cp(join(OWN, "typescript", part), join(copy, part), { recursive: true });
  }
  const { code, output } = await run({
    dir,
    args: [join(OWN, "ts-patch/bin/ts-patch.js"), "install", "--silent", "--dir", dir],
  });
  if (code !== 0) throw new Error(output);
}
