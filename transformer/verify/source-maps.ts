import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** A source that a file was compiled from. */
export interface MappedSource {
  readonly path: string;
  /** The text of the source, if the map contains it. */
  readonly content: string | undefined;
}

/**
 * Returns the sources that a file was compiled from. Installed packages are skipped, because they are many, and rarely contain the sources
 * of their maps.
 */
export function mappedSources(file: Compiled): MappedSource[] {
  return sourceMapOf(file).sources;
}

/** A compiled file, such as JavaScript or declarations. */
interface Compiled {
  readonly fileName: string;
  readonly text: string;
}

export interface SourceMapOfFile {
  readonly sources: MappedSource[];
  /** The encoded positions. */
  readonly mappings: string;
}

/** Returns the source map of a file, inline or in a file of its own. Without one, there are no sources. */
export function sourceMapOf({ fileName, text }: Compiled): SourceMapOfFile {
  const url = /[\\/]node_modules[\\/]/.test(fileName) ? undefined : mapUrlIn(text);
  if (url === undefined) return NO_MAP;
  const dir = dirname(fileName);
  if (url.startsWith("data:")) return readMap(textOfDataUrl(url), dir);
  const map = pathIn(dir, url);
  return map === undefined || !existsSync(map) ? NO_MAP : readMap(readFileSync(map, "utf8"), dirname(map));
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

const NO_MAP: SourceMapOfFile = { sources: [], mappings: "" };

function readMap(map: string, dir: string): SourceMapOfFile {
  const { sourceRoot, sources, sourcesContent, mappings } = sourceMapIn(map);
  const root = typeof sourceRoot === "string" ? pathIn(dir, sourceRoot) : dir;
  if (root === undefined || !Array.isArray(sources)) return NO_MAP;
  const contents: readonly unknown[] = Array.isArray(sourcesContent) ? sourcesContent : [];
  return {
    sources: sources.map((source, index) => {
      const content = contents[index];
      return {
        path: pathIn(root, String(source)) ?? String(source),
        content: typeof content === "string" ? content : undefined,
      };
    }),
    mappings: typeof mappings === "string" ? mappings : "",
  };
}

type SourceMapFields = Partial<Record<"sourceRoot" | "sources" | "sourcesContent" | "mappings", unknown>>;

function sourceMapIn(text: string): SourceMapFields {
  try {
    return Object(JSON.parse(text)) as SourceMapFields;
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
