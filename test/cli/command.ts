import { join } from "node:path";
import { COMPILER, PACKAGE, type Finished, type Project } from "../hosts/project";

/** Runs the built command line in the project. */
export function lockweave(project: Project, ...args: readonly string[]): Promise<Finished> {
  return project.run(...COMPILER, join(PACKAGE, "dist/transformer/cli/main.js"), ...args);
}
