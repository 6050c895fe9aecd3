import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import { directives } from "../read/syntax";
import { isJavaScript, importedModule, RUNTIME } from "../read/module-syntax";
import { type Insertion, type Piece, stringLiteral, unmapped } from "../text/edits";
import type { Span } from "../text/span";
import { DEFAULT_STORE } from "../../runtime/base/limits";
import type { PlannedTag } from "../read/plan";

/** How the emitted file imports other modules. */
export type ModuleFormat =
  | "esm"
  | "commonjs"
  /** CommonJS whose syntax must be erasable and is kept as it is. It has no import statement at all. */
  | "require"
  /** CommonJS that runs as it is, after its types are removed. Nothing hoists its imports. */
  | "script"
  /**
   * JavaScript that uses CommonJS. The host moves the import up in the output. Before the first comment of the source, the import would
   * take the types of that comment away.
   */
  | "raised script";

/**
 * Imports the runtime before the first import or `export from`, so that it is loaded when an import cycle calls into this file early. A
 * file without imports is in no cycle. There the import goes to the end, where it cannot come between a comment and the declaration that
 * the comment documents. Imports are hoisted, and for CommonJS the ts-patch host moves the import up.
 *
 * @param then code that runs directly after the import
 */
export function importRuntime(
  source: Source,
  module: ModuleFormat,
  namespace: string,
  from: Span,
  then: readonly Piece[] = [],
): Insertion {
  const { ts, file } = source;
  if (module === "script") return importFirst(source, IMPORTS.script(namespace), from, then);
  const isEsm = isJavaScript(file) && module !== "raised script"; // JavaScript has no `import x = require()`.
  const code = IMPORTS[isEsm ? "esm" : module](namespace);
  const firstImport = file.statements.find(
    (statement) => ts.isImportEqualsDeclaration(statement) || importedModule(ts, statement) !== undefined,
  );
  const piece = (text: string): Piece => ({ code: text, from, exact: false });
  if (firstImport !== undefined) {
    return { at: firstImport.getStart(file), pieces: [piece(code), ...then, unmapped(piece(" "))] };
  }
  const last = file.statements.at(-1);
  const separator = last !== undefined && isTerminated(source, last) ? "" : ";";
  return { at: last?.end ?? file.end, pieces: [piece(`${separator} ${code}`), ...then] };
}

/**
 * Imports the runtime before all other code, because nothing hoists the import, and functions of the file may be called as soon as it runs.
 */
function importFirst(source: Source, code: string, from: Span, then: readonly Piece[]): Insertion {
  const { ts, file } = source;
  const piece = (text: string): Piece => ({ code: text, from, exact: false });
  const [hashbang = ""] = /^#!.*\s*/.exec(file.text) ?? [];
  // The compiler ignores the types of a comment that follows other code on its line.
  const isTyped = isJavaScript(file) && file.text.startsWith("/**", hashbang.length);
  const documented = isTyped
    ? file.statements.slice(0, 1).find((first) => isFunctionStatement(ts, first))
    : undefined;
  const before = directives(ts, file).at(-1) ?? documented;
  if (before === undefined) return { at: hashbang.length, pieces: [piece(code), ...then, piece(" ")] };
  const separator = isTerminated(source, before) ? "" : ";";
  return { at: before.end, pieces: [piece(`${separator} ${code}`), ...then] };
}

/** Whether the statement only declares or exports functions, and so runs none. */
function isFunctionStatement(ts: Parser, statement: TS.Statement): boolean {
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
function isTerminated({ ts, file }: Source, statement: TS.Statement): boolean {
  const isDeclaration =
    (ts.isFunctionDeclaration(statement) && statement.body !== undefined) || // Without a body, the brace ends its type.
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

/**
 * Returns the statements that report the stores of the module's tags to the runtime when the module loads:
 * `lockweave.needsStore("payments", "OrderService.pay");`. So a store that nobody configured causes an error when the application starts.
 */
export function requiredStores(plans: readonly PlannedTag[], namespace: string): Piece[] {
  const byStore = new Map<string, PlannedTag[]>();
  for (const plan of plans) {
    const { store } = plan;
    if (store === undefined || store === DEFAULT_STORE) continue;
    byStore.set(store, [...(byStore.get(store) ?? []), plan]);
  }
  return [...byStore].flatMap(([store, [first, ...others]]) => {
    if (first === undefined) return [];
    const sites = new Set([first, ...others].map(({ site }) => stringLiteral(site)));
    const code = ` ${namespace}.needsStore(${[stringLiteral(store), ...sites].join(", ")});`;
    return [{ code, from: first.at, exact: false }];
  });
}

/**
 * Returns the statement that prepares the runtime for functions with `@needsLock` when the module loads, so that it can tell
 * later bodies apart.
 */
export function expectedNeeds([first]: readonly PlannedTag[], namespace: string): Piece[] {
  return first === undefined ? [] : [{ code: ` ${namespace}.expectNeeds();`, from: first.at, exact: false }];
}
