import { rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { installed, type SetName } from "../hosts/installed";
import type { Project } from "../hosts/project";

/** The sets with compilers that are not among the dependencies of this repository. */
const TOOLS = {
  "@swc/core": "swc",
  amaro: "amaro",
  esbuild: "esbuild",
  typescript: "typescript-7",
} as const satisfies Record<string, SetName>;

type Tool = keyof typeof TOOLS;

/** Installs the tool. Returns the path from which to require it. */
export async function install(name: Tool): Promise<string> {
  return join(dirname(await installed(TOOLS[name])), "index.js");
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
