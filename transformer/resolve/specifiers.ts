import { readFileSync } from "node:fs";
import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";

/** Parses the file so that each node knows its parent. */
export function sourceAt(ts: Parser, path: string): Source {
  return { ts, file: ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true) };
}

/** Returns the specifiers of all modules that the file loads when it runs. Imports of types are erased. */
export function specifiersIn(source: Source): TS.StringLiteralLike[] {
  return allSpecifiersIn(source).filter(isLoaded(source.ts));
}

/** Returns all module specifiers in a file: of `import`, `export`, `import()`, and `require()`. */
export function allSpecifiersIn({ ts, file }: Source): TS.StringLiteralLike[] {
  const found: TS.StringLiteralLike[] = [];
  const visit = (node: TS.Node): void => {
    const specifier = specifierOf(ts, node);
    if (specifier !== undefined && ts.isStringLiteralLike(specifier)) found.push(specifier);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function specifierOf(ts: Parser, node: TS.Node): TS.Expression | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isExternalModuleReference(node)) return node.expression;
  if (!ts.isCallExpression(node)) return undefined;
  const { expression, arguments: args } = node;
  const isImport = expression.kind === ts.SyntaxKind.ImportKeyword;
  return isImport || (ts.isIdentifier(expression) && expression.text === "require") ? args[0] : undefined;
}

/** Returns a test for whether an import is still there when the program runs. */
export function isLoaded(ts: Parser): (specifier: TS.Node) => boolean {
  return ({ parent }) => {
    if (ts.isImportDeclaration(parent)) return parent.importClause?.isTypeOnly !== true;
    if (ts.isExportDeclaration(parent)) return !parent.isTypeOnly;
    return parent.kind !== ts.SyntaxKind.LiteralType; // `import("shop").Order`
  };
}
