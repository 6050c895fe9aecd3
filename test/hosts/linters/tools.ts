import { installLockweave } from "../bundlers/bundlers";
import { codeUnder } from "../bundlers/recipes";
import type { SetName } from "../installed";
import { linkPackages } from "../link";
import { makeProject, type Files, type Project } from "../project";

/** Returns a project that has installed the set of tools and the built package. */
export async function projectWith(set: SetName, files: Files): Promise<Project> {
  const project = await makeProject(files, { module: "nodenext", types: [] });
  await linkPackages(project, [set]);
  await installLockweave(project);
  return project;
}

/** Returns an example of docs/compilers.md, as a file of a project. */
export function example(heading: string, file: string): Files {
  return { [file]: codeUnder(heading, file) };
}
