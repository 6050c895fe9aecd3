import { basename } from "node:path";
import type * as TS from "typescript";
import { problem } from "../../text/problems";
import { unlockedByPaths } from "../../verify/unlocked-imports";
import {
  tagsInFile,
  unlockedByDeclarations,
  unlockedInAll,
  unlockedOf,
  type Unlocked,
} from "../../verify/declared";
import { loadedFromPackage } from "../../resolve/loaded-file";
import { isInstalled } from "../../resolve/installed";
import { isTypeScript, javaScriptsOf } from "../../resolve/package-entry";
import { isLoaded } from "../../resolve/specifiers";
import type { PlacedProblem } from "../../verify/project";
import { importProblem, namesOf, importAt, type SourceImport } from "../../verify/source-import";
import { compiledFiles } from "./compiled-files";
import { importOf, ownSources, resolvedFile, type ProgramInternals } from "./imports";
import { internals } from "./woven-files";

// A dependency that the program imports through declarations was compiled by another build, with the weave or without it. Without it, these
// functions report an error at the import. If the program imports sources of a package, no build emits them.

/** Reports dependencies without locks, except for those of referenced projects. */
export function unlockedDependencies(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  return program.getSourceFiles().flatMap((declarations) => {
    if (!declarations.isDeclarationFile || program.isSourceFileDefaultLibrary(declarations)) return [];
    if (referenceOf(program, declarations) !== undefined) return [];
    const unlocked = unlockedByDeclarations({ ts, file: declarations });
    return unlocked === undefined ? [] : [placed(program, declarations, unlocked)];
  });
}

/**
 * Reports the output of referenced projects without locks. That covers every tag in their sources, even if the program only imports
 * declarations of their callers.
 */
export function unlockedReferences(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  return referencesOf(program).flatMap((reference) => {
    const { commandLine } = reference;
    const sources = commandLine.fileNames.filter((name) => /(?<!\.d)\.[cm]?[jt]sx?$/.test(name));
    return sources.flatMap((source) => {
      const tags = tagsInFile(ts, source);
      const outputs =
        tags.length === 0
          ? []
          : ts.getOutputFileNames(commandLine, source, !ts.sys.useCaseSensitiveFileNames);
      const javaScript = outputs.find((output) => /\.[cm]?jsx?$/.test(output));
      const unlocked = javaScript === undefined ? undefined : unlockedOf(ts, tags, javaScript);
      return unlocked === undefined
        ? []
        : [placed(program, importedDeclarations(program, reference, outputs)[0], unlocked)];
    });
  });
}

/** Returns the declarations of a referenced project that the program imports, starting with those of this source. */
function importedDeclarations(
  program: TS.Program,
  reference: TS.ResolvedProjectReference,
  outputs: readonly string[],
): TS.SourceFile[] {
  return program
    .getSourceFiles()
    .filter((file) => referenceOf(program, file)?.resolvedRef === reference)
    .toSorted((a, b) => Number(outputs.includes(b.fileName)) - Number(outputs.includes(a.fileName)));
}

// ---- sources of linked packages -------------------------------------------------------------------------

/** Returns the sources of packages that the program imports, and that only their own project emits. */
export function linkedSources(program: TS.Program): TS.SourceFile[] {
  return program
    .getSourceFiles()
    .filter((file) => !file.isDeclarationFile && program.isSourceFileFromExternalLibrary(file));
}

/** Whether the build emits code. Otherwise, a bundler or a loader creates the code, with its own plugin. */
export function emitsCode({ noEmit = false, emitDeclarationOnly = false }: TS.CompilerOptions): boolean {
  return !noEmit && !emitDeclarationOnly;
}

/**
 * Reports tags in code that a package exposes without locks: its sources, or the output that was built from them. If this build emits
 * nothing, a bundler or a loader weaves linked packages. Nothing weaves installed ones, so these are still reported.
 */
