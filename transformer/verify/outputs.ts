import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { UsageError } from "../terminal/usage-error";

/**
 * Returns the files that the paths name: a file, the JavaScript in a directory, or the matches of a glob. Files in `node_modules` are never
 * the output of a build.
 *
 * @throws {UsageError} when a path names nothing
 */
export function outputFiles(paths: readonly string[], cwd: string): string[] {
  const files = paths.flatMap((path) => {
    const found = filesAt(path, cwd);
    if (found.length === 0) throw new UsageError(`No JavaScript file matches \`--output ${path}\`.`);
    return found;
  });
  return [...new Set(files)];
}

/** Returns the text of the file, or `undefined` if there is none. */
export function readOutput(file: string): string | undefined {
  return isFile(file) ? readFileSync(file, "utf8") : undefined;
}

/** Returns the path for messages. */
export function shortPath(path: string, cwd: string): string {
  return slashed(relative(cwd, path));
}

const JAVASCRIPT = /\.[cm]?jsx?$/;

function filesAt(path: string, cwd: string): string[] {
  const full = resolve(cwd, path);
  if (isFile(full)) return [full];
  if (isDirectory(full)) return filesUnder(full).filter((file) => JAVASCRIPT.test(file));
  const [fixed = ""] = path.split(/[*?{]/);
  const isGlob = fixed.length < path.length;
  const root = resolve(cwd, fixed.replace(/[^\\/]*$/, "") || ".");
  if (!isGlob || !isDirectory(root)) return [];
  const pattern = globPattern(slashed(resolve(cwd, path)));
  return filesUnder(root).filter((file) => pattern.test(slashed(file)));
}

function filesUnder(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (isDirectory(path)) return entry.name === "node_modules" ? [] : filesUnder(path);
    return isFile(path) ? [path] : [];
  });
}

function slashed(path: string): string {
  return path.split(sep).join("/");
}

/** Returns the pattern of a glob. `**` stands for directories, `*` and `?` for characters of a name, and `{a,b}` for one of several. */
function globPattern(glob: string): RegExp {
  const source = glob.replaceAll(/\*\*\/|\*|\?|\{([^{}]*)\}|[^*?{]+|\{/g, (part, names?: string) => {
    if (part === "**/") return "(?:.*/)?";
    if (part === "*") return "[^/]*";
    if (part === "?") return "[^/]";
    return names === undefined
      ? escapeForPattern(part)
      : `(?:${names.split(",").map(escapeForPattern).join("|")})`;
  });
  return new RegExp(`^${source}$`);
}

function escapeForPattern(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
