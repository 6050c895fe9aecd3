import { rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { installed, type SetName } from "../hosts/installed";
import { PACKAGE, type Project } from "../hosts/project";

/** The sets with compilers that are not among the dependencies of this repository. */
const SETS = { "@swc/core": "swc", amaro: "amaro", webpack: "webpack" } as const satisfies Record<
  string,
  SetName
>;

type Tool = keyof typeof SETS | "esbuild" | "typescript";

/** The directory of TypeScript 7. Its package in the repository has another name than `typescript`, because its commands are the same. */
export const TYPESCRIPT_7 = join(PACKAGE, "test/hosts/native/typescript-7/node_modules/typescript");

/** Returns the path from which to require the tool. Those of `SETS` are installed first. */
async function pathTo(name: Tool): Promise<string> {
  if (name === "typescript") return join(TYPESCRIPT_7, "../index.js");
  return name === "esbuild"
    ? join(PACKAGE, "index.js")
    : join(dirname(await installed(SETS[name])), "index.js");
}

/** Links TypeScript 7 into the project. It takes no plugins and has no API. */
export async function linkTypeScript7(project: Project): Promise<void> {
  await rm(project.path("node_modules/typescript"));
  await symlink(TYPESCRIPT_7, project.path("node_modules/typescript"));
}

/** Runs a script in the project in a new process, with the exports of the tool as `tool`. */
export async function runTool(project: Project, name: Tool, script: string): Promise<void> {
  const from = JSON.stringify(await pathTo(name));
  const load = `const tool = require("node:module").createRequire(${from})(${JSON.stringify(name)});`;
  const { code, stderr } = await project.run("--eval", `const fs = require("node:fs"); ${load} ${script}`);
  if (code !== 0) throw new Error(stderr);
}
