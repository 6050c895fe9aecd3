import type * as TS from "typescript";
import { takenBy, type Taken } from "../../verify/taken";
import { internals } from "./woven-files";

// By which imports a program takes in its files.

/** TypeScript's own, which its declarations leave out. */
export type ImportingFile = TS.SourceFile & { readonly imports?: readonly TS.StringLiteralLike[] };

export interface ProgramInternals {
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

/** The source file of the program that the import takes in, or the declarations. */
export function resolvedFile(
  program: TS.Program,
  specifier: TS.StringLiteralLike,
  file: TS.SourceFile,
): string | undefined {
  const { getResolvedModuleFromModuleSpecifier } = program as unknown as ProgramInternals;
  return getResolvedModuleFromModuleSpecifier(specifier, file)?.resolvedModule?.resolvedFileName;
}

/** The files that this build itself compiles. */
export function ownSources(program: TS.Program): ImportingFile[] {
  return program
    .getSourceFiles()
    .filter((file) => !file.isDeclarationFile && !program.isSourceFileFromExternalLibrary(file));
}

/** The import by which the file came in, maybe through others that are not the program's own. */
export function importOf(
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
        return takenBy(specifier, file);
      }
    }
  }
  return { file: undefined, specifier: "", at: { start: 0, end: 0 } };
}
