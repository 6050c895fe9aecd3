import type * as TS from "typescript";

/** From where the woven code takes what it calls. */
export const RUNTIME = "lockweave/runtime";

/** As it is woven: `import`, or `const lockweave = require()`. */
export function isRuntimeImport(ts: typeof TS, statement: TS.Statement): boolean {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.some(
      ({ initializer }) => initializer !== undefined && requiresRuntime(ts, initializer),
    );
  }
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

/** `require("lockweave/runtime")`, also as the argument of a compiler's helper. */
export function requiresRuntime(ts: typeof TS, node: TS.Expression): boolean {
  if (!ts.isCallExpression(node)) return false;
  const [first] = node.arguments;
  if (first === undefined) return false;
  if (!ts.isStringLiteral(first)) return requiresRuntime(ts, first);
  return ts.isIdentifier(node.expression) && node.expression.text === "require" && first.text === RUNTIME;
}
