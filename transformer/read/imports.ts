import type * as TS from "typescript";
import type { Parser } from "../parser/parser";

/** The module that woven code imports. */
export const RUNTIME = "lockweave/runtime";

/** Returns the names under which a woven or compiled statement imports the runtime. */
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

/** Returns the module that the statement imports or re-exports. */
export function importedModule(ts: Parser, statement: TS.Statement): string | undefined {
  const specifier =
    ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)
      ? statement.moduleSpecifier
      : ts.isImportEqualsDeclaration(statement) && ts.isExternalModuleReference(statement.moduleReference)
        ? statement.moduleReference.expression
        : undefined;
  return specifier !== undefined && ts.isStringLiteral(specifier) ? specifier.text : undefined;
}

/** Whether the expression is `require("lockweave/runtime")`, possibly as the argument of a compiler's helper. */
function requiresRuntime(ts: Parser, node: TS.Expression): boolean {
  if (!ts.isCallExpression(node)) return false;
  const [first] = node.arguments;
  if (first === undefined) return false;
  if (!ts.isStringLiteral(first)) return requiresRuntime(ts, first);
  return ts.isIdentifier(node.expression) && node.expression.text === "require" && first.text === RUNTIME;
}