export function unlockedSources(ts: typeof TS, program: TS.Program, emits: boolean): PlacedProblem[] {
  const ofPackages = linkedSources(program).map((file) => ({
    file,
    source: file.fileName,
    isBuiltApart: false,
  }));
  // The program imports the declarations of these, and Node loads what their package exposes.
  const ofReferences = (emits ? referencesOf(program) : []).flatMap((reference) =>
    reference.commandLine.fileNames.filter(isTypeScript).flatMap((source) => {
      const [file] = importedDeclarations(
        program,
        reference,
        ts.getOutputFileNames(reference.commandLine, source, !ts.sys.useCaseSensitiveFileNames),
      );
      return file === undefined ? [] : [{ file, source, isBuiltApart: true }];
    }),
  );
  const unlocked = [...ofPackages, ...ofReferences].flatMap(({ file, source, isBuiltApart }) => {
    const tags = tagsInFile(ts, source);
    const imported = tags.length === 0 ? undefined : importOf(program, file, isLoaded(ts));
    if (imported?.file === undefined) return [];
    const loaded = loadedFromPackage(imported.specifier, imported.file.fileName);
    if (loaded === undefined || (!emits && !isInstalled(loaded))) return [];
    if (isTypeScript(loaded)) {
      return importProblem(
        isInstalled(source) ? "installedAsSource" : "exportedAsSource",
        imported,
        tags,
        source,
      );
    }
    const found = isBuiltApart ? undefined : unlockedInAll(ts, tags, javaScriptsOf(source, loaded));
    return found === undefined ? [] : [placedAt(imported, found)];
  });
  return emits ? [...unlocked, ...unlockedIfPaths(ts, program), ...unlockedScripts(ts, program)] : unlocked;
}

/**
 * Reports tags in JavaScript that the program's own files import but the program does not emit. Such a file is copied to the output,
 * without locks.
 */
function unlockedScripts(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  return ownSources(program).flatMap((file) =>
    (file.imports ?? []).flatMap((specifier) => {
      const name = resolvedFile(program, specifier, file) ?? "";
      const script = name.replace(/\.d\.([cm]?)ts$/, ".$1js");
      if (!/\.[cm]?jsx?$/.test(script) || isInstalled(script) || !isLoaded(ts)(specifier)) return [];
      const { tags = [] } = unlockedOf(ts, tagsInFile(ts, script), script) ?? {};
      if (tags.length === 0 || isCoveredElsewhere(ts, program, program.getSourceFile(name))) return [];
      return importProblem("scriptAside", importAt(specifier, file), tags, script);
    }),
  );
}

/** Reports unlocked imports through `paths`. See {@link unlockedByPaths}. */
function unlockedIfPaths(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  const project = compiledFiles(program);
  return project === undefined ? [] : unlockedByPaths(ts, project);
}

/**
 * Whether another check covers the file. Emitted files are woven, and the output of referenced projects and unlocked declarations are
 * reported elsewhere.
 */
function isCoveredElsewhere(ts: typeof TS, program: TS.Program, file: TS.SourceFile | undefined): boolean {
  if (file === undefined) return false;
  if (!file.isDeclarationFile || referenceOf(program, file) !== undefined) return true;
  return unlockedByDeclarations({ ts, file }) !== undefined;
}

// ---- position of the import -----------------------------------------------------------------------------

function placed(
  program: TS.Program,
  declarations: TS.SourceFile | undefined,
  unlocked: Unlocked,
): PlacedProblem {
  return placedAt(importOf(program, declarations), unlocked);
}

function placedAt({ file, at }: SourceImport, { tags, javaScript }: Unlocked): PlacedProblem {
  return { file, problem: problem("unlockedDependency", at, namesOf(tags), basename(javaScript)) };
}

/** Returns the referenced project that emits the file. */
function referenceOf(
  program: TS.Program,
  file: TS.SourceFile,
): { readonly resolvedRef: TS.ResolvedProjectReference } | undefined {
  return (program as unknown as ProgramInternals).getRedirectFromOutput(internals(file).resolvedPath);
}

/** Returns all referenced projects once each, including indirect references. */
function referencesOf(program: TS.Program): TS.ResolvedProjectReference[] {
  const found = new Set<TS.ResolvedProjectReference>();
  const add = (references: readonly (TS.ResolvedProjectReference | undefined)[] = []): void => {
    for (const reference of references) {
      if (reference === undefined || found.has(reference)) continue;
      found.add(reference);
      add(reference.references);
    }
  };
  add(program.getResolvedProjectReferences());
  return [...found];
}
