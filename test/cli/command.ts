import type { Finished, Project } from "../hosts/project";

/** Runs the built command line in the project. */
export function lockweave(project: Project, ...args: readonly string[]): Promise<Finished> {
  return project.lockweave(...args);
}
