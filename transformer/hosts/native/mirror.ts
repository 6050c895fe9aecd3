import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, parse, relative, resolve, sep } from "node:path";
import type { Parser } from "../../parser/parser";
import { withoutDirectives } from "../diagnostics/comment-directives";
import type { NativeCompiler } from "./compiler";
import { parseDiagnostics, type Parsed } from "./compiler-output";
import type { NativeProject } from "./project";

/**
 * A copy of the project in a temporary directory, with the woven texts in place of the tagged files. Everything else can be found from
 * there as from the originals.
 */
export class Mirror {
  readonly #root: string;
  /** The files that this class wrote, as opposed to those that the compiler emits. */
  readonly #written = new Set<string>();
  readonly #linked: string[] = [];

  private constructor(root: string) {
    this.#root = root;
  }

  static of(ts: Parser, project: NativeProject, settings: object = {}): Mirror {
    const mirror = new Mirror(realpathSync(mkdtempSync(join(tmpdir(), "lockweave-build-"))));
    mirror.#linkReferences(project);
    for (const file of project.sources) mirror.#mirrorSource(ts, project, file);
    mirror.#writeConfig(project, settings);
    for (const dir of mirror.#originalDirs([...project.sources, project.config]))
      mirror.#mirrorSurroundings(dir);
    return mirror;
  }

  /** Returns the path in the mirror of an original file. */
  pathOf(original: string): string {
    return join(this.#root, relative(parse(original).root, original));
  }

  /**
   * Compiles the mirror. The compiler runs in the mirror of the project's own directory, because other directories may be missing there.
   */
  compile(compiler: NativeCompiler, config: string): Parsed & { readonly code: number } {
    const { code, output } = compiler.run(
      ["-p", this.pathOf(config), "--pretty", "false"],
      dirname(this.pathOf(config)),
    );
    return { ...parseDiagnostics(this.#withOriginalPaths(output), dirname(config)), code };
  }

  /** Returns the paths of the emitted files, by the paths where they belong. */
  outputs(): Map<string, string> {
    const found = new Map<string, string>();
    const visit = (dir: string): void => {
      for (const entry of readdirSync(dir, { withFileTypes: true })) {
        const path = join(dir, entry.name);
        if (entry.isDirectory()) visit(path);
        else if (entry.isFile() && !this.#written.has(path)) found.set(this.originalOf(path), path);
      }
    };
    visit(this.#root);
    return found;
  }

  originalOf(path: string): string {
    return resolve(parse(process.cwd()).root, relative(this.#root, path));
  }

  /** Replaces the paths of the mirror in the compiler's output by those of the originals. */
  #withOriginalPaths(text: string): string {
    return text.replaceAll(this.#root.split(sep).join("/"), "");
  }

  remove(): void {
    rmSync(this.#root, { recursive: true });
  }

  /**
   * Links the directories of referenced projects as a whole. The project reads only their outputs, which the compiler finds by their
   * tsconfig.json.
   */
  #linkReferences({ config, configs }: NativeProject): void {
    for (const reference of configs[0]?.references ?? []) {
      const dir = dirname(reference);
      const isAround = !relative(dir, config).startsWith("..");
      if (!isAround && !this.#isLinked(dir)) {
        this.#link(dir);
        this.#linked.push(dir);
      }
    }
  }

  #isLinked(path: string): boolean {
    return this.#linked.some((dir) => !relative(dir, path).startsWith(".."));
  }

  #mirrorSource(ts: Parser, { woven }: NativeProject, file: string): void {
    if (this.#isLinked(file)) return;
    const found = woven.get(file);
    if (found === undefined) this.#copy(file);
    else this.#write(file, withoutDirectives(ts, file, found.woven.code));
  }

  #writeConfig({ config, configs, options, rootNames }: NativeProject, settings: object): void {
    const here = dirname(this.pathOf(config));
    const { tsBuildInfoFile: _, plugins: _ours, declarationDir: _declarations, ...ofOutput } = options;
    // Without the two, maps name their sources by paths, which `MapRoots` converts to what the project requests.
    const { sourceRoot: _sourceRoot, mapRoot: _mapRoot, ...others } = ofOutput;
    const noEmit = options["noEmit"] === true || options["emitDeclarationOnly"] === true;
    const compilerOptions = { ...others, ...JAVASCRIPT_ONLY, ...this.#paths(configs), noEmit, ...settings };
    const content = {
      compilerOptions,
      files: rootNames.map((file) => relative(here, this.pathOf(file))),
      references: (configs[0]?.references ?? [])
        .filter((reference) => this.#isLinked(reference))
        .map((reference) => ({ path: relative(here, this.pathOf(reference)) })),
    };
    this.#write(config, JSON.stringify(content));
  }

  /**
   * Returns `paths` with absolute targets. They are relative to the tsconfig.json that contains them, which the output of `--showConfig`
   * does not reveal.
   */
  #paths(configs: NativeProject["configs"]): object {
    const own = configs.find(({ settings }) => "paths" in settings);
    if (own === undefined) return {};
    const based = configs.find(({ settings }) => typeof settings["baseUrl"] === "string");
    const base =
      based === undefined
        ? dirname(own.path)
        : resolve(dirname(based.path), String(based.settings["baseUrl"]));
    const paths = Object.entries(own.settings["paths"] as Readonly<Record<string, readonly string[]>>);
    return {
      paths: Object.fromEntries(
        paths.map(([name, targets]) => [name, targets.map((target) => this.pathOf(resolve(base, target)))]),
      ),
    };
  }

  /** Returns the directories of the files, and all directories above them. */
  #originalDirs(files: readonly string[]): Set<string> {
    const dirs = new Set<string>();
    for (const file of files) {
      for (let dir = dirname(file); !dirs.has(dir); dir = dirname(dir)) dirs.add(dir);
    }
    return dirs;
  }

  #mirrorSurroundings(dir: string): void {
    if (this.#isLinked(dir)) return;
    const manifest = join(dir, "package.json");
    if (existsSync(manifest)) this.#copy(manifest);
    const installed = join(dir, "node_modules");
    if (existsSync(installed)) this.#link(installed);
  }

  #copy(original: string): void {
    copyFileSync(original, this.#placeFor(original));
  }

  #write(original: string, text: string): void {
    writeFileSync(this.#placeFor(original), text);
  }

  #placeFor(original: string): string {
    const path = this.pathOf(original);
    mkdirSync(dirname(path), { recursive: true });
    this.#written.add(path);
    return path;
  }

  #link(original: string): void {
    const path = this.pathOf(original);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(original, path, "junction");
  }
}

/** The run on the originals emits the declarations. */
const JAVASCRIPT_ONLY = {
  composite: false,
  incremental: false,
  declaration: false,
  declarationMap: false,
  emitDeclarationOnly: false,
  isolatedDeclarations: false,
  noEmitOnError: false,
  skipLibCheck: true, // The run on the originals checks the libraries.
};
