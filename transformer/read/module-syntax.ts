import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import { identifiersIn } from "./names";

/**
 * How a file imports and exports values. `esm`: `import` and `export`. `commonjs`: TypeScript's `import x = require()` and `export =`.
 * `script`: neither, but it may call `require`. Imports and exports of types do not count, because they are gone when the file runs.
 */
export type ModuleSyntax = "esm" | "commonjs" | "script";

export function moduleSyntax(source: Source): ModuleSyntax {
  const { ts, file } = source;
  const found = new Set(file.statements.map((statement) => syntaxOf(ts, statement)));
  if (found.has("commonjs")) return "commonjs";
  return found.has("esm") || hasMeta(source) ? "esm" : "script";
}

/** Whether the file is JavaScript that uses CommonJS. With an `import`, the compiler would treat it as an ES module without exports. */
export function isCommonJsScript(source: Source): boolean {
  return isJavaScript(source.file) && hasOnlyCommonJs(source);
}

/** Whether the file imports or exports values only through `exports`, `module`, or `require`, which no compiler replaces. */
export function hasOnlyCommonJs(source: Source): boolean {
  const { ts, file } = source;
  if (moduleSyntax(source) !== "script") return false;
  const names = identifiersIn(ts, file);
  return ["exports", "module", "require"].some((name) => names.has(name));
}

function syntaxOf(ts: Parser, statement: TS.Statement): ModuleSyntax {
  if (ts.isImportEqualsDeclaration(statement)) {
    const isRequire = ts.isExternalModuleReference(statement.moduleReference);
    return isRequire && !statement.isTypeOnly ? "commonjs" : "script";
  }
  if (ts.isExportAssignment(statement)) return statement.isExportEquals === true ? "commonjs" : "esm";
  if (ts.isImportDeclaration(statement)) return isOnlyTypes(ts, statement) ? "script" : "esm";
  if (ts.isExportDeclaration(statement)) return statement.isTypeOnly ? "script" : "esm";
  const isOfTypes = ts.isInterfaceDeclaration(statement) || ts.isTypeAliasDeclaration(statement);
  const { modifiers = [] } = statement as Partial<TS.ClassDeclaration>;
  const isExported = modifiers.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
  const isDeclared = modifiers.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword);
  return isExported && !isOfTypes && !isDeclared ? "esm" : "script";
}

/**
 * Whether the statement is an `import type`. An `import { type A }` does not count: it remains as `import {}` if a tool only blanks out
 * types.
 */
function isOnlyTypes(ts: Parser, { importClause }: TS.ImportDeclaration): boolean {
  return importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
}

function hasMeta({ ts, file }: Source): boolean {
  if (!file.text.includes("import")) return false;
  const visit = (node: TS.Node): true | undefined =>
    ts.isMetaProperty(node) && node.keywordToken === ts.SyntaxKind.ImportKeyword
      ? true
      : ts.forEachChild(node, visit);
  return visit(file) ?? false;
}

/** Whether the file is JavaScript, which has no syntax for types. */
export function isJavaScript({ fileName }: TS.SourceFile): boolean {
  return /\.[cm]?jsx?$/.test(fileName);
}

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
