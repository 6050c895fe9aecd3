import { dirname, join, parse, relative, resolve } from "node:path";
import type { SourceMap } from "../../text/source-map";
import type { NativeProject } from "./project";

/**
 * Applies the `sourceRoot` and `mapRoot` of a project to its output, like the compiler. In the mirror, the compiler runs without the two.
 * With them, its maps would name files that exist only in the mirror, or not identify the file.
 */
export class MapRoots {
  readonly #sourceRoot: string;
  readonly #mapRoot: string;
  /** The root directory of the sources. The output repeats the directory structure below it. */
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
   * @param sources the sources of the map as absolute paths
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

  /** Returns the code with a last line that names the location of its map. */
  applyToCode(code: string, path: string, source: string): string {
    if (this.#mapRoot === "") return code;
    return code.replace(MAP_NAME, (name) => {
      const map = this.#mapDirOf(source) + decodeURI(name);
      return encodeURI(isRooted(this.#mapRoot) ? map : relativeUrl(dirname(path), map));
    });
  }

  /** Returns the directory of the map of a source. With `mapRoot`, the map directory repeats the directory structure of the sources. */
  #mapDirOf(source: string): string {
    const subdirectory = withSlashes(relative(this.#rootDir, dirname(source)));
    const mapDir = this.#mapRoot + (subdirectory && `${subdirectory}/`);
    return isRooted(mapDir) ? mapDir : join(this.#rootDir, mapDir);
  }
}

const MAP_NAME = /(?<=\n\/\/# sourceMappingURL=)(?!data:)\S+(?=\s*$)/;

/** Whether the path is absolute or a URL. */
function isRooted(path: string): boolean {
  return /^(?:\/|[a-z][\w+.-]*:\/)/i.test(path);
}

function isUrl(path: string): boolean {
  return /^[a-z][\w+.-]+:\/\//i.test(path);
}

/** Returns the directory of a setting with a trailing slash, or an empty string if it is not set. */
function directoryIn(setting: unknown): string {
  if (typeof setting !== "string" || setting === "") return "";
  return withSlashes(setting).replace(/\/?$/, "/");
}

/** Returns the path of a file relative to a directory, or the URL of the file if there is no relative path. */
function relativeUrl(dir: string, file: string): string {
  const isElsewhere = isUrl(dir) || withSlashes(parse(dir).root) !== withSlashes(parse(file).root);
  const path = withSlashes(file);
  if (isElsewhere) return path.startsWith("/") ? `file://${path}` : `file:///${path}`;
  return withSlashes(relative(dir, file));
}

function withSlashes(path: string): string {
  return path.replaceAll("\\", "/");
}
