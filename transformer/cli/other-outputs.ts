import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type { OtherOutput } from "../verify/bundled-copies";
import { settingThatPreventsOutput } from "../verify/check";
import { outputFiles } from "../verify/outputs";
import type { Project } from "../verify/project";
import { UsageError } from "../terminal/usage-error";

// The output that runs may come from a bundler, although TypeScript compiled the libraries, too. Then no tsconfig describes that output.

/**
 * Returns the output of the projects' packages: `outDir`, and the files that a package.json, its scripts, or a configuration of Nx name.
 *
 * @param writers the projects whose output TypeScript has written
 */
export function otherOutputs(
  projects: readonly Project[],
  writers: readonly Project[],
  cwd: string,
): OtherOutput[] {
  const sources = new Set(projects.flatMap((project) => project.sources.map((path) => resolve(path))));
  const written = writers.flatMap(outDirOf);
  const users = new Set(usersOfTags(projects));
  const outputs = projects.flatMap((project) => {
    const isUnwritten = settingThatPreventsOutput(project) !== undefined && users.has(project);
    return [...outDirOf(project), ...packagesOf(project).flatMap(outputsNamedIn)].map((path) => ({
      path,
      isByAnotherTool: isUnwritten && !written.some((dir) => isInside(dir, path) || isInside(path, dir)),
    }));
  });
  const byPath = new Map<string, OtherOutput>();
  for (const output of outputs.toSorted((a, b) => Number(a.isByAnotherTool) - Number(b.isByAnotherTool))) {
    const holdsSources = [...sources].some((source) => isInside(source, output.path));
    if (!holdsSources && hasJavaScript(output.path, cwd)) byPath.set(output.path, output);
  }
  return [...byPath.values()];
}

function outDirOf({ config, options: { outDir } }: Project): string[] {
  return outDir === undefined ? [] : [resolve(dirname(config), outDir)];
}

function hasJavaScript(path: string, cwd: string): boolean {
  if (/[\\/]node_modules[\\/]/.test(path) || !existsSync(path)) return false;
  try {
    return outputFiles([path], cwd).length > 0;
  } catch (error) {
    if (error instanceof UsageError) return false;
    throw error;
  }
}

/** Whether the path is the other one, or is in it. */
function isInside(path: string, other: string): boolean {
  return !relative(other, path).startsWith("..");
}

// ---- the packages ---------------------------------------------------------------------------------------

/** Returns the directories of the packages to which the project and its sources belong. */
function packagesOf({ config, sources }: Project): string[] {
  // TypeScript 7 also lists the declaration files of linked packages.
  const written = sources.filter((path) => !/\.d\.[cm]?ts$/.test(path));
  const directories = new Set([config, ...written].map((file) => dirname(resolve(file))));
  const found = [...directories].flatMap((directory) => packageAround(directory) ?? []);
  return [...new Set(found)];
}

function packageAround(directory: string): string | undefined {
  for (let dir = directory; ; dir = dirname(dir)) {
    if (existsSync(join(dir, "package.json")) || existsSync(join(dir, "project.json"))) return dir;
    if (dir === dirname(dir)) return undefined;
  }
}

/** Returns the projects that have tags, or that import a package of such a project, directly or through others. */
function usersOfTags(projects: readonly Project[]): Project[] {
  const users = projects.filter(({ files }) => files.length > 0);
  const others = projects.filter((project) => !users.includes(project));
  const texts = new Map(others.map((project) => [project, textsOf(project)] as const));
  for (const user of users) {
    const names = packagesOf(user).flatMap((dir) => manifestIn(dir).name ?? []);
    const paths = new Set(user.files.map(({ source }) => source.fileName));
    for (const [other, all] of texts) {
      const imports = names.some((name) => all.some((text) => namesPackage(text, name)));
      if (!imports && !other.sources.some((path) => paths.has(path))) continue;
      texts.delete(other);
      users.push(other); // The loop visits it, too.
    }
  }
  return users;
}

function textsOf({ sources }: Project): string[] {
  return sources.filter((path) => !path.endsWith(".json")).map((path) => textOf(path));
}

function namesPackage(text: string, name: string): boolean {
  return [`"${name}"`, `'${name}'`, `"${name}/`, `'${name}/`].some((specifier) => text.includes(specifier));
}

// ---- what they name -------------------------------------------------------------------------------------

interface Manifest extends Targets {
  readonly name?: string;
  readonly main?: unknown;
  readonly module?: unknown;
  readonly bin?: unknown;
  readonly exports?: unknown;
  readonly scripts?: Readonly<Record<string, unknown>>;
  readonly nx?: Targets;
}

interface Targets {
  readonly targets?: Readonly<Record<string, Target | null>>;
}

interface Target {
  readonly options?: { readonly outputPath?: unknown };
  readonly configurations?: Readonly<Record<string, { readonly outputPath?: unknown } | null>>;
}

/** Returns the directories and files that the package names as its output. They may not exist. */
function outputsNamedIn(dir: string): string[] {
  const { main, module, bin, exports, scripts = {}, nx } = manifestIn(dir);
  const entries = [main, module, bin, exports].flatMap(stringsIn).filter((path) => JAVASCRIPT.test(path));
  const named = Object.values(scripts).flatMap((script) =>
    [...String(script).matchAll(OUTPUT)].map(([, path = ""]) => path),
  );
  const files = [...entries, ...named]
    .map((path) => resolve(dir, path))
    .filter((path) => isInside(path, dir));
  return [
    ...files.map((path) => (JAVASCRIPT.test(path) && dirname(path) !== dir ? dirname(path) : path)),
    ...[nx, projectIn(dir)].flatMap((one) => outputsOfNx(dir, one)),
  ];
}

const JAVASCRIPT = /\.[cm]?js$/;
/** Matches the output in `esbuild src/main.ts --outfile=dist/main.js`, and what `node dist/main.js` runs. */
const OUTPUT = /(?:--out(?:file|dir|-dir)[\s=]+|(?<![\w./-])node\s+(?:-\S+\s+)*)["']?([\w@./\\-]+)/g;

function outputsOfNx(dir: string, settings: Targets | undefined): string[] {
  const root = workspaceOfNx(dir);
  if (root === undefined) return [];
  return Object.values(settings?.targets ?? {})
    .flatMap((target) => Object.values(target?.configurations ?? {}).concat(target?.options ?? {}))
    .flatMap((options) => stringsIn(options?.outputPath))
    .map((path) => resolve(root, path.replace("{workspaceRoot}/", "").replace("{projectRoot}", dir)));
}

function workspaceOfNx(directory: string): string | undefined {
  for (let dir = directory; ; dir = dirname(dir)) {
    if (existsSync(join(dir, "nx.json"))) return dir;
    if (dir === dirname(dir)) return undefined;
  }
}

/** Returns all strings in a value of JSON. */
function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}

function manifestIn(dir: string): Manifest {
  return jsonIn(join(dir, "package.json"));
}

function projectIn(dir: string): Targets {
  return jsonIn(join(dir, "project.json"));
}

/** Returns the object in the file, or an empty one if there is none. */
function jsonIn(file: string): object {
  try {
    return Object(JSON.parse(textOf(file))) as object;
  } catch {
    return {};
  }
}

function textOf(file: string): string {
  return statSync(file, { throwIfNoEntry: false })?.isFile() === true ? readFileSync(file, "utf8") : "";
}
