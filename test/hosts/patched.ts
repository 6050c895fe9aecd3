import { cp, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { makeProject, PACKAGE, type Finished, type Files, type Project, type Settings } from "./project";

/** Creates a project with its own TypeScript, patched with `ts-patch install`. */
export async function makePatchedProject(files: Files, settings: Settings = {}): Promise<Project> {
  const project = await makeProject(files, settings);
  const [original, copy] = [
    join(PACKAGE, "node_modules/typescript"),
    project.path("node_modules/typescript"),
  ];
  await rm(copy);
  await mkdir(copy);
  for (const part of ["package.json", "bin", "lib"]) {
    await cp(join(original, part), join(copy, part), {
      recursive: true,
      filter: (path) => !/[\\/]lib[\\/][a-z]{2}(?:-[a-z]+)?$/.test(path), // Messages in other languages.
    });
  }
  const { code, stdout, stderr } = await patch(project);
  if (code !== 0) throw new Error(stdout + stderr);
  return project;
}

async function patch(project: Project): Promise<Finished> {
  const command = join(PACKAGE, "node_modules/ts-patch/bin/ts-patch.js");
  return await project.run(command, "install", "--silent", "--dir", project.dir);
}
