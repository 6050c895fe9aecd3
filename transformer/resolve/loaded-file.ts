import { existsSync, realpathSync, statSync } from "node:fs";
import { builtinModules, createRequire } from "node:module";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Parser } from "../parser/parser";
import { isInstalled } from "./installed";
import { packageEntry } from "./package-entry";
import { sourceAt, specifiersIn } from "./specifiers";

// Finds the file that Node runs for an import. A compiler may read a different file for the same import: see `CompiledFiles`.

/** Returns the file that Node loads for a specifier, or `undefined` for a module without a file. The file may not exist. */
export function loadedFile(specifier: string, importer: string): string | undefined {
  if (specifier.startsWith("node:") || builtinModules.includes(specifier)) return undefined;
  if (/^(?:\.{0,2}\/|file:)/.test(specifier)) {
    return onDisk(fileURLToPath(new URL(specifier, pathToFileURL(importer))));
  }
  const file = loadedFromPackage(specifier, importer);
  if (file !== undefined) return onDisk(file);
  return resolvedFrom(importer, specifier); // A `#name` of the package, or the package itself. Node reports what it does not find.
}

function onDisk(file: string): string {
  return existsSync(file) ? realpathSync(file) : file;
}

/** Returns the file that Node loads from a package, or `undefined` if the specifier names no package. The file may not exist. */
export function loadedFromPackage(specifier: string, importer: string): string | undefined {
  return packageEntry(specifier, dirname(importer));
}

/**
 * Returns a function that finds what Node loads from packages, or by an absolute path. It looks each package up once for all importers below
 * the same `node_modules`.
 */
export function packageResolver(): (specifier: string, importer: string) => string | undefined {
  const roots = new Map<string, string>();
  const rootOf = (dir: string): string => {
    const known = roots.get(dir);
    if (known !== undefined) return known;
    const parent = dirname(dir);
    const root = parent === dir || existsSync(join(dir, "node_modules")) ? dir : rootOf(parent);
    roots.set(dir, root);
    return root;
  };
  const isPnp = process.versions["pnp"] !== undefined; // Yarn Plug'n'Play has no `node_modules`.
  const loaded = new Map<string, string | undefined>();
  return (specifier, importer) => {
    if (isAbsolute(specifier)) return specifier;
    const dir = dirname(importer);
    const from = isPnp ? dir : rootOf(dir);
    const key = `${from}\0${specifier}`;
    if (!loaded.has(key)) loaded.set(key, packageEntry(specifier, from));
    return loaded.get(key);
  };
}

/** Returns the file that `require()` finds for an ID in a file or a directory that ends with a slash, or `undefined` if there is none. */
export function resolvedFrom(importer: string, id: string): string | undefined {
  try {
    return createRequire(importer).resolve(id);
  } catch {
    return undefined;
  }
}

// ---- files that an import runs in turn --------------------------------------------------------------------

/** Returns the files of the workspace that run when this file is imported. The file itself comes first. */
export function filesBehind(ts: Parser, first: string): string[] {
  const files = new Set(isOwnFile(first) ? [first] : []);
  for (const file of files) {
    for (const { text } of specifiersIn(sourceAt(ts, file))) {
      const next = text.startsWith(".")
        ? fileAt(resolve(dirname(file), text))
        : loadedFromPackage(text, file);
      if (next !== undefined && isOwnFile(next)) files.add(next);
    }
  }
  return [...files];
}

const SCRIPT = /\.([cm]?)[jt]sx?$/;
const EXTENSIONS = ["", ".ts", ".tsx", ".js", ".jsx", "/index.ts", "/index.js"];

/** Returns the file that a path leads to. It may have the extension of the output, or none. */
function fileAt(path: string): string | undefined {
  const asTypeScript = [".$1ts", ".tsx"].map((extension) => path.replace(SCRIPT, extension));
  return [...EXTENSIONS.map((extension) => path + extension), ...asTypeScript].find(isFile);
}

function isOwnFile(path: string): boolean {
  return SCRIPT.test(path) && !isInstalled(path) && isFile(path);
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
