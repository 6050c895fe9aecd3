import { dirname, join, parse, relative, resolve } from "node:path";
import type { SourceMap } from "../../text/source-map";
import type { NativeProject } from "./project";

/**
 * The `sourceRoot` and `mapRoot` of a project, written into its output as the compiler writes them. The compiler runs
 * without the two in the mirror: with them, its maps name files that only the mirror has, or do not say which file.
 */
export class MapRoots {
  readonly #sourceRoot: string;
  readonly #mapRoot: string;
  /** The output repeats the directories below this one. */
  readonly #rootDir: string;

  constructor({ options, config }: Pick<NativeProject, "options" | "config">) {
    this.#sourceRoot = directoryIn(options["sourceRoot"]);
    this.#mapRoot = directoryIn(options["mapRoot"]);
    const rootDir = options["rootDir"];
    this.#rootDir = resolve(dirname(config), typeof rootDir === "string" ? rootDir : ".");
  }

  /**
   * Returns the map with the settings of the project.
   *
   * @param sources of the map, as absolute paths
   */
  applyToMap(map: SourceMap, sources: readonly string[]): SourceMap {
    const { sourceRoot = "" } = map;
    if (this.#sourceRoot === "" && this.#mapRoot === "") return map;
    return {
      ...map,
      sourceRoot: this.#sourceRoot || sourceRoot,
      sources: sources.map((source) =>
        relativeUrl(this.#sourceRoot === "" ? this.#mapDirOf(source) : this.#rootDir, source),
      ),
    };
  }

  /** Returns the code with a last line that names the place of its map. */
  applyToCode(code: string, path: string, source: string): string {
    if (this.#mapRoot === "") return code;
    return code.replace(MAP_NAME, (name) => {
      const map = this.#mapDirOf(source) + decodeURI(name);
      return encodeURI(isRooted(this.#mapRoot) ? map : relativeUrl(dirname(path), map));
    });
  }

  /** Maps in one directory of their own repeat the directories of their sources there. */
  #mapDirOf(source: string): string {
    const around = withSlashes(relative(this.#rootDir, dirname(source)));
    const mapDir = this.#mapRoot + (around && `${around}/`);
    return isRooted(mapDir) ? mapDir : join(this.#rootDir, mapDir);
  }
}

const MAP_NAME = /(?<=\n\/\/# sourceMappingURL=)(?!data:)\S+(?=\s*$)/;

/** An absolute path, or a URL. */
function isRooted(path: string): boolean {
  return /^(?:\/|[a-z][\w+.-]*:\/)/i.test(path);
}

function isUrl(path: string): boolean {
  return /^[a-z][\w+.-]+:\/\//i.test(path);
}

/** The directory of a setting, which ends with a slash. An empty string without the setting. */
function directoryIn(setting: unknown): string {
  if (typeof setting !== "string" || setting === "") return "";
  return withSlashes(setting).replace(/\/?$/, "/");
}

/** A path from a directory. It is the URL of the file if no path leads there. */
function relativeUrl(dir: string, file: string): string {
  const isElsewhere = isUrl(dir) || withSlashes(parse(dir).root) !== withSlashes(parse(file).root);
  const path = withSlashes(file);
  if (isElsewhere) return path.startsWith("/") ? `file://${path}` : `file:///${path}`;
  return withSlashes(relative(dir, file));
}

function withSlashes(path: string): string {
  return path.replaceAll("\\", "/");
}
