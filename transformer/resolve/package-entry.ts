import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import * as nodeModule from "node:module";
import { basename, dirname, join, resolve, sep } from "node:path";

// Node and a type checker may read different files of a package, because `types`, or a condition of its own, may lead the type checker
// elsewhere. A package that is linked into `node_modules` lies outside of it, where Node runs TypeScript, too.

const TYPESCRIPT = /(?<!\.d)\.[cm]?tsx?$/;
const JAVASCRIPT = /\.[cm]?jsx?$/;

export function isTypeScript(file: string): boolean {
  return TYPESCRIPT.test(file);
}

/** Returns the file that Node loads for a package's specifier in a module of that directory. The file may not exist. */
export function packageEntry(specifier: string, from: string): string | undefined {
  const [, name = "", subpath = ""] = /^((?:@[^/]+\/)?[^./@#:][^/:]*)(\/.*)?$/.exec(specifier) ?? [];
  const dir = name === "" ? undefined : packageAt(name, from);
  if (dir === undefined) return undefined;
  const { exports, main } = manifestIn(dir);
  const target =
    exports === undefined
      ? subpath.slice(1) || main || "index.js"
      : targetOf(entryFor(`.${subpath}`, exports));
  return target === undefined ? undefined : resolve(dir, target);
}

/**
 * Returns the JavaScript beside the exported file that may have been compiled from the source: the files of its name, or all files there,
 * if a bundler has put many sources into one file. Returns nothing if the package is not built.
 */
export function javaScriptsOf(source: string, entryFile: string): string[] {
  const dir = dirname(entryFile);
  if (!existsSync(dir)) return [];
  const all = readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((file) => JAVASCRIPT.test(file) && !file.split(sep).includes("node_modules"))
    .map((file) => join(dir, file));
  const name = basename(source).replace(TYPESCRIPT, "");
  const ofName = all.filter((file) => basename(file).replace(JAVASCRIPT, "") === name);
  return ofName.length > 0
    ? ofName
    : all.toSorted((a, b) => Number(b === entryFile) - Number(a === entryFile));
}

function packageAt(name: string, from: string): string | undefined {
  const dirByPnp = packageByPnp(name, from);
  if (dirByPnp !== undefined) return dirByPnp;
  for (let dir = from; ; dir = dirname(dir)) {
    const found = join(dir, "node_modules", name);
    if (existsSync(join(found, "package.json"))) return realpathSync(found);
    if (dir === dirname(dir)) return undefined;
  }
}

interface PnpApi {
  resolveToUnqualified(request: string, issuer: string): string | null;
}

/**
 * Returns the directory of a package that Yarn Plug'n'Play knows. Yarn creates no `node_modules`, but loads its API into each process.
 *
 * @param from the directory of the importing file
 */
export function packageByPnp(name: string, from: string): string | undefined {
  const { findPnpApi } = nodeModule as { readonly findPnpApi?: (path: string) => PnpApi | null };
  const importer = from + sep;
  try {
    return findPnpApi?.(importer)?.resolveToUnqualified(name, importer) ?? undefined;
  } catch {
    return undefined; // The importer does not depend on that package.
  }
}

interface Manifest {
  readonly exports?: unknown;
  readonly main?: string;
}

function manifestIn(dir: string): Manifest {
  try {
    return JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) as Manifest;
  } catch {
    return {};
  }
}

interface Entry {
  readonly target: unknown;
  /** The text that the `*` stands for. */
  readonly star: string;
}

function entryFor(subpath: string, exports: unknown): Entry | undefined {
  const hasSubpaths =
    typeof exports === "object" &&
    exports !== null &&
    Object.keys(exports).every((key) => key.startsWith("."));
  if (!hasSubpaths) return subpath === "." ? { target: exports, star: "" } : undefined;
  const entries = Object.entries(exports) as [string, unknown][];
  const exact = entries.find(([key]) => key === subpath);
  if (exact !== undefined) return { target: exact[1], star: "" };
  const fitting = entries.flatMap(([key, target]) => {
    const [start = "", end] = key.split("*");
    const fits = end !== undefined && subpath.startsWith(start) && subpath.endsWith(end);
    return fits ? [{ start, target, star: subpath.slice(start.length, subpath.length - end.length) }] : [];
  });
  return fitting.toSorted((a, b) => b.start.length - a.start.length)[0];
}

const CONDITIONS: ReadonlySet<string> = new Set(["node", "import", "module-sync", "require", "default"]);

function targetOf(entry: Entry | undefined): string | undefined {
  if (entry === undefined) return undefined;
  const { target, star } = entry;
  if (typeof target === "string") return target.replaceAll("*", star);
  if (typeof target !== "object" || target === null) return undefined;
  const inner = Object.entries(target).filter(([key]) => Array.isArray(target) || CONDITIONS.has(key));
  for (const [, each] of inner) {
    const found = targetOf({ target: each, star });
    if (found !== undefined) return found;
  }
  return undefined;
}
