import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { tagsInFile, unlockedInAll } from "./declared";
import type { CompiledFiles } from "../resolve/compiled-files";
import { loadedFromPackage } from "../resolve/loaded-file";
import { isTypeScript, javaScriptsOf } from "../resolve/package-entry";
import { isLoaded } from "../resolve/specifiers";
import type { PlacedProblem } from "./project";
import { importProblem, importAt, type SourceImport } from "./source-import";

// `paths` points the compiler to the sources of a library, as in a workspace of Nx, and this build emits and weaves them. But the output
// still imports the library by its name. So Node looks for a package of that name, and loads the file that the package exports.

/** An import that `paths` leads to a source. */
interface ImportByPaths {
  readonly imported: SourceImport;
  /** The files that the compiler reads for it: the source, and all files that the source imports in turn. */
  readonly sources: readonly string[];
  /** The file that Node loads instead. It may not exist. */
  readonly loaded: string;
}

/** Reports tags in sources to which `paths` leads the compiler, if Node loads a package's file under that name, without the locks. */
export function unlockedByPaths(ts: Parser, project: CompiledFiles): PlacedProblem[] {
  return importsByPaths(ts, project).flatMap(({ imported, sources, loaded }) =>
    sources.flatMap((source) => {
      const tags = tagsInFile(ts, source);
      if (tags.length === 0) return [];
      if (isTypeScript(loaded)) return importProblem("loadedAsSource", imported, tags, source);
      const unlocked = unlockedInAll(ts, tags, javaScriptsOf(source, loaded));
      return unlocked === undefined
        ? []
        : importProblem("loadedFromPackage", imported, unlocked.tags, unlocked.javaScript);
    }),
  );
}

/** Reports tags in the TypeScript that linked packages export. The compiler reads those files, and emits none of them. */
export function unlockedByLinks(ts: Parser, project: CompiledFiles): PlacedProblem[] {
  const { files, specifiersIn, resolve } = project;
  const reported = new Set<string>();
  return [...files.values()].flatMap((file) =>
    specifiersIn(file).flatMap((specifier) => {
      if (resolve(specifier, file) !== undefined || !isLoaded(ts)(specifier)) return [];
      const source = files.get(loadedFromPackage(specifier.text, file.fileName) ?? "");
      if (source === undefined || !isTypeScript(source.fileName)) return [];
      return reachedFrom(source, project).flatMap((name) => {
        const tags = reported.has(name) ? [] : tagsInFile(ts, name);
        reported.add(name);
        return tags.length === 0
          ? []
          : importProblem("exportedAsSource", importAt(specifier, file), tags, name);
      });
    }),
  );
}

/** Returns the first import by `paths` of each source. There is none if Node loads the file that this build emits for the source. */
function importsByPaths(ts: Parser, project: CompiledFiles): ImportByPaths[] {
  const { files, specifiersIn, resolve, outputOf } = project;
  const found = new Map<TS.SourceFile, ImportByPaths>();
  for (const file of files.values()) {
    for (const specifier of specifiersIn(file)) {
      const source = files.get(resolve(specifier, file) ?? "");
      if (source === undefined || found.has(source) || !isLoaded(ts)(specifier)) continue;
      const loaded = loadedFromPackage(specifier.text, file.fileName);
      if (loaded === undefined || isSameCode(outputOf(source.fileName), loaded)) continue;
      found.set(source, {
        imported: importAt(specifier, file),
        sources: reachedFrom(source, project),
        loaded,
      });
    }
  }
  return [...found.values()];
}

/** Returns the names of the files that this one imports, directly or not. The file itself comes first. */
function reachedFrom(source: TS.SourceFile, { files, specifiersIn, resolve }: CompiledFiles): string[] {
  const reached = new Set([source]);
  for (const file of reached) {
    for (const specifier of specifiersIn(file)) {
      // An import by the name of a package gets a report of its own.
      const next = specifier.text.startsWith(".") ? files.get(resolve(specifier, file) ?? "") : undefined;
      if (next !== undefined) reached.add(next);
    }
  }
  return [...reached].map(({ fileName }) => fileName);
}

function isSameCode(emitted: string, loaded: string): boolean {
  return /\.[cm]?jsx?$/.test(loaded) && withoutExtension(emitted) === withoutExtension(loaded);
}

function withoutExtension(file: string): string {
  return file.replace(/\.[cm]?[jt]sx?$/, "");
}
