import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Parser } from "../../parser/parser";
import { editMap, mappedToDisk, type SourceMap } from "../../text/source-map";
import { mayHaveDirectives, withDirectives } from "../diagnostics/comment-directives";
import { UNUSED_NAMES } from "../diagnostics/own-problems";
import type { NativeCompiler } from "./compiler";
import { parseDiagnostics, type CompilerDiagnostic } from "./compiler-output";
import { unlockedDependencies, unlockedImports } from "./dependencies";
import { MapRoots } from "./map-roots";
import { Mirror } from "./mirror";
import { offsetInTag, problemsIn, diagnosticFor, diagnosticAt, toDisk } from "./report-on-disk";
import { openNativeProject, type NativeProject } from "./project";

export interface Built {
  /** The exit code that the compiler would return. */
  readonly code: number;
  readonly diagnostics: readonly CompilerDiagnostic[];
  /** The compiler's output that refers to no place. */
  readonly others: readonly string[];
  readonly warnings: readonly CompilerDiagnostic[];
  /** All files that the build reads, for a watch. */
  readonly sources: readonly string[];
}

/**
 * Builds a project with a compiler that takes no plugins, by running it twice. The run on the originals emits the declarations and reports
 * their errors. The run on a mirror with the woven texts emits the JavaScript and reports errors in the tags.
 *
 * @throws {NoProjectError} if the compiler rejects the tsconfig.json
 */
export function buildNative(ts: Parser, compiler: NativeCompiler, config: string, cwd: string): Built {
  const project = openNativeProject(ts, compiler, config, cwd);
  const { options, sources } = project;
  const mirror = Mirror.of(ts, project);
  try {
    const mirrorRun = mirror.compile(compiler, config);
    const mapped = mirrorRun.diagnostics.map((one) => toDisk(one, project));
    const ofProject = [...project.problems, ...unlockedDependencies(ts, project)].map((found) =>
      diagnosticFor(found),
    );
    const { byPaths, byLinks } = unlockedImports(ts, project);
    const ofImports = [...byPaths, ...byLinks].map(({ file, problem }) => diagnosticAt(file, problem));
    const ofTags = [
      ...ofProject,
      ...ofImports,
      ...problemsIn(project, "errors"),
      ...mapped.filter((one) => offsetInTag(one, project) !== undefined),
    ];
    const blocksEmit = options["noEmitOnError"] === true;
    const makesDeclarations =
      (options["declaration"] === true || options["composite"] === true) &&
      options["noEmit"] !== true &&
      !(blocksEmit && ofTags.length > 0);
    const ran = compiler.run(
      ["-p", config, makesDeclarations ? "--emitDeclarationOnly" : "--noEmit", "--pretty", "false"],
      cwd,
    );
    const original = parseDiagnostics(ran.output, cwd);
    const all = [
      ...original.diagnostics.filter((one) => !isUnused(one, project)),
      ...mapped.filter((one) => isUnused(one, project) && mayReport(one, original.diagnostics, project)),
      ...ofTags,
      ...mirrorRun.diagnostics.filter((one) => one.file === undefined && !isAmong(one, original.diagnostics)),
    ].toSorted(byPlace);
    const others = [...original.others, ...mirrorRun.others];
    const failed = all.length > 0 || (others.length > 0 && mirrorRun.code + ran.code > 0);
    if (!failed || !blocksEmit) writeOutputs(mirror, project);
    return {
      code: failed ? (blocksEmit || options["noEmit"] === true ? 1 : 2) : 0,
      diagnostics: all,
      others,
      warnings: problemsIn(project, "warnings"),
      sources: [...sources, ...project.configs.map(({ path }) => path)],
    };
  } finally {
    mirror.remove();
  }
}

/**
 * Whether the compiler reports an unused name in a tagged file. In the originals, a name that only tags use looks unused, such as an error
 * class and its import.
 */
function isUnused({ code, file }: CompilerDiagnostic, { woven }: NativeProject): boolean {
  return UNUSED_NAMES.has(Number(code.slice("TS".length))) && file !== undefined && woven.has(file);
}

/**
 * Whether to report an unused name that the mirror shows. In the originals, a `@ts-ignore` may silence it. So in a file with such a
 * directive, the originals must show it, too.
 */
function mayReport(
  one: CompilerDiagnostic,
  original: readonly CompilerDiagnostic[],
  { woven }: NativeProject,
): boolean {
  const text = (one.file !== undefined && woven.get(one.file)?.text) || "";
  return isAmong(one, original) || !mayHaveDirectives(text);
}

function isAmong(one: CompilerDiagnostic, others: readonly CompilerDiagnostic[]): boolean {
  return others.some(
    ({ file, line, column, code }) =>
      file === one.file && line === one.line && column === one.column && code === one.code,
  );
}

/** Sorts like the compiler: diagnostics without a file first, then by file name. */
function byPlace(a: CompilerDiagnostic, b: CompilerDiagnostic): number {
  const [one = "", other = ""] = [a.file, b.file];
  if (one !== other) return one < other ? -1 : 1;
  return a.line - b.line || a.column - b.column;
}

/** Writes each output to its real path, with source maps that lead to the originals. */
function writeOutputs(mirror: Mirror, project: NativeProject): void {
  const roots = new MapRoots(project);
  const outputs = mirror.outputs();
  for (const [path, emitted] of outputs) {
    const text = editMap(path, withDirectives(readFileSync(emitted, "utf8")), (map) => {
      const sources = sourcesOf(map, path);
      const sourceTexts = sources.map((source) => {
        const found = project.woven.get(source);
        return found && { text: found.text, positions: found.woven.positions };
      });
      return roots.applyToMap(mappedToDisk(map, sourceTexts), sources);
    });
    const mapPath = `${path}.map`;
    const map = outputs.get(mapPath);
    const [source] =
      map === undefined ? [] : sourcesOf(JSON.parse(readFileSync(map, "utf8")) as SourceMap, mapPath);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, source === undefined ? text : roots.applyToCode(text, path, source));
  }
}

/** In the mirror, the compiler runs without `sourceRoot` and `mapRoot`, so sources are relative to the map. */
function sourcesOf({ sources }: SourceMap, mapPath: string): string[] {
  return sources.map((source) => resolve(dirname(mapPath), source));
}
