import { dirname, join, relative, resolve } from "node:path";
import type * as TS from "typescript";
import { handedOut } from "../../verify/handed-out";
import { isLoaded, ownSources, resolvedFile, takenBy, type ImportingFile, type Taken } from "./imports";

// `paths` leads the compiler to the sources of a library, as in a workspace of Nx, and this build emits and weaves them. But the
// name of the library stays in the output, so Node looks for a package of that name and loads what the package hands out.

/** An import by `paths`. */
export interface TakenByPaths {
  readonly taken: Taken;
  /** What the compiler read for it: the source file and all that it takes in itself. */
  readonly sources: readonly string[];
  /** The file that Node loads instead. It need not be there. */
  readonly loaded: string;
}

/** The first such import of each source. Where Node loads what this build makes of the source, there is none. */
export function takenByPaths(ts: typeof TS, program: TS.Program): TakenByPaths[] {
  if (program.getCompilerOptions().paths === undefined) return [];
  const own = new Map(ownSources(program).map((file) => [file.fileName, file]));
  const found = new Map<ImportingFile, TakenByPaths>();
  for (const file of own.values()) {
    for (const specifier of file.imports ?? []) {
      const source = own.get(resolvedFile(program, specifier, file) ?? "");
      if (source === undefined || found.has(source) || !isLoaded(ts)(specifier)) continue;
      const loaded = handedOut(specifier.text, dirname(file.fileName));
      if (loaded === undefined || isEmittedTo(program, source, loaded)) continue;
      const sources = reachedFrom(program, source, own);
      found.set(source, { taken: takenBy(specifier, file), sources, loaded });
    }
  }
  return [...found.values()];
}

/** The names of the files that this one takes in, itself first. */
function reachedFrom(
  program: TS.Program,
  source: ImportingFile,
  own: ReadonlyMap<string, ImportingFile>,
): string[] {
  const reached = new Set([source]);
  for (const file of reached) {
    for (const specifier of file.imports ?? []) {
      // What it takes in by another name of a package is told at that import.
      const next = specifier.text.startsWith(".")
        ? own.get(resolvedFile(program, specifier, file) ?? "")
        : undefined;
      if (next !== undefined) reached.add(next);
    }
  }
  return [...reached].map(({ fileName }) => fileName);
}

type ProgramWithRoot = TS.Program & { getCommonSourceDirectory(): string };

/** Whether this build writes the file, and makes it of that source. */
function isEmittedTo(program: TS.Program, { fileName }: TS.SourceFile, loaded: string): boolean {
  const { outDir } = program.getCompilerOptions();
  const { getCommonSourceDirectory } = program as ProgramWithRoot;
  const emitted =
    outDir === undefined ? fileName : join(outDir, relative(getCommonSourceDirectory(), fileName));
  const isCode = /\.[cm]?jsx?$/.test(loaded);
  return isCode && withoutEnding(resolve(emitted)) === withoutEnding(loaded);
}

function withoutEnding(file: string): string {
  return file.replace(/\.[cm]?[jt]sx?$/, "");
}
