import { mkdir, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { installed, packagesIn, type SetName } from "./installed";
import { PACKAGE, type Project } from "./project";

/**
 * Links packages into a project.
 *
 * @param sets the sets whose packages it gets. They are installed if needed
 * @param own the names of packages that are installed in the repository
 */
export async function linkPackages(
  project: Project,
  sets: readonly SetName[],
  own: readonly string[] = [],
): Promise<void> {
  for (const name of own) await link(project, join(PACKAGE, "node_modules"), name);
  for (const set of sets) {
    const modules = await installed(set);
    for (const name of packagesIn(set)) await link(project, modules, name);
  }
}

async function link(project: Project, modules: string, name: string): Promise<void> {
  const path = project.path(`node_modules/${name}`);
  await mkdir(dirname(path), { recursive: true });
  await rm(path, { recursive: true, force: true }); // A new project links the repository's TypeScript.
  await symlink(join(modules, name), path);
}
