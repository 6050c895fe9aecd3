import type * as TS from "typescript";

/** From where the woven code takes what it calls. */
export const RUNTIME = "lockweave/runtime";

export function isRuntimeImport(ts: typeof TS, statement: TS.Statement): boolean {
  return !ts.isExportDeclaration(statement) && importedModule(ts, statement) === RUNTIME;
}

/** The module that the statement takes in. */
export function importedModule(ts: typeof TS, statement: TS.Statement): string | undefined {
  const specifier =
    ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)
      ? statement.moduleSpecifier
      : ts.isImportEqualsDeclaration(statement) && ts.isExternalModuleReference(statement.moduleReference)
        ? statement.moduleReference.expression
        : undefined;
  return specifier !== undefined && ts.isStringLiteral(specifier) ? specifier.text : undefined;
}
