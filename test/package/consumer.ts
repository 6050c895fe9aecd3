import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { makeProject, PACKAGE, type Files, type Project, type Settings } from "../hosts/project";

const execute = promisify(execFile);

/** The unpacked package, as npm would publish it. */
export interface Packed {
  /** The paths in the tarball. */
  readonly files: readonly string[];
  readonly dir: string;
  readonly tarball: string;
}

let packed: Promise<Packed> | undefined;
const dirs: string[] = [];
test.after.always("remove the packages", async () => {
  for (const dir of dirs) await rm(dir, { recursive: true, force: true });
});

export async function temporaryDirectory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "package-"));
  dirs.push(dir);
  return dir;
}

/** Packs once for all tests of a file. */
export function pack(): Promise<Packed> {
  return (packed ??= packNow());
}

async function packNow(): Promise<Packed> {
  const dir = await temporaryDirectory();
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", dir];
  const { stdout } = await execute("npm", args, { cwd: PACKAGE });
  const [tarball] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  await execute("tar", ["-xzf", tarball.filename], { cwd: dir });
  return {
    files: tarball.files.map(({ path }) => path),
    dir: join(dir, "package"),
    tarball: join(dir, tarball.filename),
  };
}

/** Creates a project with the packed package and its dependencies, without its peer dependencies. */
export async function makeConsumer(files: Files, settings: Settings = {}): Promise<Project> {
  const project = await makeProject(files, { types: ["node"], skipLibCheck: false, ...settings });
  const { dir } = await pack();
  const installed = project.path("node_modules/lockweave");
  await rm(installed);
  await cp(dir, installed, { recursive: true });
  await symlink(join(PACKAGE, "node_modules/uuid"), project.path("node_modules/uuid"));
  return project;
}
