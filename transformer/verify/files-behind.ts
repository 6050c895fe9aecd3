import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { isLoaded } from "./source-import";
import { packageEntry, isInstalled } from "./package-entry";

/** Returns the files of the workspace that run when this file is imported. The file itself comes first. */
export function filesBehind(ts: Parser, first: string): string[] {
  const files = new Set(isOwnFile(first) ? [first] : []);
  for (const file of files) {
    const source = sourceFileOf(ts, file);
    for (const { text } of specifiersIn(ts, source)) {
      const next = text.startsWith(".")
        ? fileAt(resolve(dirname(file), text))
        : packageEntry(text, dirname(file));
      if (next !== undefined && isOwnFile(next)) files.add(next);
    }
  }
  return [...files];
}

/** Parses the file so that each node knows its parent. */
export function sourceFileOf(ts: Parser, path: string): TS.SourceFile {
  return ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
}

/** Returns the specifiers of all modules that the file loads when it runs. Imports of types are erased. */
export function specifiersIn(ts: Parser, file: TS.SourceFile): TS.StringLiteralLike[] {
  return allSpecifiersIn(ts, file).filter(isLoaded(ts));
}

/** Returns all module specifiers in a file: of `import`, `export`, `import()`, and `require()`. */
export function allSpecifiersIn(ts: Parser, file: TS.SourceFile): TS.StringLiteralLike[] {
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

const SCRIPT = /\.([cm]?)[jt]sx?$/;
const EXTENSIONS = ["", ".ts", ".tsx", ".js", ".jsx", "/index.ts", "/index.js"];

/** Returns the file that a path leads to. It may have the extension of the output, or none. */
function fileAt(path: string): string | undefined {
  const asTypeScript = [".$1ts", ".tsx"].map((extension) => path.replace(SCRIPT, extension));
  return [...EXTENSIONS.map((extension) => path + extension), ...asTypeScript].find(isFile);
}

function isOwnFile(path: string): boolean {
  return SCRIPT.test(path) && !isInstalled(path) && isFile(path);
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
