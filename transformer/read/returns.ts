import type * as TS from "typescript";

/**
 * Whether a return hands out what may be a promise from where an `await` would be noticed: under `try`, whose
 * `catch` would get errors that it is not meant for, and whose `finally` would run later. `using` is one too.
 */
export function returnsUnderTry(ts: typeof TS, body: TS.Block): boolean {
  return returnsOf(ts, body).some(({ isUnderTry }) => isUnderTry);
}

// ---- the returns of a body ------------------------------------------------------------------------------

export interface Return {
  /** What may be a promise. */
  readonly expression: TS.Expression;
  readonly isUnderTry: boolean;
}

/** By the names in scope, whether they are constants that are no promises. */
type Scope = ReadonlyMap<string, boolean>;

/** The returns of what may be a promise. */
export function returnsOf(ts: typeof TS, body: TS.Block): Return[] {
  const returns: Return[] = [];
  const visit = (node: TS.Node, outer: Scope, isUnderTry: boolean): void => {
    if (ts.isFunctionLike(node)) return;
    const scope = scopeIn(ts, node, outer);
    if (ts.isReturnStatement(node)) {
      const { expression } = node;
      if (expression && !isSettled(ts, expression, scope)) returns.push({ expression, isUnderTry });
    } else if (ts.isTryStatement(node)) {
      const { tryBlock, catchClause, finallyBlock } = node;
      visit(tryBlock, scope, true);
      if (catchClause) visit(catchClause, scope, isUnderTry || finallyBlock !== undefined);
      if (finallyBlock) visit(finallyBlock, scope, isUnderTry);
    } else {
      const isUnder = isUnderTry || statementsOf(ts, node).some((statement) => isUsing(ts, statement));
      ts.forEachChild(node, (child) => visit(child, scope, isUnder));
    }
  };
  visit(body, new Map(), false);
  return returns;
}

function isUsing(ts: typeof TS, statement: TS.Statement): boolean {
  if (!ts.isVariableStatement(statement)) return false;
  return (statement.declarationList.flags & ts.NodeFlags.Using) !== 0;
}

function statementsOf(ts: typeof TS, node: TS.Node): readonly TS.Statement[] {
  if (ts.isBlock(node)) return node.statements;
  return ts.isCaseBlock(node) ? node.clauses.flatMap(({ statements }) => [...statements]) : [];
}

/** The scope inside the node. */
function scopeIn(ts: typeof TS, node: TS.Node, outer: Scope): Scope {
  const declared = declaredIn(ts, node);
  if (declared.length === 0) return outer;
  const scope = new Map(outer);
  for (const { name } of declared) for (const bound of namesIn(ts, name)) scope.set(bound, false);
  for (const { name, value } of declared) {
    if (ts.isIdentifier(name) && value !== undefined && isSettled(ts, value, scope))
      scope.set(name.text, true);
  }
  return scope;
}

interface Declared {
  readonly name: TS.BindingName;
  /** Of a constant. */
  readonly value?: TS.Expression | undefined;
}

function declaredIn(ts: typeof TS, node: TS.Node): Declared[] {
  if (ts.isCatchClause(node))
    return node.variableDeclaration ? [{ name: node.variableDeclaration.name }] : [];
  if (ts.isForStatement(node) || ts.isForInStatement(node) || ts.isForOfStatement(node)) {
    const { initializer } = node;
    const isDeclared = initializer !== undefined && ts.isVariableDeclarationList(initializer);
    return isDeclared ? initializer.declarations.map(({ name }) => ({ name })) : [];
  }
  return statementsOf(ts, node).flatMap((statement): Declared[] => {
    if (ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) {
      return statement.name === undefined ? [] : [{ name: statement.name }];
    }
    if (!ts.isVariableStatement(statement)) return [];
    const { flags, declarations } = statement.declarationList;
    const kind: TS.NodeFlags = flags & ts.NodeFlags.BlockScoped;
    const isConst = kind === ts.NodeFlags.Const;
    return declarations.map(({ name, initializer }) => (isConst ? { name, value: initializer } : { name }));
  });
}

function namesIn(ts: typeof TS, name: TS.BindingName): string[] {
  if (ts.isIdentifier(name)) return [name.text];
  return name.elements.flatMap((element) =>
    ts.isOmittedExpression(element) ? [] : namesIn(ts, element.name),
  );
}

// ---- what cannot be a promise ---------------------------------------------------------------------------

/** Whether the value cannot be a promise. */
export function isSettled(ts: typeof TS, expression: TS.Expression, scope: Scope = new Map()): boolean {
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
  if (ts.isObjectLiteralExpression(expression)) return isNoThenable(ts, expression);
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
 * An object with a `then` is a promise to `await`. That a spread brings one in is not to be expected, and behind
 * an `await` the compiler would no longer report errors at the properties, where `@ts-expect-error` may wait.
 */
function isNoThenable(ts: typeof TS, { properties }: TS.ObjectLiteralExpression): boolean {
  return properties.every(({ name }) => {
    if (name === undefined) return true;
    return !ts.isComputedPropertyName(name) && name.text !== "then" && name.text !== "__proto__";
  });
}
