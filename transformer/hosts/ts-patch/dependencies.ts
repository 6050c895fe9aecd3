import { basename } from "node:path";
import type * as TS from "typescript";
import { problem } from "../../text/problems";
import { tagsInFile, unlockedIn, unlockedOf, type Unlocked } from "../../verify/declared";
import type { PlacedProblem } from "../../verify/project";
import { internals } from "./woven-files";

// What is compiled apart from this program, and taken in by its declarations, was woven by its own build or not at
// all: an error at the import that takes in what is not.

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
      if (unlocked === undefined) return [];
      const declarations = program
        .getSourceFiles()
        .filter((file) => referenceOf(program, file)?.resolvedRef === reference)
        .toSorted((a, b) => Number(outputs.includes(b.fileName)) - Number(outputs.includes(a.fileName)));
      return [placed(program, declarations[0], unlocked)];
    });
  });
}

function placed(
  program: TS.Program,
  declarations: TS.SourceFile | undefined,
  { tags, javaScript }: Unlocked,
): PlacedProblem {
  const { file, at } = importOf(program, declarations);
  const names = tags.map(({ name, flag }) => `\`${name ?? flag}\``).join(", ");
  return { file, problem: problem("unlockedDependency", at, names, basename(javaScript)) };
}

/** TypeScript's own, which its declarations leave out. */
interface ProgramInternals {
  getFileIncludeReasons(): ReadonlyMap<
    string,
    readonly { readonly file?: string; readonly index?: number }[]
  >;
  getSourceFileByPath(path: string): (TS.SourceFile & { readonly imports?: readonly TS.Node[] }) | undefined;
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

/** The import in a source file by which the declarations came in, maybe through other declarations. */
function importOf(
  program: TS.Program,
  declarations: TS.SourceFile | undefined,
): { file: TS.SourceFile | undefined; at: { start: number; end: number } } {
  const { getFileIncludeReasons, getSourceFileByPath } = program as unknown as ProgramInternals;
  const reasons = getFileIncludeReasons();
  const seen = new Set<string>();
  const waiting = declarations === undefined ? [] : [internals(declarations).path];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const { file: importer, index } of reasons.get(path) ?? []) {
      const file = importer === undefined ? undefined : getSourceFileByPath(importer);
      if (importer === undefined || file === undefined || index === undefined) continue;
      if (file.isDeclarationFile) waiting.push(importer);
      const specifier = file.imports?.[index];
      if (!file.isDeclarationFile && specifier !== undefined) {
        return { file, at: { start: specifier.getStart(file), end: specifier.end } };
      }
    }
  }
  return { file: undefined, at: { start: 0, end: 0 } };
}
