import type * as TS from "typescript";
import { importAt, type SourceImport } from "../../verify/source-import";
import { internals } from "./woven-files";

// Finds the imports through which files become part of a program.

/** Includes an internal field of TypeScript that its declarations omit. */
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

/** Returns the file of the program that the import resolves to: a source or declarations. */
export function resolvedFile(
  program: TS.Program,
  specifier: TS.StringLiteralLike,
  file: TS.SourceFile,
): string | undefined {
  const { getResolvedModuleFromModuleSpecifier } = program as unknown as ProgramInternals;
  return getResolvedModuleFromModuleSpecifier(specifier, file)?.resolvedModule?.resolvedFileName;
}

/** Returns the files that this build compiles itself. */
export function ownSources(program: TS.Program): ImportingFile[] {
  return program
    .getSourceFiles()
    .filter((file) => !file.isDeclarationFile && !program.isSourceFileFromExternalLibrary(file));
}

/** Returns the import in the program's own files that brought in the file, possibly through files of other packages. */
export function importOf(
  program: TS.Program,
  imported: TS.SourceFile | undefined,
  counts: (specifier: TS.Node) => boolean = () => true,
): SourceImport {
  const { getFileIncludeReasons, getSourceFileByPath } = program as unknown as ProgramInternals;
  const reasons = getFileIncludeReasons();
  const seen = new Set<string>();
  const queue = imported === undefined ? [] : [internals(imported).path];
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const { file: importer, index } of reasons.get(path) ?? []) {
      const file = importer === undefined ? undefined : getSourceFileByPath(importer);
      if (importer === undefined || file === undefined || index === undefined) continue;
      const specifier = file.imports?.[index];
      if (specifier !== undefined && !counts(specifier)) continue;
      if (file.isDeclarationFile || program.isSourceFileFromExternalLibrary(file)) queue.push(importer);
      else if (specifier !== undefined) {
        return importAt(specifier, file);
      }
    }
  }
  return { file: undefined, specifier: "", at: { start: 0, end: 0 } };
}
