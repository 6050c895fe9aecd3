import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { installed, SETS } from "./installed";

const execute = promisify(execFile);

/** Returns the path of the program, to run with Node. */
export async function yarnProgram(): Promise<string> {
  return join(await installed("yarn"), "@yarnpkg/cli-dist/bin/yarn.js");
}

/** Returns the `.yarnrc.yml` of a project that uses npm's registry. */
export async function yarnSettings(): Promise<string> {
  const { stdout: registry } = await execute("npm", ["config", "get", "registry"]);
  return `enableTelemetry: false\nnpmRegistryServer: ${registry}`;
}

/** Lets Yarn download the packages of the test projects into its cache. It still asks the registry for their versions later. */
export async function fillCacheOfYarn(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "cache-of-yarn-"));
  const manifest = { name: "cache", private: true, dependencies: SETS["yarn-projects"] };
  await writeFile(join(dir, "package.json"), JSON.stringify(manifest));
  await writeFile(join(dir, "yarn.lock"), "");
  await writeFile(join(dir, ".yarnrc.yml"), await yarnSettings());
  await execute(process.execPath, [await yarnProgram(), "install", "--no-immutable"], { cwd: dir });
  await rm(dir, { recursive: true });
}
