import type * as TS from "typescript";
import type { OpenProject } from "./project";
import { declaredNames, referencesIn, type DeclaredName } from "./references";

/** TypeScript's own: that a name, a property, or each of several names is declared, and not used. */
const UNUSED: ReadonlySet<number> = new Set([6133, 6138, 6192, 6196, 6198, 6199]);

/** What TypeScript says of the file, but for names that are not used by anything but a tag. */
export function withoutUsed<D extends TS.Diagnostic>(
  ts: typeof TS,
  { program }: OpenProject,
  fileName: string,
  diagnostics: D[],
): D[] {
  const file = program.getSourceFile(fileName);
  if (file === undefined || !diagnostics.some(({ code }) => UNUSED.has(code))) return diagnostics;
  const used = namesInTags(ts, program, file);
  return diagnostics.filter(({ code, start = 0, length = 0 }) => {
    const isOfUsed = used.some((name) => start <= name.start && name.end <= start + length);
    return !(UNUSED.has(code) && isOfUsed);
  });
}

/** How far imports may be organized: none that a tag may be the only one to use is to be removed. */
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

/** What the tags of the file name of the same file. */
function namesInTags(ts: typeof TS, program: TS.Program, file: TS.SourceFile): DeclaredName[] {
  return referencesIn(ts, program, file)
    .flatMap((reference) => declaredNames(ts, reference))
    .filter((name) => name.fileName === file.fileName);
}
