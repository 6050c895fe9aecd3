import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { isJavaScript } from "./file-kind";
import { identifiersIn } from "./names";

/**
 * In what words a file takes in and hands on values: `esm`: `import` and `export`; `commonjs`: TypeScript's
 * `import x = require()` and `export =`; `script`: none, but it may call `require`. What is only of types does not count:
 * it is gone when the file runs.
 */
export type ModuleSyntax = "esm" | "commonjs" | "script";

export function moduleSyntax(ts: Parser, file: TS.SourceFile): ModuleSyntax {
  const found = new Set(file.statements.map((statement) => syntaxOf(ts, statement)));
  if (found.has("commonjs")) return "commonjs";
  return found.has("esm") || hasMeta(ts, file) ? "esm" : "script";
}

/** JavaScript in the words of CommonJS: with an `import`, the compiler would take it for an ES module without exports. */
export function isCommonJsScript(ts: Parser, file: TS.SourceFile): boolean {
  return isJavaScript(file) && hasOnlyCommonJs(ts, file);
}

/** Whether the file takes in or hands on values, and only in the words of CommonJS that no compiler replaces. */
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

/** `import type`. (`import { type A }` stays as `import {}` when types are only blanked out.) */
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
