import type * as TS from "typescript";
import type { Parser } from "../parser/parser";

/** From where the woven code takes what it calls. */
export const RUNTIME = "lockweave/runtime";

/** The names by which the statement takes in the runtime, as it is woven or compiled. */
export function runtimeNames(ts: Parser, statement: TS.Statement): string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap(({ name, initializer }) =>
      ts.isIdentifier(name) && initializer !== undefined && requiresRuntime(ts, initializer)
        ? [name.text]
        : [],
    );
  }
  if (importedModule(ts, statement) !== RUNTIME) return [];
  if (ts.isImportEqualsDeclaration(statement)) return [statement.name.text];
  if (!ts.isImportDeclaration(statement)) return [];
  const bindings = statement.importClause?.namedBindings;
  return bindings !== undefined && ts.isNamespaceImport(bindings) ? [bindings.name.text] : [];
}

/** The module that the statement takes in. */
export function importedModule(ts: Parser, statement: TS.Statement): string | undefined {
  const specifier =
    ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)
      ? statement.moduleSpecifier
      : ts.isImportEqualsDeclaration(statement) && ts.isExternalModuleReference(statement.moduleReference)
        ? statement.moduleReference.expression
        : undefined;
  return specifier !== undefined && ts.isStringLiteral(specifier) ? specifier.text : undefined;
}

/** `require("lockweave/runtime")`, also as the argument of a compiler's helper. */
function requiresRuntime(ts: Parser, node: TS.Expression): boolean {
  if (!ts.isCallExpression(node)) return false;
  const [first] = node.arguments;
  if (first === undefined) return false;
  if (!ts.isStringLiteral(first)) return requiresRuntime(ts, first);
  return ts.isIdentifier(node.expression) && node.expression.text === "require" && first.text === RUNTIME;
}
