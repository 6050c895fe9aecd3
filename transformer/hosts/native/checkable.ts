import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";
import type { SourceMap } from "../../text/source-map";
import type { PlacedProblem, Project, TaggedFile } from "../../verify/project";
import { taggedFile } from "../../verify/tagged-file";
import type { NativeCompiler } from "./compiler";
import { unlockedDependencies, unlockedImports } from "./dependencies";
import { Mirror } from "./mirror";
import { offsetInTag, toDisk } from "./report-on-disk";
import { openNativeProject, type NativeProject } from "./project";

/**
 * Opens a project whose output can be checked, although its compiler has no API.
 *
 * @param analysis runs the analysis with another TypeScript that has an API
 * @throws {NoProjectError} if the compiler rejects the tsconfig.json
 */
export function checkableProject(
  ts: Parser,
  compiler: NativeCompiler,
  config: string,
  cwd: string,
  analysis: Project["analysis"],
): Project {
  const project = openNativeProject(ts, compiler, config, cwd);
  const files = [...project.woven].flatMap(([file, { text, woven }]): TaggedFile[] => {
    return taggedFile(ts.createSourceFile(file, text, ts.ScriptTarget.Latest), woven);
  });
  let emitted: ReadonlyMap<string, ReadonlyMap<string, string>> | undefined;
  return {
    ts,
    config,
    builder: "lockweave build",
    checksTypes: true,
    options: project.options as TS.CompilerOptions,
    plugin: project.plugin,
    files,
    sources: [...project.sources, ...project.configs.map(({ path }) => path)],
    problems: project.problems,
    unlocked: () => unlockedDependencies(ts, project).map((found) => ({ file: undefined, problem: found })),
    // Imports by links are not reported here. The sources of linked packages are among the files, so the check reports them as not emitted.
    unlockedSources: () => unlockedImports(ts, project).byPaths,
    linked: () => [],
    typeProblems: () => typeProblems(ts, project, files),
    analysis,
    wovenSources: () => undefined,
    errorsWith: () => [],
    emitWoven: ({ source }) => {
      emitted ??= emit(ts, project);
      return emitted.get(resolve(source.fileName)) ?? new Map<string, string>();
    },
  };
}

function typeProblems(ts: Parser, project: NativeProject, files: readonly TaggedFile[]): PlacedProblem[] {
  const mirror = Mirror.of(ts, project, { noEmit: true });
  try {
    const { compiler, config } = project;
    return mirror.compile(compiler, config).diagnostics.flatMap((one): PlacedProblem[] => {
      const mapped = toDisk(one, project);
      const start = offsetInTag(mapped, project);
      const file = files.find(({ source }) => source.fileName === mapped.file)?.source;
      if (start === undefined || file === undefined) return [];
      return [{ file, problem: { code: mapped.code, message: mapped.message, start, end: start } }];
    });
  } finally {
    mirror.remove();
  }
}

/** Compiles the woven files. Returns the output by the source that its source map names. */
function emit(ts: Parser, project: NativeProject): Map<string, Map<string, string>> {
  const mirror = Mirror.of(ts, project, EMIT);
  try {
    const { compiler, config } = project;
    mirror.compile(compiler, config);
    const outputs = mirror.outputs();
    const bySource = new Map<string, Map<string, string>>();
    for (const [name, path] of outputs) {
      const map = outputs.get(`${name}.map`);
      if (map === undefined) continue;
      const { sources } = JSON.parse(readFileSync(map, "utf8")) as SourceMap;
      for (const source of sources) {
        bySource.set(resolve(dirname(name), source), new Map([[name, readFileSync(path, "utf8")]]));
      }
    }
    return bySource;
  } finally {
    mirror.remove();
  }
}

const EMIT = {
  noEmit: false,
  noCheck: true,
  sourceMap: true,
  inlineSourceMap: false,
};
