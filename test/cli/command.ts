import { join } from "node:path";
import { PACKAGE, type Finished, type Project } from "../hosts/project";

/** Runs the built command line in the project. */
export function lockweave(project: Project, ...args: readonly string[]): Promise<Finished> {
  return project.run(join(PACKAGE, "dist/transformer/cli/main.js"), ...args);
}
