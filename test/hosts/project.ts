import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "ava";
import { runCommand, type Finished } from "../support/commands";

export type { Finished };

import type { CompilerOptions } from "typescript";

/** The repository, which has the built package in `dist`. */
export const PACKAGE = join(__dirname, "../..");

/**
 * Options for a Node process that runs a compiler on a small project. They cache V8's code for TypeScript between
 * processes, and skip optimization and scavenges that do not pay off within a second. This halves the time of the tests.
 */
export const COMPILER: readonly string[] = [
  "--no-opt",
  "--min-semi-space-size=64",
  "--max-semi-space-size=64",
  "--require",
  join(PACKAGE, "test/support/code-cache.cjs"),
];

/** The arguments to run tspc with Node, safe to run in parallel. */
export const TSPC: readonly string[] = [
  ...COMPILER,
  "--require",
  join(PACKAGE, "test/support/ts-patch-cache.cjs"),
  require.resolve("ts-patch/bin/tspc.js"),
];

/** The entry that a user writes in tsconfig.json. */
export const PLUGIN = { transform: "lockweave/transformer", transformProgram: true };

/** File contents by path in the project. */
export type Files = Readonly<Record<string, string>>;

/** Compiler options as in tsconfig.json, with strings for enum values. */
export type Settings = Readonly<Partial<Record<keyof CompilerOptions, unknown>>>;

/** A user's project, compiled with the real compilers. */
export class Project {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  path(file: string): string {
    return join(this.dir, file);
  }

  /**
   * Writes these files, at least a millisecond after all files written before. `tsc -b` compares whole milliseconds, and
   * considers a file unchanged if it is as old as the last build.
   */
  async write(files: Files): Promise<void> {
    await nextFileTime();
    for (const [file, text] of Object.entries(files)) {
      await mkdir(dirname(this.path(file)), { recursive: true });
      await writeFile(this.path(file), text);
    }
  }

  async read(file: string): Promise<string> {
    return await readFile(this.path(file), "utf8");
  }

  /** Returns the position of the first occurrence as the compiler prints it, for example `src/a.ts(3,4)`. */
  async placeOf(words: string, file: string): Promise<string> {
    const before = (await this.read(file)).split(words)[0] ?? "";
    const lines = before.split("\n");
    return `${file}(${lines.length},${(lines.at(-1) ?? "").length + 1})`;
  }

  tspc(...args: readonly string[]): Promise<Finished> {
    return runCommand("tspc", this.dir, args);
  }

  tsc(...args: readonly string[]): Promise<Finished> {
    return runCommand("tsc", this.dir, args);
  }

  /** Runs the built command-line tool. */
  lockweave(...args: readonly string[]): Promise<Finished> {
    return runCommand("lockweave", this.dir, args);
  }

  /** Runs a script with Node. */
  run(...args: readonly string[]): Promise<Finished> {
    return finished(this.dir, args);
  }

  /** Runs a script with another Node. */
  runWith(node: string, ...args: readonly string[]): Promise<Finished> {
    return finished(this.dir, args, node);
  }
}

/** The default options of test projects, chosen to load and check little. */
const SETTINGS: Settings = {
  target: "es2022",
  lib: ["es2022"],
  types: [],
  module: "nodenext",
  strict: true,
  skipLibCheck: true,
  rootDir: "src",
  outDir: "out",
  plugins: [PLUGIN],
};

/** Returns the text of a tsconfig.json with these options on top of {@link SETTINGS}. */
export function tsconfig(settings: Settings = {}, others: object = { include: ["src"] }): string {
  return JSON.stringify({ compilerOptions: { ...SETTINGS, ...settings }, ...others });
}

/** Waits until a file gets a modification time at least a millisecond later than one written now. */
async function nextFileTime(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "file-time-"));
  const now = async (): Promise<number> => {
    await writeFile(join(dir, "now"), "");
    return (await stat(join(dir, "now"))).mtime.getTime();
  };
  const before = await now();
  while ((await now()) === before);
  await rm(dir, { recursive: true });
}

const projects: Project[] = [];
test.after.always("remove the projects", async () => {
  for (const { dir } of projects) await rm(dir, { recursive: true, force: true });
});

/** Creates a project in its own directory. It has ES modules unless its package.json says otherwise. */
export async function makeProject(files: Files, settings: Settings = {}): Promise<Project> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "project-")));
  const project = new Project(dir);
  projects.push(project);
  await mkdir(join(dir, "node_modules/@types"), { recursive: true });
  await symlink(PACKAGE, join(dir, "node_modules/lockweave"));
  // One link per package: a package manager that runs there removes the links, but not their targets.
  for (const name of ["typescript", "ts-patch", "@types/node"]) {
    await symlink(join(PACKAGE, "node_modules", name), join(dir, "node_modules", name));
  }
  await project.write({
    "package.json": JSON.stringify({ type: "module" }),
    "tsconfig.json": tsconfig(settings),
    ...files,
  });
  return project;
}

async function finished(
  cwd: string,
  args: readonly string[],
  node: string = process.execPath,
): Promise<Finished> {
  const child = spawn(node, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}
