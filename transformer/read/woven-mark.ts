import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import { directives } from "./syntax";
import { runtimeNames } from "./module-syntax";

/**
 * Returns a test for bodies that contain their lock already. Compiled output keeps the comments, so a second compilation must not lock
 * twice. The shape alone proves nothing. So the calls must use the name under which the file imports our runtime.
 */
export function wovenMark(source: Source): (body: TS.ConciseBody) => boolean {
  const { ts } = source;
  const argumentOf = stepsIn(source);
  if (argumentOf === undefined) return () => false;
  const isArgument = (node: TS.Node | undefined, step: string, lock: string): boolean => {
    const argument = argumentOf(node, step);
    return argument !== undefined && ts.isIdentifier(argument) && argument.text === lock;
  };

  return (body) => {
    if (!ts.isBlock(body)) return false;
    const [opening, loop, tried, another] = body.statements
      .slice(directives(ts, body).length)
      .filter((statement) => !isCheck(ts, statement, argumentOf));
    if (opening === undefined || loop === undefined || tried === undefined || another !== undefined)
      return false;
    if (!ts.isVariableStatement(opening) || !ts.isWhileStatement(loop) || !ts.isTryStatement(tried))
      return false;
    const { declarations } = opening.declarationList;
    const siteIn = ({ initializer }: TS.VariableDeclaration): TS.Expression | undefined =>
      argumentOf(opened(ts, initializer), "open");
    const declared = declarations.find((each) => siteIn(each) !== undefined);
    if (declared === undefined || !ts.isIdentifier(declared.name)) return false;
    const site = siteIn(declared);
    if (site === undefined || !ts.isObjectLiteralExpression(site)) return false;
    const lock = declared.name.text;
    const { expression: condition } = loop;
    const [last] = tried.finallyBlock?.statements ?? [];
    return (
      ts.isPrefixUnaryExpression(condition) &&
      isArgument(condition.operand, "acquire", lock) &&
      last !== undefined &&
      ts.isExpressionStatement(last) &&
      isArgument(last.expression, "release", lock)
    );
  };
}

/** Returns a test for bodies that check the locks that they need. See {@link wovenMark}. */
export function needMark(source: Source): (body: TS.ConciseBody) => boolean {
  const { ts } = source;
  const argumentOf = stepsIn(source);
  if (argumentOf === undefined) return () => false;
  return (body) => {
    if (ts.isBlock(body)) {
      const first = body.statements[directives(ts, body).length];
      return first !== undefined && isCheck(ts, first, argumentOf);
    }
    let first: TS.Node = bare(ts, body);
    while (ts.isBinaryExpression(first) && first.operatorToken.kind === ts.SyntaxKind.CommaToken)
      first = first.left;
    return first !== body && argumentOf(first, "needs") !== undefined;
  };
}

type ArgumentOf = (node: TS.Node | undefined, step: string) => TS.Expression | undefined;

/** Returns a function that returns the first argument of `lockweave.step(...)`, or `undefined` if the file does not import our runtime. */
function stepsIn({ ts, file }: Source): ArgumentOf | undefined {
  const namespaces = new Set(file.statements.flatMap((statement) => runtimeNames(ts, statement)));
  if (namespaces.size === 0) return undefined;
  return (node, step) => {
    const call = node && bare(ts, node);
    if (call === undefined || !ts.isCallExpression(call)) return undefined;
    const { expression } = call;
    const isOurs =
      ts.isPropertyAccessExpression(expression) &&
      expression.name.text === step &&
      ts.isIdentifier(expression.expression) &&
      namespaces.has(expression.expression.text);
    return isOurs ? call.arguments[0] : undefined;
  };
}

/** Whether the statement checks a lock that the function needs: `lockweave.needs(...)`. */
function isCheck(ts: Parser, statement: TS.Statement, argumentOf: ArgumentOf): boolean {
  return ts.isExpressionStatement(statement) && argumentOf(statement.expression, "needs") !== undefined;
}

/** Returns the expression that opens the lock, also from `lockweave.when(...) ? lockweave.open(...) : lockweave.unlocked()`. */
function opened(ts: Parser, initializer: TS.Expression | undefined): TS.Expression | undefined {
  return initializer !== undefined && ts.isConditionalExpression(initializer)
    ? initializer.whenTrue
    : initializer;
}

/** Returns the node without `await` and parentheses. */
function bare(ts: Parser, node: TS.Node): TS.Node {
  let inner = node;
  while (ts.isAwaitExpression(inner) || ts.isParenthesizedExpression(inner)) inner = inner.expression;
  return inner;
}
