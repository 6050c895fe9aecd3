import { basename, dirname } from "node:path";
import type * as TS from "typescript";
import { notAllowed } from "../../analyze/allowed";
import type { DeclaredTag } from "../../read/declared-tags";
import { problem, type Problem } from "../../text/problems";
import { tagsInFile, unlockedIn, unlockedOf, type Unlocked } from "../../verify/declared";
import { handedOut, isInstalled, isTypeScript, javaScriptOf } from "../../verify/handed-out";
import type { PlacedProblem } from "../../verify/project";
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
    if (isTypeScript(loaded)) return notLoadedWoven(taken.file, taken.at, tags, source);
    const javaScript = isBuiltApart ? undefined : javaScriptOf(source, loaded);
    const found = javaScript === undefined ? undefined : unlockedOf(ts, tags, javaScript);
    return found === undefined ? [] : [placedAt(taken, found)];
  });
  return emits ? [...unlocked, ...unlockedScripts(ts, program)] : unlocked;
}

/** Tags in JavaScript that the program's own files import, and which it does not emit: it is copied to the output, without locks. */
function unlockedScripts(ts: typeof TS, program: TS.Program): PlacedProblem[] {
  const { getResolvedModuleFromModuleSpecifier: resolved } = program as unknown as ProgramInternals;
  const own = program
    .getSourceFiles()
    .filter((file) => !file.isDeclarationFile && !program.isSourceFileFromExternalLibrary(file));
  return own.flatMap((file) =>
    ((file as ImportingFile).imports ?? []).flatMap((specifier) => {
      const name = resolved(specifier, file)?.resolvedModule?.resolvedFileName ?? "";
      const script = name.replace(/\.d\.([cm]?)ts$/, ".$1js");
      if (!/\.[cm]?jsx?$/.test(script) || isInstalled(script) || !isLoaded(ts)(specifier)) return [];
      const { tags = [] } = unlockedOf(ts, tagsInFile(ts, script), script) ?? {};
      if (tags.length === 0 || isToldOf(ts, program, program.getSourceFile(name))) return [];
      const at = { start: specifier.getStart(file), end: specifier.end };
      const found = problem("scriptAside", at, namesOf(tags), basename(script));
      return notAllowed([{ file, problem: found, isCertain: true, proof: [{ file, ...at }] }]);
    }),
  );
}

/** What is emitted is woven, and what referenced projects make or declarations show is told of already. */
function isToldOf(ts: typeof TS, program: TS.Program, file: TS.SourceFile | undefined): boolean {
  if (file === undefined) return false;
  if (!file.isDeclarationFile || referenceOf(program, file) !== undefined) return true;
  return unlockedIn(ts, file) !== undefined;
}

function notLoadedWoven(
  file: TS.SourceFile,
  at: Pick<Problem, "start" | "end">,
  tags: readonly DeclaredTag[],
  source: string,
): PlacedProblem[] {
  const kind = isInstalled(source) ? "installedAsSource" : "handedOutAsSource";
  const found = problem(kind, at, namesOf(tags), basename(source));
  return notAllowed([{ file, problem: found, isCertain: true, proof: [{ file, ...at }] }]);
}

/** Whether the import is there when the program runs. */
function isLoaded(ts: typeof TS): (specifier: TS.Node) => boolean {
  return ({ parent }) => {
    if (ts.isImportDeclaration(parent)) return parent.importClause?.isTypeOnly !== true;
    if (ts.isExportDeclaration(parent)) return !parent.isTypeOnly;
    return !ts.isLiteralTypeNode(parent); // `import("shop").Order`
  };
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

function namesOf(tags: readonly DeclaredTag[]): string {
  return tags.map(({ name, flag }) => `\`${name ?? flag}\``).join(", ");
}

/** TypeScript's own, which its declarations leave out. */
type ImportingFile = TS.SourceFile & { readonly imports?: readonly TS.StringLiteralLike[] };

interface ProgramInternals {
  getFileIncludeReasons(): ReadonlyMap<
    string,
    readonly { readonly file?: string; readonly index?: number }[]
  >;
  getSourceFileByPath(path: string): ImportingFile | undefined;
  getResolvedModuleFromModuleSpecifier(
    specifier: TS.StringLiteralLike,
    file: TS.SourceFile,
  ): { readonly resolvedModule?: { readonly resolvedFileName: string } } | undefined;
  getRedirectFromOutput(path: string): { readonly resolvedRef: TS.ResolvedProjectReference } | undefined;
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

/** An import in a source file of the program's own. */
interface Taken {
  readonly file: TS.SourceFile | undefined;
  readonly specifier: string;
  readonly at: { readonly start: number; readonly end: number };
}

/** The import by which the file came in, maybe through others that are not the program's own. */
function importOf(
  program: TS.Program,
  taken: TS.SourceFile | undefined,
  counts: (specifier: TS.Node) => boolean = () => true,
): Taken {
  const { getFileIncludeReasons, getSourceFileByPath } = program as unknown as ProgramInternals;
  const reasons = getFileIncludeReasons();
  const seen = new Set<string>();
  const waiting = taken === undefined ? [] : [internals(taken).path];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const { file: importer, index } of reasons.get(path) ?? []) {
      const file = importer === undefined ? undefined : getSourceFileByPath(importer);
      if (importer === undefined || file === undefined || index === undefined) continue;
      const specifier = file.imports?.[index];
      if (specifier !== undefined && !counts(specifier)) continue;
      if (file.isDeclarationFile || program.isSourceFileFromExternalLibrary(file)) waiting.push(importer);
      else if (specifier !== undefined) {
        const at = { start: specifier.getStart(file), end: specifier.end };
        return { file, specifier: specifier.text, at };
      }
    }
  }
  return { file: undefined, specifier: "", at: { start: 0, end: 0 } };
}
