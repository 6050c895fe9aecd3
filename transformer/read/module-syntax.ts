import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { isJavaScript } from "./file-kind";
import { identifiersIn } from "./names";

/**
 * How a file imports and exports values. `esm`: `import` and `export`. `commonjs`: TypeScript's `import x = require()` and `export =`.
 * `script`: neither, but it may call `require`. Imports and exports of types do not count, because they are gone when the file runs.
 */
export type ModuleSyntax = "esm" | "commonjs" | "script";

export function moduleSyntax(ts: Parser, file: TS.SourceFile): ModuleSyntax {
  const found = new Set(file.statements.map((statement) => syntaxOf(ts, statement)));
  if (found.has("commonjs")) return "commonjs";
  return found.has("esm") || hasMeta(ts, file) ? "esm" : "script";
}

/** Whether the file is JavaScript that uses CommonJS. With an `import`, the compiler would treat it as an ES module without exports. */
export function isCommonJsScript(ts: Parser, file: TS.SourceFile): boolean {
  return isJavaScript(file) && hasOnlyCommonJs(ts, file);
}

/** Whether the file imports or exports values, and only with words of CommonJS that no compiler replaces. */
export function hasOnlyCommonJs(ts: Parser, file: TS.SourceFile): boolean {
  if (moduleSyntax(ts, file) !== "script") return false;
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

function hasMeta(ts: Parser, file: TS.SourceFile): boolean {
  if (!file.text.includes("import")) return false;
  const visit = (node: TS.Node): true | undefined =>
    ts.isMetaProperty(node) && node.keywordToken === ts.SyntaxKind.ImportKeyword
      ? true
      : ts.forEachChild(node, visit);
  return visit(file) ?? false;
}
