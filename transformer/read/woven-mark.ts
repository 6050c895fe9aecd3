import type * as TS from "typescript";
import { directives } from "./directives";
import { importedModule, RUNTIME } from "./imports";

/**
 * Tells the bodies of the file that hold their lock already. Compiled output keeps the comments: whoever compiles
 * it again must not lock twice. The shape alone proves nothing: the calls are those of our runtime, by the name
 * under which the file takes it in.
 */
export function wovenMark(ts: typeof TS, file: TS.SourceFile): (body: TS.ConciseBody) => boolean {
  const namespaces = new Set(file.statements.flatMap((statement) => runtimeNames(ts, statement)));
  if (namespaces.size === 0) return () => false;

  /** The lock in `lockweave.step(lock)`. */
  const lockOf = (node: TS.Node | undefined, step: string): string | undefined => {
    const call = node && bare(ts, node);
    if (call === undefined || !ts.isCallExpression(call)) return undefined;
    const {
      expression,
      arguments: [lock],
    } = call;
    const isOurs =
      ts.isPropertyAccessExpression(expression) &&
      expression.name.text === step &&
      ts.isIdentifier(expression.expression) &&
      namespaces.has(expression.expression.text);
    return isOurs && lock !== undefined && ts.isIdentifier(lock) ? lock.text : undefined;
  };
  const isOpen = (node: TS.Expression | undefined): boolean => {
    if (node === undefined || !ts.isCallExpression(node)) return false;
    const {
      expression,
      arguments: [site],
    } = node;
    const isOurs =
      ts.isPropertyAccessExpression(expression) &&
      expression.name.text === "open" &&
      ts.isIdentifier(expression.expression) &&
      namespaces.has(expression.expression.text);
    return isOurs && site !== undefined && ts.isObjectLiteralExpression(site);
  };

  return (body) => {
    if (!ts.isBlock(body)) return false;
    const [opening, loop, tried, another] = body.statements.slice(directives(ts, body).length);
    if (opening === undefined || loop === undefined || tried === undefined || another !== undefined)
      return false;
    if (!ts.isVariableStatement(opening) || !ts.isWhileStatement(loop) || !ts.isTryStatement(tried))
      return false;
    const [declared] = opening.declarationList.declarations;
    if (declared === undefined || !ts.isIdentifier(declared.name) || !isOpen(declared.initializer))
      return false;
    const [last] = tried.finallyBlock?.statements ?? [];
    const isAcquired = ts.isPrefixUnaryExpression(loop.expression)
      ? lockOf(loop.expression.operand, "acquire")
      : undefined;
    const isReleased =
      last && ts.isExpressionStatement(last) ? lockOf(last.expression, "release") : undefined;
    return isAcquired === declared.name.text && isReleased === declared.name.text;
  };
}

/** Without `await` and parentheses. */
function bare(ts: typeof TS, node: TS.Node): TS.Node {
  let inner = node;
  while (ts.isAwaitExpression(inner) || ts.isParenthesizedExpression(inner)) inner = inner.expression;
  return inner;
}

/** The names by which the statement takes in the runtime, as it is woven or compiled. */
function runtimeNames(ts: typeof TS, statement: TS.Statement): string[] {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.flatMap(({ name, initializer }) =>
      ts.isIdentifier(name) && initializer !== undefined && requires(ts, initializer) ? [name.text] : [],
    );
  }
  if (importedModule(ts, statement) !== RUNTIME) return [];
  if (ts.isImportEqualsDeclaration(statement)) return [statement.name.text];
  if (!ts.isImportDeclaration(statement)) return [];
  const bindings = statement.importClause?.namedBindings;
  return bindings !== undefined && ts.isNamespaceImport(bindings) ? [bindings.name.text] : [];
}

/** `require("lockweave/runtime")`, also as the argument of a compiler's helper. */
function requires(ts: typeof TS, node: TS.Expression): boolean {
  if (!ts.isCallExpression(node)) return false;
  const [first] = node.arguments;
  if (first === undefined) return false;
  if (!ts.isStringLiteral(first)) return requires(ts, first);
  return ts.isIdentifier(node.expression) && node.expression.text === "require" && first.text === RUNTIME;
}
