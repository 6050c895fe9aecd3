import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Project } from "../hosts/project";

/** Compilers that are not among the dependencies of this repository. */
const VERSIONS = {
  "@swc/core": "1.16.22",
  amaro: "1.2.1",
  esbuild: "0.28.2",
  typescript: "7.0.2",
} as const;

type Tool = keyof typeof VERSIONS;

/** Installs the tool, once for all runs of the tests on this machine. Returns the path from which to require it. */
export async function install(name: Tool): Promise<string> {
  const tool = `${name}@${VERSIONS[name]}`;
  const home = join(tmpdir(), "lockweave-test-tools");
  const dir = join(home, tool.replaceAll("/", "-"));
  if (!(await exists(dir))) {
    await mkdir(home, { recursive: true });
    const fresh = await mkdtemp(join(home, "installing-"));
    await writeFile(join(fresh, "package.json"), "{}");
    await promisify(execFile)("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", tool], {
      cwd: fresh,
      shell: process.platform === "win32",
    });
    // Another test may be installing the same tool, so the directory appears only when it is complete.
    await rename(fresh, dir).catch(() => rm(fresh, { recursive: true }));
  }
  return join(dir, "index.js");
}

/** Links TypeScript 7 into the project. It takes no plugins and has no API. */
export async function linkTypeScript7(project: Project): Promise<void> {
  const typescript = join(dirname(await install("typescript")), "node_modules/typescript");
  await rm(project.path("node_modules/typescript"));
  await symlink(typescript, project.path("node_modules/typescript"));
}

/** Runs a script in the project in a new process, with the exports of the tool as `tool`. */
export async function runTool(project: Project, name: Tool, script: string): Promise<void> {
  const from = JSON.stringify(await install(name));
  const load = `const tool = require("node:module").createRequire(${from})(${JSON.stringify(name)});`;
  const { code, stderr } = await project.run("--eval", `const fs = require("node:fs"); ${load} ${script}`);
  if (code !== 0) throw new Error(stderr);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
