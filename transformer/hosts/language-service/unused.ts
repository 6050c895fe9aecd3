import type * as TS from "typescript";
import { UNUSED_NAMES } from "../diagnostics/own-problems";
import type { OpenProject } from "./project";
import { declaredNames, referencesIn, type DeclaredName } from "./references";

/** Removes diagnostics about unused names that a tag uses. */
export function withoutUsed<D extends TS.Diagnostic>(
  ts: typeof TS,
  { program }: OpenProject,
  fileName: string,
  diagnostics: D[],
): D[] {
  const file = program.getSourceFile(fileName);
  if (file === undefined || !diagnostics.some(({ code }) => UNUSED_NAMES.has(code))) return diagnostics;
  const used = namesInTags(ts, program, file);
  return diagnostics.filter(({ code, start = 0, length = 0 }) => {
    const isOfUsed = used.some((name) => start <= name.start && name.end <= start + length);
    return !(UNUSED_NAMES.has(code) && isOfUsed);
  });
}

/** Returns the mode in which imports may be organized. It removes none if a tag uses an import, which may have no other use. */
export function organizing(
  ts: typeof TS,
  { program }: OpenProject,
  { fileName, mode }: TS.OrganizeImportsArgs,
): TS.OrganizeImportsMode | undefined {
  const file = program.getSourceFile(fileName);
  const names = file === undefined ? [] : namesInTags(ts, program, file);
  const imports = file?.statements.filter((statement) => ts.isImportDeclaration(statement)) ?? [];
  const usesImports = imports.some(({ pos, end }) => names.some(({ start }) => pos <= start && start < end));
  return usesImports ? ts.OrganizeImportsMode.SortAndCombine : mode;
}

/** Returns the names that the file's tags use and the same file declares. */
function namesInTags(ts: typeof TS, program: TS.Program, file: TS.SourceFile): DeclaredName[] {
  return referencesIn(ts, program, file)
    .flatMap((reference) => declaredNames(ts, reference))
    .filter((name) => name.fileName === file.fileName);
}
