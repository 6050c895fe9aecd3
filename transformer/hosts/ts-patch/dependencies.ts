import { basename, dirname } from "node:path";
import type * as TS from "typescript";
import { problem } from "../../text/problems";
import { unlockedByPaths } from "../../verify/by-paths";
import { tagsInFile, unlockedIn, unlockedInAll, unlockedOf, type Unlocked } from "../../verify/declared";
import { handedOut, isInstalled, isTypeScript, javaScriptsOf } from "../../verify/package-entry";
import type { PlacedProblem } from "../../verify/project";
import { importProblem, isLoaded, namesOf, takenBy, type Taken } from "../../verify/taken";
import { withPaths } from "./by-paths";
import { importOf, ownSources, resolvedFile, type ProgramInternals } from "./imports";
import { internals } from "./woven-files";

// What is compiled apart from this program, and taken in by its declarations, was woven by its own build or not at
// all: an error at the import that takes in what is not. What it takes in by its sources is emitted by nobody.

/** What comes from elsewhere than from referenced projects. */
export function unlockedDependencies(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  return program.getSourceFiles().flatMap((declarations) => {
    if (!declarations.isDeclarationFile || program.isSourceFileDefaultLibrary(declarations)) return [];
    if (referenceOf(program, declarations) !== undefined) return [];
    const unlocked = unlockedIn(ts, declarations);
    return unlocked === undefined ? [] : [placed(program, declarations, unlocked)];
  });
}

/**
 * What referenced projects were built to: all that is tagged in their sources, whether this program takes in its
 * declarations or those of what calls it.
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
        : [placed(program, takenFrom(program, reference, outputs)[0], unlocked)];
    });
  });
}

/** The declarations of a referenced project that the program takes in: first those of one of its sources. */
function takenFrom(
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

/** The sources that the program takes in from packages, for its own project to emit. */
export function linkedSources(program: TS.Program): TS.SourceFile[] {
  return program
    .getSourceFiles()
    .filter((file) => !file.isDeclarationFile && program.isSourceFileFromExternalLibrary(file));
}

/** Where it emits none, a bundler or a loader makes the code, with a plugin of its own. */
export function emitsCode({ noEmit = false, emitDeclarationOnly = false }: TS.CompilerOptions): boolean {
  return !noEmit && !emitDeclarationOnly;
}

/**
 * Tags in what a package hands out: sources as they are, or what they were built to. Where this build emits nothing, a bundler
 * or a loader weaves those of linked packages, and those of installed ones nobody does.
 */
export function unlockedSources(ts: typeof TS, program: TS.Program, emits: boolean): PlacedProblem[] {
  const ofPackages = linkedSources(program).map((file) => ({
    file,
    source: file.fileName,
    isBuiltApart: false,
  }));
  // Of these the program takes in the declarations, and Node whatever their package hands out.
  const ofReferences = (emits ? referencesOf(program) : []).flatMap((reference) =>
    reference.commandLine.fileNames.filter(isTypeScript).flatMap((source) => {
      const [file] = takenFrom(
        program,
        reference,
        ts.getOutputFileNames(reference.commandLine, source, !ts.sys.useCaseSensitiveFileNames),
      );
      return file === undefined ? [] : [{ file, source, isBuiltApart: true }];
    }),
  );
  const unlocked = [...ofPackages, ...ofReferences].flatMap(({ file, source, isBuiltApart }) => {
    const tags = tagsInFile(ts, source);
    const taken = tags.length === 0 ? undefined : importOf(program, file, isLoaded(ts));
    if (taken?.file === undefined) return [];
    const loaded = handedOut(taken.specifier, dirname(taken.file.fileName));
    if (loaded === undefined || (!emits && !isInstalled(loaded))) return [];
    if (isTypeScript(loaded)) {
      return importProblem(
        isInstalled(source) ? "installedAsSource" : "handedOutAsSource",
        taken,
        tags,
        source,
      );
    }
    const found = isBuiltApart ? undefined : unlockedInAll(ts, tags, javaScriptsOf(source, loaded));
    return found === undefined ? [] : [placedAt(taken, found)];
  });
  return emits ? [...unlocked, ...unlockedIfPaths(ts, program), ...unlockedScripts(ts, program)] : unlocked;
}

/** Tags in JavaScript that the program's own files import, and which it does not emit: it is copied to the output, without locks. */
function unlockedScripts(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  return ownSources(program).flatMap((file) =>
    (file.imports ?? []).flatMap((specifier) => {
      const name = resolvedFile(program, specifier, file) ?? "";
      const script = name.replace(/\.d\.([cm]?)ts$/, ".$1js");
      if (!/\.[cm]?jsx?$/.test(script) || isInstalled(script) || !isLoaded(ts)(specifier)) return [];
      const { tags = [] } = unlockedOf(ts, tagsInFile(ts, script), script) ?? {};
      if (tags.length === 0 || isToldOf(ts, program, program.getSourceFile(name))) return [];
      return importProblem("scriptAside", takenBy(specifier, file), tags, script);
    }),
  );
}

/** See {@link unlockedByPaths}. */
function unlockedIfPaths(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  const project = withPaths(program);
  return project === undefined ? [] : unlockedByPaths(ts, project);
}

/** What is emitted is woven, and what referenced projects make or declarations show is told of already. */
function isToldOf(ts: typeof TS, program: TS.Program, file: TS.SourceFile | undefined): boolean {
  if (file === undefined) return false;
  if (!file.isDeclarationFile || referenceOf(program, file) !== undefined) return true;
  return unlockedIn(ts, file) !== undefined;
}

// ---- where it comes in ----------------------------------------------------------------------------------

function placed(
  program: TS.Program,
  declarations: TS.SourceFile | undefined,
  unlocked: Unlocked,
): PlacedProblem {
  return placedAt(importOf(program, declarations), unlocked);
}

function placedAt({ file, at }: Taken, { tags, javaScript }: Unlocked): PlacedProblem {
  return { file, problem: problem("unlockedDependency", at, namesOf(tags), basename(javaScript)) };
}

/** Which referenced project makes the file. */
function referenceOf(
  program: TS.Program,
  file: TS.SourceFile,
): { readonly resolvedRef: TS.ResolvedProjectReference } | undefined {
  return (program as unknown as ProgramInternals).getRedirectFromOutput(internals(file).resolvedPath);
}

/** All referenced projects, of references too, once each. */
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
