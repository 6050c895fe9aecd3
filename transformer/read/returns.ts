import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { parameterNames, declaredInBlock, namesIn, statementsOf } from "./names";
import type { LockableFunction } from "./syntax";

/**
 * Whether code runs between the return of a possible promise and the end of the function, so that an added `await` would change what it
 * does. Under `try`, the `catch` would get errors that it is not meant for, and the `finally` would run later. The same is true in the
 * scope of a `using`, and in a loop over an iterator, which is closed when the loop is left.
 */
export function runsCodeAfterReturn(ts: Parser, fn: LockableFunction): boolean {
  return returnsOf(ts, fn).some(({ runsCode }) => runsCode);
}

/** Whether the function may return a promise. */
export function mayReturnPromise(ts: Parser, fn: LockableFunction): boolean {
  const { body } = fn;
  return ts.isBlock(body) ? returnsOf(ts, fn).length > 0 : !isSettled(ts, body, scopeInside(ts, fn));
}

/** Whether the body returns a value, as an expression or with a `return`. */
export function returnsValue(ts: Parser, body: TS.ConciseBody): boolean {
  const isFound = (node: TS.Node): boolean => {
    if (ts.isFunctionLike(node)) return false;
    if (ts.isReturnStatement(node)) return node.expression !== undefined;
    return ts.forEachChild(node, (child) => isFound(child) || undefined) ?? false;
  };
  return !ts.isBlock(body) || isFound(body);
}

export interface Return {
  /** The returned value, which may be a promise. */
  readonly expression: TS.Expression;
  /** Whether code runs between this return and the end of the function. */
  readonly runsCode: boolean;
  /** Whether a part of the expression cannot be a promise. */
  readonly isSettled: (part: TS.Expression) => boolean;
}

/** For each name in scope, whether it is a constant that cannot be a promise. */
type Scope = ReadonlyMap<string, boolean>;

/** Returns the scope inside the function. Even `undefined` may be a parameter. */
export function scopeInside(ts: Parser, fn: LockableFunction): Scope {
  return new Map(parameterNames(ts, fn).map((name) => [name, false]));
}

/** The returns of each function. Several steps of the weave ask for them. */
const known = new WeakMap<LockableFunction, readonly Return[]>();

/** Returns the `return` statements of the body whose value may be a promise. */
export function returnsOf(ts: Parser, fn: LockableFunction): readonly Return[] {
  const returns = known.get(fn) ?? findReturns(ts, fn);
  known.set(fn, returns);
  return returns;
}

function findReturns(ts: Parser, fn: LockableFunction): Return[] {
  const { body } = fn;
  const returns: Return[] = [];
  const isConstant = !mayAddThen(ts, body);
  const visit = (node: TS.Node, outer: Scope, runsCode: boolean): void => {
    if (ts.isFunctionLike(node)) return;
    const scope = isConstant ? scopeIn(ts, node, outer) : outer;
    if (ts.isReturnStatement(node)) {
      const { expression } = node;
      if (expression && !isSettled(ts, expression, scope)) {
        returns.push({ expression, runsCode, isSettled: (part) => isSettled(ts, part, scope) });
      }
    } else if (ts.isTryStatement(node)) {
      const { tryBlock, catchClause, finallyBlock } = node;
      visit(tryBlock, scope, true);
      if (catchClause) visit(catchClause, scope, runsCode || finallyBlock !== undefined);
      if (finallyBlock) visit(finallyBlock, scope, runsCode);
    } else {
      const isLeft = runsCode || runsCodeWhenLeft(ts, node);
      ts.forEachChild(node, (child) => visit(child, scope, isLeft));
    }
  };
  if (ts.isBlock(body)) visit(body, scopeInside(ts, fn), false);
  return returns;
}

/** Whether the code may make an object a thenable, because it mentions `then` other than to call it. */
function mayAddThen(ts: Parser, node: TS.Node): boolean {
  if ((ts.isIdentifier(node) || ts.isStringLiteralLike(node)) && node.text === "then") return true;
  const inner =
    ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)
      ? [node.expression.expression, ...node.arguments]
      : undefined;
  if (inner !== undefined) return inner.some((each) => mayAddThen(ts, each));
  return ts.forEachChild(node, (child) => mayAddThen(ts, child) || undefined) ?? false;
}

