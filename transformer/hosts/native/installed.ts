import { readFileSync, realpathSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { resolvedFrom } from "../../resolve/loaded-file";

/** A TypeScript that a project has installed. */
export interface InstalledTypeScript {
  /** The name by which the project depends on it: `typescript`, an alias, or a path. */
  readonly name: string;
  readonly dir: string;
  readonly version: string;
  readonly major: number;
  /** Whether it is the package `typescript` itself. `ts-patch` accepts no other. */
  readonly isOriginal: boolean;
  /** The path of the script that compiles: `tsc`, or the package's replacement for it. */
  readonly script: string | undefined;
  /** Whether the program is called `tsc`. `@typescript/typescript6` calls it `tsc6`, to leave that name to TypeScript 7. */
  readonly hasTsc: boolean;
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

/** The packages that are TypeScript, whatever name a project installs them under. */
const PACKAGES: ReadonlySet<string> = new Set([
  "typescript",
  "@typescript/typescript6",
  "@typescript/native-preview",
]);
const PROGRAMS = ["tsc", "tsc6", "tsgo"] as const;

/**
 * Finds `typescript`, and each dependency of the project or its workspace that is TypeScript under another name.
 *
 * @param from a file of the project
 */
export function installedTypeScripts(from: string): InstalledTypeScript[] {
  const usual = typeScriptCalled("typescript", from);
  const names = dependenciesAround(from).filter((name) => name !== "typescript");
  const aliases = [...new Set(names)].flatMap((name) => {
    const manifest = manifestOf(name, from);
    const isKnown = manifest !== undefined && PACKAGES.has(manifest.content.name ?? "");
    return isKnown ? [installedAt(name, manifest)] : [];
  });
  return usual === undefined ? aliases : [usual, ...aliases];
}

/** Returns the TypeScript with this name or at this path, or `undefined` if the package is not TypeScript. */
export function typeScriptCalled(name: string, from: string): InstalledTypeScript | undefined {
  const manifest = isPath(name) ? manifestAbove(resolve(dirname(from), name)) : manifestOf(name, from);
  if (manifest?.content.version === undefined) return undefined;
  return name === "typescript" || isTypeScript(manifest.content) ? installedAt(name, manifest) : undefined;
}

/** A fork has its own package name, but its program is still called `tsc`. */
function isTypeScript({ name = "", bin }: Manifest): boolean {
  return PACKAGES.has(name) || PROGRAMS.some((program) => bin?.[program] !== undefined);
}

export function isPath(name: string): boolean {
  return name.startsWith(".") || isAbsolute(name);
}

function installedAt(name: string, { path, content }: FoundManifest): InstalledTypeScript {
  const { version = "", bin } = content;
  const dir = dirname(path);
  const program = PROGRAMS.find((one) => bin?.[one] !== undefined);
  return {
    name,
    dir,
    version,
    major: Number.parseInt(version, 10),
    isOriginal: (content.name ?? "typescript") === "typescript",
    script: program && join(dir, bin?.[program] ?? ""),
    hasTsc: program === "tsc",
  };
}

/** Returns the dependencies that may be TypeScript, judging by package.json in this directory and in those above. */
function dependenciesAround(from: string): string[] {
  const names: string[] = [];
  for (let dir = dirname(from); ; dir = dirname(dir)) {
    const { dependencies = {}, devDependencies = {} } = manifestIn(dir)?.content ?? {};
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      // With a pnpm catalog, the version does not reveal the package behind the name.
      if (/typescript|^ts/.test(name) || /typescript|^catalog:/.test(version)) names.push(name);
    }
    if (dir === dirname(dir)) return names;
  }
}

interface FoundManifest {
  readonly path: string;
  readonly content: Manifest;
}

function manifestOf(name: string, from: string): FoundManifest | undefined {
  const path = resolvedFrom(from, `${name}/package.json`);
  return path === undefined ? undefined : manifestIn(dirname(path));
}

/** Returns the manifest for a path that names the package or a file in it, such as `lib/typescript.js`. */
function manifestAbove(path: string): FoundManifest | undefined {
  for (let dir = path; dir !== dirname(dir) && basename(dir) !== "node_modules"; dir = dirname(dir)) {
    const found = manifestIn(dir);
    if (found?.content.version !== undefined) return found;
  }
  return undefined;
}

function manifestIn(dir: string): FoundManifest | undefined {
  const path = join(dir, "package.json");
  try {
    return { path, content: JSON.parse(readFileSync(path, "utf8")) as Manifest };
  } catch {
    return undefined;
  }
}

/** Returns the TypeScript that `tsc` runs in the project's scripts. */
export function typeScriptOfTsc(from: string): InstalledTypeScript | undefined {
  for (let dir = dirname(from); ; dir = dirname(dir)) {
    const target = linkedScript(join(dir, "node_modules/.bin"), "tsc");
    if (target !== undefined) return typeScriptCalled(target, from);
    if (dir === dirname(dir)) return undefined;
  }
}

/** Returns the target of a program in `.bin`. It is a link, or on Windows and with pnpm a script that names its target. */
function linkedScript(dir: string, program: string): string | undefined {
  const path = join(dir, program);
  try {
    const target = realpathSync(path);
    if (target !== path && basename(dirname(target)) !== ".bin") return target;
    const [, named] = /"\$basedir\/((?!node")[^"]+)"/.exec(readFileSync(target, "utf8")) ?? [];
    return named === undefined ? undefined : realpathSync(join(dir, named));
  } catch {
    return undefined;
  }
}
