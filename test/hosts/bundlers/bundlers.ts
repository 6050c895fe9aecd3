import { existsSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import packageJson from "../../../package.json";
import { makeProject, PACKAGE, type Files, type Finished, type Project } from "../project";
import { recipe } from "./recipes";
import type { SetName } from "../installed";
import { linkPackages } from "../link";
import { isMatrix } from "../../support/suites";

/** A bundler as users run it. */
export interface Bundler {
  /** Its heading in docs/compilers.md, above its configuration. */
  readonly name: string;
  /** The command to run with Node. */
  readonly command: readonly [script: string, ...args: string[]];
  /** Its packages that are installed in the repository. */
  readonly packages?: readonly string[];
  /** The sets with its other packages. */
  readonly sets?: readonly SetName[];
  /** Formats the position of an error or warning as the bundler prints it. */
  readonly place: (file: string, place: Place, kind: "error" | "warning") => string;
}

/** A position as in an editor, with both numbers starting at 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

const asCompilers: Bundler["place"] = (file, { line, column }, kind) =>
  `${file}(${line},${column}): ${kind} `;
const asEsbuild: Bundler["place"] = (file, { line, column }) => `${file}:${line}:${column - 1}:`;
const asWebpack: Bundler["place"] = (file, { line, column }) => `./${file} ${line}:${column - 1}-`;

const LIGHT: readonly Bundler[] = [
  { name: "esbuild", command: ["esbuild.config.mjs"], packages: ["esbuild"], place: asEsbuild },
  {
    name: "Rollup",
    command: ["node_modules/rollup/dist/bin/rollup", "-c"],
    packages: ["rollup", "rollup-plugin-esbuild", "esbuild"],
    place: asCompilers,
  },
  {
    name: "Rolldown",
    command: ["node_modules/rolldown/bin/cli.mjs", "-c"],
    packages: ["rolldown"],
    place: asCompilers,
  },
  {
    name: "Vite",
    command: ["node_modules/vite/bin/vite.js", "build"],
    packages: ["vite"],
    place: asCompilers,
  },
];

/** Bundlers that must be installed first, too heavy for every test run. */
const HEAVY: readonly Bundler[] = [
  {
    name: "tsup",
    command: ["node_modules/tsup/dist/cli-default.js"],
    sets: ["tsup"],
    place: asEsbuild,
  },
  {
    name: "tsdown",
    command: ["node_modules/tsdown/dist/run.mjs"],
    sets: ["tsdown"],
    place: asCompilers,
  },
  {
    name: "webpack",
    command: ["node_modules/webpack-cli/bin/cli.js", "-c", "webpack.config.mjs"],
    sets: ["webpack"],
    place: asWebpack,
  },
  {
    name: "Rspack",
    command: ["node_modules/@rspack/cli/bin/rspack.js", "build", "-c", "rspack.config.mjs"],
    sets: ["rspack"],
    place: asCompilers,
  },
];

export const BUNDLERS = [...LIGHT, ...HEAVY];
/** The bundlers that this run tests. */
export const TESTED = isMatrix ? HEAVY : LIGHT;

/** One bundler, or all others in the matrix. For tests of what their plugins share. */
export const SAMPLED = isMatrix ? [...LIGHT.slice(1), ...HEAVY] : LIGHT.slice(0, 1);

export function bundlerNamed(name: string): Bundler {
  const found = BUNDLERS.find((bundler) => bundler.name === name);
  if (found === undefined) throw new Error(`unknown bundler ${name}`);
  return found;
}

/** Creates a project with the bundler and the built package installed. */
export async function projectOf(
  { name, packages, sets = [] }: Pick<Bundler, "name" | "packages" | "sets">,
  files: Files,
): Promise<Project> {
  const { file, text } = recipe(name);
  const ownPackage = { type: "module", dependencies: { lockweave: packageJson.version } };
  const project = await makeProject({ "package.json": JSON.stringify(ownPackage), [file]: text, ...files });
  await linkPackages(project, sets, packages);
  await installLockweave(project);
  return project;
}

/** Copies Lockweave into `node_modules`. Bundlers do not treat a linked directory as an installed package. */
export async function installLockweave(project: Project): Promise<void> {
  const modules = project.path("node_modules");
  await rm(join(modules, "lockweave"), { recursive: true, force: true });
  for (const part of ["dist", "package.json", "tsdoc.json"]) {
    await cp(join(PACKAGE, part), join(modules, "lockweave", part), { recursive: true });
  }
  for (const dependency of Object.keys(packageJson.dependencies)) {
    await cp(join(PACKAGE, "node_modules", dependency), join(modules, dependency), { recursive: true });
  }
}

export function bundle(project: Project, { command }: Bundler): Promise<Finished> {
  return project.run(...command);
}

/** Runs the bundle of `src/main.ts`. */
export function runBundle(project: Project, ...args: readonly string[]): Promise<Finished> {
  return project.run("--enable-source-maps", mainOf(project), ...args);
}

interface SourceMap {
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly string[];
  readonly mappings: string;
}

/** Returns the bundle with `OrderService` and its source map. */
export async function bundleOf(project: Project): Promise<{ code: string; map: SourceMap }> {
  const file = mainOf(project);
  const map = JSON.parse(await project.read(`${file}.map`)) as SourceMap;
  return { code: await project.read(file), map };
}

function mainOf(project: Project): string {
  const file = ["dist/main.js", "dist/main.mjs"].find((path) => existsSync(project.path(path)));
  if (file === undefined) throw new Error("nothing was built");
  return file;
}
