import { dirname } from "node:path";
import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { tagsInFile, unlockedInAll } from "./declared";
import { handedOut, isTypeScript, javaScriptsOf } from "./package-entry";
import type { PlacedProblem } from "./project";
import { importProblem, isLoaded, takenBy, type Taken } from "./taken";

// `paths` leads the compiler to the sources of a library, as in a workspace of Nx, and this build emits and weaves them. But the
// name of the library stays in the output, so Node looks for a package of that name and loads what the package hands out.

/** A project with `paths`, as its compiler sees it. */
export interface ProjectWithPaths {
  /** The source files that this build itself compiles, by their names. */
  readonly files: ReadonlyMap<string, TS.SourceFile>;
  readonly specifiersIn: (file: TS.SourceFile) => readonly TS.StringLiteralLike[];
  /** Returns the name of the file that the import takes in. */
  readonly resolve: (specifier: TS.StringLiteralLike, file: TS.SourceFile) => string | undefined;
  /** Returns the path of the JavaScript that this build makes of the source, with any ending. */
  readonly outputOf: (fileName: string) => string;
}

/** An import by `paths`. */
interface TakenByPaths {
  readonly taken: Taken;
  /** What the compiler read for it: the source file and all that it takes in itself. */
  readonly sources: readonly string[];
  /** The file that Node loads instead. It need not be there. */
  readonly loaded: string;
}

/** Tags in what `paths` leads the compiler to, where Node loads what a package hands out under that name. */
export function unlockedByPaths(ts: Parser, project: ProjectWithPaths): PlacedProblem[] {
  return takenByPaths(ts, project).flatMap(({ taken, sources, loaded }) =>
    sources.flatMap((source) => {
      const tags = tagsInFile(ts, source);
      if (tags.length === 0) return [];
      if (isTypeScript(loaded)) return importProblem("loadedAsSource", taken, tags, source);
      const unlocked = unlockedInAll(ts, tags, javaScriptsOf(source, loaded));
      return unlocked === undefined
        ? []
        : importProblem("loadedFromPackage", taken, unlocked.tags, unlocked.javaScript);
    }),
  );
}

/** Tags in the TypeScript that linked packages hand out. The compiler reads those files, and emits none of them. */
export function unlockedByLinks(ts: Parser, project: ProjectWithPaths): PlacedProblem[] {
  const { files, specifiersIn, resolve } = project;
  const told = new Set<string>();
  return [...files.values()].flatMap((file) =>
    specifiersIn(file).flatMap((specifier) => {
      if (resolve(specifier, file) !== undefined || !isLoaded(ts)(specifier)) return [];
      const source = files.get(handedOut(specifier.text, dirname(file.fileName)) ?? "");
      if (source === undefined || !isTypeScript(source.fileName)) return [];
      return reachedFrom(source, project).flatMap((name) => {
        const tags = told.has(name) ? [] : tagsInFile(ts, name);
        told.add(name);
        return tags.length === 0
          ? []
          : importProblem("handedOutAsSource", takenBy(specifier, file), tags, name);
      });
    }),
  );
}

/** The first such import of each source. Where Node loads what this build makes of the source, there is none. */
function takenByPaths(ts: Parser, project: ProjectWithPaths): TakenByPaths[] {
  const { files, specifiersIn, resolve, outputOf } = project;
  const found = new Map<TS.SourceFile, TakenByPaths>();
  for (const file of files.values()) {
    for (const specifier of specifiersIn(file)) {
      const source = files.get(resolve(specifier, file) ?? "");
      if (source === undefined || found.has(source) || !isLoaded(ts)(specifier)) continue;
      const loaded = handedOut(specifier.text, dirname(file.fileName));
      if (loaded === undefined || isSameCode(outputOf(source.fileName), loaded)) continue;
      found.set(source, { taken: takenBy(specifier, file), sources: reachedFrom(source, project), loaded });
    }
  }
  return [...found.values()];
}

/** The names of the files that this one takes in, itself first. */
function reachedFrom(source: TS.SourceFile, { files, specifiersIn, resolve }: ProjectWithPaths): string[] {
  const reached = new Set([source]);
  for (const file of reached) {
    for (const specifier of specifiersIn(file)) {
      // What it takes in by another name of a package is told at that import.
      const next = specifier.text.startsWith(".") ? files.get(resolve(specifier, file) ?? "") : undefined;
      if (next !== undefined) reached.add(next);
    }
  }
  return [...reached].map(({ fileName }) => fileName);
}

function isSameCode(emitted: string, loaded: string): boolean {
  return /\.[cm]?jsx?$/.test(loaded) && withoutEnding(emitted) === withoutEnding(loaded);
}

function withoutEnding(file: string): string {
  return file.replace(/\.[cm]?[jt]sx?$/, "");
}