function runsCodeWhenLeft(ts: Parser, node: TS.Node): boolean {
  if (ts.isForOfStatement(node)) {
    // The iterator of an array literal has nothing to close.
    const isClosed = node.awaitModifier !== undefined || !ts.isArrayLiteralExpression(node.expression);
    return isClosed || isUsing(ts, node.initializer);
  }
  if (ts.isForStatement(node)) return node.initializer !== undefined && isUsing(ts, node.initializer);
  return statementsOf(ts, node).some(
    (statement) => ts.isVariableStatement(statement) && isUsing(ts, statement.declarationList),
  );
}

function isUsing(ts: Parser, node: TS.Node): boolean {
  return ts.isVariableDeclarationList(node) && (node.flags & ts.NodeFlags.Using) !== 0;
}

/** Returns the scope inside the node. */
function scopeIn(ts: Parser, node: TS.Node, outer: Scope): Scope {
  const declared = declaredInBlock(ts, node);
  if (declared.length === 0) return outer;
  const scope = new Map(outer);
  for (const { name } of declared) for (const { text } of namesIn(ts, name)) scope.set(text, false);
  for (const { name, value, isConst } of declared) {
    if (isConst && ts.isIdentifier(name) && value !== undefined && isSettled(ts, value, scope))
      scope.set(name.text, true);
  }
  return scope;
}

// ---- what cannot be a promise ---------------------------------------------------------------------------

/** Whether the value cannot be a promise. */
export function isSettled(ts: Parser, expression: TS.Expression, scope: Scope = new Map()): boolean {
  const { SyntaxKind: Kind } = ts;
  const isAllSettled = (...all: TS.Expression[]): boolean => all.every((one) => isSettled(ts, one, scope));
  if (
    ts.isParenthesizedExpression(expression) ||
    ts.isAsExpression(expression) ||
    ts.isSatisfiesExpression(expression) ||
    ts.isTypeAssertionExpression(expression) ||
    ts.isNonNullExpression(expression)
  ) {
    return isAllSettled(expression.expression);
  }
  if (ts.isConditionalExpression(expression)) return isAllSettled(expression.whenTrue, expression.whenFalse);
  if (ts.isIdentifier(expression)) return scope.get(expression.text) ?? expression.text === "undefined";
  if (ts.isObjectLiteralExpression(expression)) return isNotThenable(ts, expression);
  if (ts.isBinaryExpression(expression)) {
    const { left, right } = expression;
    const { kind } = expression.operatorToken;
    const isComparison = kind >= Kind.LessThanToken && kind <= Kind.ExclamationEqualsEqualsToken;
    const isArithmetic = kind >= Kind.PlusToken && kind <= Kind.CaretToken;
    const isLogical = [Kind.AmpersandAmpersandToken, Kind.BarBarToken, Kind.QuestionQuestionToken].includes(
      kind,
    );
    if (isLogical) return isAllSettled(left, right);
    if (kind === Kind.EqualsToken || kind === Kind.CommaToken) return isAllSettled(right);
    return isComparison || isArithmetic || kind === Kind.InKeyword || kind === Kind.InstanceOfKeyword;
  }
  return (
    ts.isAwaitExpression(expression) ||
    ts.isLiteralExpression(expression) ||
    ts.isTemplateExpression(expression) ||
    ts.isPrefixUnaryExpression(expression) ||
    ts.isPostfixUnaryExpression(expression) ||
    ts.isTypeOfExpression(expression) ||
    ts.isVoidExpression(expression) ||
    ts.isDeleteExpression(expression) ||
    ts.isArrayLiteralExpression(expression) ||
    ts.isArrowFunction(expression) ||
    ts.isFunctionExpression(expression) ||
    [Kind.TrueKeyword, Kind.FalseKeyword, Kind.NullKeyword].includes(expression.kind)
  );
}

/**
 * Whether the object literal is not a thenable. A spread is assumed not to add a `then`. After an added `await`, the compiler would no
 * longer report errors at the properties, where a `@ts-expect-error` may expect them.
 */
function isNotThenable(ts: Parser, { properties }: TS.ObjectLiteralExpression): boolean {
  return properties.every(({ name }) => {
    if (name === undefined) return true;
    return !ts.isComputedPropertyName(name) && name.text !== "then" && name.text !== "__proto__";
  });
}
