import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { shortPath } from "../verify/outputs";
import type { Project } from "../verify/project";
import { UsageError } from "../terminal/usage-error";
import { projectPathsIn } from "./workspace/project-option";

/** Returns other projects that may compile the tagged files of a project, with the projects that they reference. */
export function alternativesOf(project: Project, open: (config: string) => Project[]): Project[] {
  const projects = configsNear(project).flatMap((config) => opened(config, open));
  return [...new Map(projects.map((one) => [one.config, one])).values()];
}

function opened(config: string, open: (config: string) => Project[]): Project[] {
  try {
    return open(config);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return []; // A tsconfig that cannot be read has not built anything.
  }
}

/** Finds each tsconfig between the tagged files and the project's own, and those that the scripts name. */
function configsNear({ config, files }: Project): string[] {
  const root = dirname(config);
  const directories = new Set([root]);
  for (const { source } of files) {
    for (
      let dir = dirname(resolve(source.fileName));
      !relative(root, dir).startsWith("..");
      dir = dirname(dir)
    ) {
      if (directories.has(dir)) break;
      directories.add(dir);
    }
  }
  const found = [...directories].flatMap((dir) => configsIn(dir));
  return [...new Set([...found, ...configsNamedIn(root)])].filter((path) => path !== config).toSorted();
}

/** Matches `tsconfig.json`, `tsconfig.build.json`, and `tsconfig-esm.json`. */
const CONFIG = /^tsconfig(?:[.-].+)?\.json$/;

function configsIn(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => CONFIG.test(name))
    .map((name) => join(dir, name));
}

/** Returns the tsconfig files that the scripts of package.json and the NestJS configuration name. */
function configsNamedIn(dir: string): string[] {
  const scripts = textOf(join(dir, "package.json")).replaceAll(String.raw`\\`, "/");
  const named = [
    ...projectPathsIn(scripts),
    ...Array.from(
      textOf(join(dir, "nest-cli.json")).matchAll(/"tsConfigPath"\s*:\s*"([^"]+)"/g),
      ([, path = ""]) => path,
    ),
  ];
  return named
    .filter((path) => path !== "")
    .flatMap((path) =>
      [resolve(dir, path), resolve(dir, path, "tsconfig.json")].filter(
        (file) => file.endsWith(".json") && existsSync(file),
      ),
    );
}

function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** Formats the paths of the projects for a message, as `-p` accepts them. */
export function namesOf(projects: readonly Project[], cwd: string): string {
  return projects.map(({ config }) => `\`${shortPath(config, cwd)}\``).join(", ");
}
