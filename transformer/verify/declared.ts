import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { declaredTags, tagsOfSource, type DeclaredTag } from "../read/declared-tags";
import { mayHaveTags } from "../read/spelling";
import { locksIn, type Lock } from "./locks";

/** Tags whose JavaScript does not contain their locks. */
export interface Unlocked {
  readonly javaScript: string;
  readonly tags: readonly DeclaredTag[];
}

/** Matches the refusal in the output of a woven build that reported an error. A function that could not be woven there throws. */
const HAS_REFUSAL = /: LW\d{4}: .*refuses to run unlocked\./;

/**
 * Compares the tags of a declaration file with the JavaScript beside it. A build that ignored the weave leaves the comments, and no locks.
 * If the file's source map leads to sources, their tags count, too, such as those of private members and those in removed comments.
 *
 * @param code the JavaScript, if it is known already
 */
export function unlockedIn(ts: Parser, declarations: TS.SourceFile, code?: string): Unlocked | undefined {
  const declared = mayHaveTags(declarations.text) ? declaredTags(ts, declarations) : [];
  const ofSources = mappedSources(declarations).flatMap((source) => tagsInFile(ts, source));
  // Declarations may be older than their sources.
  const others = declared.filter(({ flag }) => ofSources.every((tag) => tag.flag !== flag));
  return unlockedOf(ts, [...ofSources, ...others], javaScriptBeside(declarations.fileName), code);
}

/** Returns the tags that the JavaScript does not lock, or `undefined` if there are none, or if there is no JavaScript. */
export function unlockedOf(
  ts: Parser,
  all: readonly DeclaredTag[],
  javaScript: string,
  known?: string,
): Unlocked | undefined {
  if (all.length === 0 || (known === undefined && !existsSync(javaScript))) return undefined;
  const code = known ?? readFileSync(javaScript, "utf8");
  if (HAS_REFUSAL.test(code)) return undefined;
  const tags = notLockedBy(all, locksIn(ts, javaScript, code).locks);
  return tags.length === 0 ? undefined : { javaScript, tags };
}

/**
 * Returns the tags that no file locks, if a file contains the name of their function, because a bundler leaves out code that nobody
 * exports. Returns `undefined` if there are no such tags, or no files.
 */
export function unlockedInAll(
  ts: Parser,
  all: readonly DeclaredTag[],
  files: readonly string[],
): Unlocked | undefined {
  let tags = all;
  for (const file of files) tags = unlockedOf(ts, tags, file)?.tags ?? [];
  const texts = files.map((file) => readFileSync(file, "utf8"));
  const named = tags.filter(({ name }) => {
    const called = name?.split(".").at(-1) ?? "";
    return texts.some((text) => text.includes(called));
  });
  const [javaScript] = files;
  return named.length === 0 || javaScript === undefined ? undefined : { javaScript, tags: named };
}

/** Returns the tags without a lock among these. */
export function notLockedBy(tags: readonly DeclaredTag[], locks: readonly Lock[]): DeclaredTag[] {
  return tags.filter(
    ({ flag, name }) =>
      !locks.some(
        ({ site, options }) =>
          (options.get("businessFlag") ?? options.get("key")) === flag &&
          (name === undefined || site === name),
      ),
  );
}

/** The tags of each source that was read. A build of many projects reads the sources of shared projects again and again. */
const tagsBySource = new Map<string, { readonly changedAt: number; readonly tags: readonly DeclaredTag[] }>();

export function tagsInFile(ts: Parser, source: string): readonly DeclaredTag[] {
  const changedAt = statSync(source, { throwIfNoEntry: false })?.mtimeMs;
  if (changedAt === undefined) return [];
  const found = tagsBySource.get(source);
  if (found?.changedAt === changedAt) return found.tags;
  const tags = tagsOfSource(ts, source, readFileSync(source, "utf8"));
  tagsBySource.set(source, { changedAt, tags });
  return tags;
}

/**
 * Returns the sources that a file was compiled from. Installed packages are skipped, because they are many, and rarely contain the sources
 * of their maps.
 */
export function mappedSources({ fileName, text }: Pick<TS.SourceFile, "fileName" | "text">): string[] {
  const url = /[\\/]node_modules[\\/]/.test(fileName) ? undefined : mapUrlIn(text);
  if (url === undefined) return [];
  const dir = dirname(fileName);
  if (url.startsWith("data:")) return sourcesOf(textOfDataUrl(url), dir);
  const map = pathIn(dir, url);
  return map === undefined || !existsSync(map) ? [] : sourcesOf(readFileSync(map, "utf8"), dirname(map));
}

const MAP_URL = "sourceMappingURL=";

/** The URL of the last comment that names a source map, if no code follows it. */
function mapUrlIn(text: string): string | undefined {
  for (
    let at = text.lastIndexOf(MAP_URL);
    at !== -1;
    at = at === 0 ? -1 : text.lastIndexOf(MAP_URL, at - 1)
  ) {
    const [, mark] = /(\/[/*])[#@][ \t]*$/.exec(text.slice(Math.max(0, at - 10), at)) ?? [];
    if (mark === undefined) continue;
    const start = at + MAP_URL.length;
    const lengthOfUrl = text.slice(start).search(mark === "//" ? /\s|$/ : /\s|\*\/|$/);
    const url = text.slice(start, start + lengthOfUrl);
    if (url !== "") return hasNoCode(mark + text.slice(start + lengthOfUrl)) ? url : undefined;
  }
  return undefined;
}

/** Whether the text is only comments and white space. */
function hasNoCode(text: string): boolean {
  let rest = text.trimStart();
  while (rest !== "") {
    const end = rest.startsWith("//") ? "\n" : rest.startsWith("/*") ? "*/" : undefined;
    if (end === undefined) return false;
    const at = rest.indexOf(end, 2);
    if (at === -1) return true;
    rest = rest.slice(at + end.length).trimStart();
  }
  return true;
}

function textOfDataUrl(url: string): string {
  const comma = url.indexOf(",");
  const data = decoded(url.slice(comma + 1));
  return url.slice(0, comma).endsWith(";base64") ? Buffer.from(data, "base64").toString() : data;
}

function sourcesOf(map: string, dir: string): string[] {
  const { sourceRoot, sources } = sourceMapIn(map);
  const root = typeof sourceRoot === "string" ? pathIn(dir, sourceRoot) : dir;
  if (root === undefined || !Array.isArray(sources)) return [];
  return sources.map((source) => pathIn(root, String(source)) ?? "");
}

function sourceMapIn(text: string): { readonly sourceRoot?: unknown; readonly sources?: unknown } {
  try {
    return Object(JSON.parse(text)) as object;
  } catch {
    return {};
  }
}

/** The path that a source map means, by a path or a `file:` URL. `undefined` for other URLs. */
function pathIn(dir: string, name: string): string | undefined {
  try {
    if (name.startsWith("file:")) return fileURLToPath(name);
  } catch {
    return undefined;
  }
  if (/^[a-z][\w+.-]+:/i.test(name)) return undefined;
  const path = resolve(dir, name);
  return name.includes("%") && !existsSync(path) ? resolve(dir, decoded(name)) : path;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function javaScriptBeside(declarations: string): string {
  return declarations.replace(/\.d\.([cm]?)ts$/, ".$1js");
}
