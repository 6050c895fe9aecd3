import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { directives } from "../read/directives";
import { isJavaScript } from "../read/file-kind";
import { importedModule, RUNTIME } from "../read/imports";
import type { Insertion, Piece } from "../text/edits";
import type { Span } from "../text/span";

/** How the emitted file takes in other modules. */
export type ModuleFormat =
  | "esm"
  | "commonjs"
  /** CommonJS whose syntax must be erasable, and must be kept: it has no word for imports at all. */
  | "require"
  /** CommonJS that runs as it stands, once its types are gone: nothing hoists its imports. */
  | "script"
  /** JavaScript in the words of CommonJS, whose host moves the line up: before the first comment, it would take its types away. */
  | "raised script";

/**
 * Before the first import (`export from` is one too), so that the runtime is there when an import cycle calls
 * into this file early. A file without imports is in no cycle: there it goes to the end, where no comment
 * can mistake it for the declaration that it documents. (Imports are hoisted; for CommonJS the ts-patch host moves it up.)
 *
 * @param then what the file is to do with it as soon as it has it
 */
export function importRuntime(
  ts: Parser,
  file: TS.SourceFile,
  module: ModuleFormat,
  namespace: string,
  from: Span,
  then: readonly Piece[] = [],
): Insertion {
  if (module === "script") return beforeAllElse(ts, file, IMPORTS.script(namespace), from, then);
  const isEsm = isJavaScript(file) && module !== "raised script"; // It knows no `import x = require()`.
  const code = IMPORTS[isEsm ? "esm" : module](namespace);
  const firstImport = file.statements.find(
    (statement) => ts.isImportEqualsDeclaration(statement) || importedModule(ts, statement) !== undefined,
  );
  const piece = (text: string): Piece => ({ code: text, from, exact: false });
  if (firstImport !== undefined) {
    return { at: firstImport.getStart(file), pieces: [piece(code), ...then, piece(" ")] };
  }
  const last = file.statements.at(-1);
  const separator = last !== undefined && endsItself(ts, last, file) ? "" : ";";
  return { at: last?.end ?? file.end, pieces: [piece(`${separator} ${code}`), ...then] };
}

/** Nothing hoists it, and functions of the file may be called as soon as it runs. */
function beforeAllElse(
  ts: Parser,
  file: TS.SourceFile,
  code: string,
  from: Span,
  then: readonly Piece[],
): Insertion {
  const piece = (text: string): Piece => ({ code: text, from, exact: false });
  const [hashbang = ""] = /^#!.*\s*/.exec(file.text) ?? [];
  // Of a comment behind other code on its line, the compiler takes no types.
  const isTyped = isJavaScript(file) && file.text.startsWith("/**", hashbang.length);
  const documented = isTyped ? file.statements.slice(0, 1).find((first) => isFunction(ts, first)) : undefined;
  const before = directives(ts, file).at(-1) ?? documented;
  if (before === undefined) return { at: hashbang.length, pieces: [piece(code), ...then, piece(" ")] };
  const separator = endsItself(ts, before, file) ? "" : ";";
  return { at: before.end, pieces: [piece(`${separator} ${code}`), ...then] };
}

/** A function that it declares or exports: so it runs none. */
function isFunction(ts: Parser, statement: TS.Statement): boolean {
  const isOne = (value: TS.Expression | undefined): boolean =>
    value !== undefined && (ts.isArrowFunction(value) || ts.isFunctionExpression(value));
  if (ts.isFunctionDeclaration(statement)) return true;
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.every(({ initializer }) => isOne(initializer));
  if (!ts.isExpressionStatement(statement) || !ts.isBinaryExpression(statement.expression)) return false;
  const { left, right, operatorToken } = statement.expression;
  return (
    operatorToken.kind === ts.SyntaxKind.EqualsToken && ts.isPropertyAccessExpression(left) && isOne(right)
  );
}

/** Whether code may follow the statement on its line. */
function endsItself(ts: Parser, statement: TS.Statement, file: TS.SourceFile): boolean {
  const isDeclaration =
    (ts.isFunctionDeclaration(statement) && statement.body !== undefined) || // Without, a brace ends its type.
    ts.isClassDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isEnumDeclaration(statement) ||
    ts.isModuleDeclaration(statement);
  const last = file.text.charAt(statement.end - 1);
  return last === ";" || (last === "}" && (isDeclaration || ts.isBlock(statement)));
}

const script = (namespace: string): string => `const ${namespace} = require("${RUNTIME}");`;

const IMPORTS: Readonly<Record<ModuleFormat, (namespace: string) => string>> = {
  esm: (namespace) => `import * as ${namespace} from "${RUNTIME}";`,
  commonjs: (namespace) => `import ${namespace} = require("${RUNTIME}");`,
  script,
  "raised script": script,
  require: (namespace) => `const ${namespace}: typeof import("${RUNTIME}") = require("${RUNTIME}");`,
};
