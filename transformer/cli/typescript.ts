import { createRequire } from "node:module";
import { dirname, resolve } from "node:path";
import { existsSync } from "node:fs";
import { compilingTypeScript } from "../hosts/native/compiler";
import { configFiles } from "../hosts/native/config";
import {
  installedTypeScripts,
  isPath,
  typeScriptCalled,
  type InstalledTypeScript,
} from "../hosts/native/installed";
import { entryIn } from "../hosts/native/project";
import type { Compiler } from "../hosts/ts-patch/compiler";
import { packageManagerFor } from "./workspace/package-manager";
import { parser } from "../parser/parser";
import { UsageError } from "../terminal/usage-error";

// Chooses the TypeScript for a command: the one that compiles the project, and one with a JavaScript API. TypeScript 7 has no JavaScript
// API, so many projects have two, and either may be called `typescript`.

interface Compiling {
  readonly installed: InstalledTypeScript | undefined;
  /** Whether the command line or tsconfig.json chose it. */
  readonly isChosen: boolean;
}

/**
 * Returns the TypeScript that compiles the project.
 *
 * @param option the value of `--typescript`
 * @throws {UsageError} if the chosen TypeScript is missing or not supported
 */
export function compilingFor(config: string, option: string | undefined, cwd: string): Compiling {
  const named = option === undefined ? namedIn(config) : { name: option, dir: cwd };
  if (named === undefined) return { installed: compilingTypeScript(config), isChosen: false };
  const { name, dir } = named;
  const installed = typeScriptCalled(isPath(name) ? resolve(dir, name) : name, config);
  if (installed === undefined || !isSupported(installed.version)) {
    const found = installed === undefined ? "is not installed" : `is TypeScript ${installed.version}`;
    throw new UsageError(
      `\`${name}\` ${found}. Lockweave needs TypeScript 5.9 or later. ${foundNear(config)} Fix: install TypeScript 5.9 or later, or name another package with \`--typescript\`.`,
    );
  }
  return { installed, isChosen: true };
}

/** Returns the TypeScript that the plugin's entry in tsconfig.json chooses. */
function namedIn(config: string): { readonly name: string; readonly dir: string } | undefined {
  const found = existsSync(config) ? entryIn(configFiles(parser(), config)) : undefined;
  const name = found?.entry.typescript;
  return found === undefined || typeof name !== "string" ? undefined : { name, dir: dirname(found.path) };
}

function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major >= 6 || (major === 5 && minor >= 9);
}

/**
 * Returns a JavaScript API: that of the chosen TypeScript, of the project, or of Lockweave's own installation.
 *
 * @throws {UsageError} if there is none
 */
export function apiFor(config: string, chosen: InstalledTypeScript | undefined): Compiler {
  const ts = chosen === undefined ? (apiNear(config) ?? apiNear(__filename)) : apiIn(chosen.dir);
  if (ts !== undefined) return ts;
  const isAlone = installedTypeScripts(config).length === 0;
  const install = [
    ...packageManagerFor(dirname(config)).installDev,
    isAlone ? "typescript@6" : "typescript6@npm:typescript@6",
  ];
  throw new UsageError(
    `This command needs the JavaScript API of TypeScript 5.9 or 6. ${foundNear(config)} Fix: run \`${install.join(" ")}\`, or name another TypeScript with \`--typescript\`.`,
  );
}

/** Returns the API of `typescript`, or of a TypeScript that the project has installed under another name. */
export function apiNear(config: string): Compiler | undefined {
  const usual = apiIn("typescript", config);
  if (usual !== undefined) return usual;
  for (const { dir } of installedTypeScripts(config)) {
    const found = apiIn(dir);
    if (found !== undefined) return found;
  }
  return undefined;
}

function apiIn(id: string, from = __filename): Compiler | undefined {
  try {
    const ts = createRequire(from)(id) as Partial<Compiler>;
    const { version = "", createProgram } = ts;
    return createProgram !== undefined && isSupported(version) && Number.parseInt(version, 10) < 7
      ? (ts as Compiler)
      : undefined;
  } catch {
    return undefined;
  }
}

function foundNear(config: string): string {
  const all = installedTypeScripts(config).map(({ name, version, major }) => {
    const why = major >= 7 ? " (no JavaScript API)" : isSupported(version) ? "" : " (too old)";
    return `\`${name}\` ${version}${why}`;
  });
  return all.length === 0 ? "The project has no TypeScript." : `The project has ${all.join(", ")}.`;
}
