import { mkdir, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { installLockweave } from "../bundlers/bundlers";
import { codeUnder } from "../bundlers/recipes";
import { installed } from "../installed";
import { makeProject, type Files, type Project } from "../project";

/** Returns a project that has installed the tools and the built package. */
export async function projectWith(tools: readonly string[], files: Files): Promise<Project> {
  const modules = await installed(tools);
  const project = await makeProject(files, { module: "nodenext", types: [] });
  for (const spec of tools) {
    const name = spec.replace(/(?!^)@.*/, "");
    const path = project.path(`node_modules/${name}`);
    await mkdir(dirname(path), { recursive: true });
    await rm(path, { recursive: true, force: true }); // The project already links the repository's TypeScript.
    await symlink(join(modules, name), path);
  }
  await installLockweave(project);
  return project;
}

/** Returns an example of docs/compilers.md, as a file of a project. */
export function example(heading: string, file: string): Files {
  return { [file]: codeUnder(heading, file) };
}
