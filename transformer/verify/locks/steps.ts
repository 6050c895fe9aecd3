import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";
import { constantOf, withoutParentheses } from "./canonical";
import {
  awaitedValues,
  declaresOnly,
  isInert,
  isNamed,
  isPreparation,
  keepsArguments,
  keepsName,
  namesStep,
  onlyStatement,
  openedIn,
  precedesBody,
  runsNothing,
} from "./forms";
import { isChanged, isDeclaredIn, isLocal } from "./lock-variable";

/**
 *     ...                                          the compiler's own code: directives, `var _a;`
 *     const lock = lockweave.open(...);            opening, or with a condition `when(...) ? open(...) : unlocked()`
 *     while (!(await lockweave.acquire(lock)))     loop
 *       void (await lockweave.retryCheck(lock));
 *     try { lockweave.assertHeld(lock); BODY }     or runReentrant, if the body is reentrant
 *     catch (error) { throw lockweave.fail(lock, error); }
 *     finally { await lockweave.release(lock); }
 */
export interface Steps {
  readonly owner: TS.SignatureDeclaration;
  readonly lock: string;
  readonly before: readonly TS.Statement[];
  readonly opening: TS.Statement;
  /** The condition of the lock. */
  readonly when: TS.Expression | undefined;
  readonly loop: TS.WhileStatement | TS.ForStatement;
  readonly retry: Retry;
  readonly tried: TS.TryStatement;
}

/**
 * Returns the steps around the call, or `undefined` if they are not all that the function does.
 *
 * @param isCheck whether a statement only checks locks that the function needs
 */
export function stepsAround(
  ts: Parser,
  call: TS.CallExpression,
  isCheck: (statement: TS.Node) => boolean,
): Steps | undefined {
  const conditional = conditionalOf(ts, call);
  const opened = openedIn(ts, conditional?.whole ?? call);
  if (opened === undefined || !namesStep(ts, call.expression, "open")) return undefined;
  const { lock, statement, first } = opened;
  if (first !== undefined && !isCheck(first)) return undefined;
  const block = statement.parent;
  if (!ts.isBlock(block) || !ts.isFunctionLike(block.parent)) return undefined;
  const index = block.statements.indexOf(statement);
  const isInFor = ts.isForStatement(statement);
  const [loop, tried, ...following] = block.statements
    .slice(isInFor ? index : index + 1)
    .filter((other) => !declaresOnly(ts, other));
  const before = block.statements.slice(0, index).filter((other) => !isCheck(other));
  if (following.length > 0 || !before.every((other) => isPreparation(ts, other))) return undefined;
  if (loop === undefined || tried === undefined || !ts.isTryStatement(tried)) return undefined;
  if (!ts.isWhileStatement(loop) && !ts.isForStatement(loop)) return undefined;
  const retry = acquires(ts, loop, lock, isInFor) ? retryIn(ts, loop.statement, lock) : undefined;
  if (retry === undefined || !endsWithRelease(ts, tried, lock)) return undefined;
  if (!isLocal(ts, block.parent, lock) || isChanged(ts, tried, lock)) return undefined;
  const when = conditional?.when;
  return { owner: block.parent, lock, before, opening: statement, when, loop, retry, tried };
}

/** Returns the whole `lockweave.when(...) ? lockweave.open(...) : lockweave.unlocked()` around the call that opens the lock. */
function conditionalOf(
  ts: Parser,
  call: TS.CallExpression,
): { readonly whole: TS.Expression; readonly when: TS.Expression } | undefined {
  const { parent: whole } = call;
  if (!ts.isConditionalExpression(whole) || whole.whenTrue !== call) return undefined;
  const condition = withoutParentheses(ts, whole.condition);
  const other = withoutParentheses(ts, whole.whenFalse);
  const isConditional =
    ts.isCallExpression(condition) &&
    namesStep(ts, condition.expression, "when") &&
    ts.isCallExpression(other) &&
    namesStep(ts, other.expression, "unlocked") &&
    other.arguments.length === 0;
  const [when, another] = isConditional ? condition.arguments : [];
  return when && another === undefined ? { whole, when } : undefined;
}

function acquires(
  ts: Parser,
  loop: TS.WhileStatement | TS.ForStatement,
  lock: string,
  opensLock: boolean,
): boolean {
  if (ts.isForStatement(loop) && (loop.incrementor || (loop.initializer && !opensLock))) return false;
  const condition = ts.isWhileStatement(loop) ? loop.expression : loop.condition;
  return condition !== undefined && negates(ts, condition, "acquire", lock) !== undefined;
}

interface Retry {
  readonly action: "throw" | "skip";
  readonly failure: TS.Expression | undefined;
  /** The value that a skipped call returns, unless it is `undefined`. */
  readonly skipValue?: TS.Expression | undefined;
}

function retryIn(ts: Parser, statement: TS.Statement, lock: string): Retry | undefined {
  const only = onlyStatement(ts, statement);
  if (only !== undefined && ts.isExpressionStatement(only)) {
    const { expression } = only;
    const call = step(
      ts,
      ts.isVoidExpression(expression) ? expression.expression : expression,
      "retryCheck",
      lock,
    );
    return call && { action: "throw", failure: call.arguments[1] };
  }
  if (only === undefined || !ts.isIfStatement(only) || only.elseStatement !== undefined) return undefined;
  const leave = onlyStatement(ts, only.thenStatement);
  if (leave === undefined || !ts.isReturnStatement(leave)) return undefined;
  const returned = leave.expression && (awaitedValues(ts, leave.expression).at(-1) ?? leave.expression);
  const isUndefined = returned === undefined || constantOf(ts, returned)?.value === null;
  const check = negates(ts, only.expression, "retryCheck", lock);
  const skipValue = isUndefined ? undefined : returned;
  return check && { action: "skip", failure: check.arguments[1], skipValue };
}

/** Whether the `try` ends with `catch (error) { throw fail(lock, error); } finally { await release(lock); }`. */
function endsWithRelease(ts: Parser, { catchClause, finallyBlock }: TS.TryStatement, lock: string): boolean {
  const caught = catchClause?.variableDeclaration?.name;
  const thrown = catchClause && onlyStatement(ts, catchClause.block);
  const last = finallyBlock && onlyStatement(ts, finallyBlock);
  if (caught === undefined || !ts.isIdentifier(caught)) return false;
  if (thrown === undefined || !ts.isThrowStatement(thrown)) return false;
  const failed = withoutParentheses(ts, thrown.expression);
  if (!ts.isCallExpression(failed) || !namesStep(ts, failed.expression, "fail")) return false;
  const [first, second, ...others] = failed.arguments;
  const passesBoth = others.length === 0 && isNamed(ts, first, lock) && isNamed(ts, second, caught.text);
  if (!passesBoth || last === undefined || !ts.isExpressionStatement(last)) return false;
  return step(ts, last.expression, "release", lock) !== undefined;
}

/**
 * Whether the body begins with `assertHeld`. A minifier may merge that step with the first one of the body: `return assertHeld(lock),
 * value`. Bundlers and compilers may put code before it that runs nothing of the body: functions of the body, `let x;`, or the `try` of a
 * `using`.
 */
export function beginsHeld(ts: Parser, { tried, lock }: Steps): boolean {
  return beginsWith(ts, tried.tryBlock, lock);
}

function beginsWith(ts: Parser, block: TS.Block, lock: string): boolean {
  if (isDeclaredIn(ts, block, lock)) return false;
  const [first, ...others] = block.statements.filter((statement) => !precedesBody(ts, statement));
  // Its `catch` does not matter, because nothing follows it.
  if (first !== undefined && ts.isTryStatement(first))
    return others.length === 0 && beginsWith(ts, first.tryBlock, lock);
  if (first !== undefined && first.kind === ts.SyntaxKind.DoStatement) return false; // It evaluates its condition last.
  const { expression, initializer } = (first ?? {}) as Partial<TS.ExpressionStatement & TS.ForStatement>;
  const earliest = earliestOf(ts, expression ?? initializer);
  if (earliest === undefined || !ts.isCallExpression(earliest)) return false;
  return calls(ts, earliest, "assertHeld", lock);
}

/** Returns the part of the node that is evaluated first. */
function earliestOf(ts: Parser, node: TS.Node | undefined): TS.Node | undefined {
  if (node === undefined) return undefined;
  if (ts.isParenthesizedExpression(node)) return earliestOf(ts, node.expression);
  if (ts.isBinaryExpression(node)) {
    const first = earliestOf(ts, node.left);
    const isComma = node.operatorToken.kind === ts.SyntaxKind.CommaToken;
    return isComma && first !== undefined && keepsName(ts, first) ? earliestOf(ts, node.right) : first;
  }
  return ts.isConditionalExpression(node) ? earliestOf(ts, node.condition) : node;
}

/** Whether the body runs inside `runReentrant`, after copies of the parameters to which it assigns. */
export function beginsReentrant(ts: Parser, { tried, lock }: Steps): boolean {
  if (isDeclaredIn(ts, tried.tryBlock, lock)) return false;
  const [only, another] = tried.tryBlock.statements.filter((statement) => !isInert(ts, statement));
  if (only === undefined || another !== undefined) return false;
  if (!ts.isReturnStatement(only) && !ts.isExpressionStatement(only)) return false;
  if (only.expression === undefined) return false;
  // A minifier may merge `void arguments;` with it.
  const { left, operatorToken, right } = withoutParentheses(
    ts,
    only.expression,
  ) as Partial<TS.BinaryExpression>;
  const isMerged =
    operatorToken?.kind === ts.SyntaxKind.CommaToken && left !== undefined && keepsArguments(ts, left);
  return step(ts, (isMerged && right) || only.expression, "runReentrant", lock) !== undefined;
}

/** Returns the call of the runtime in `!(await lockweave.acquire(lock))`. */
function negates(ts: Parser, node: TS.Expression, name: string, lock: string): TS.CallExpression | undefined {
  const negated = withoutParentheses(ts, node);
  const isNegation =
    ts.isPrefixUnaryExpression(negated) && negated.operator === ts.SyntaxKind.ExclamationToken;
  return isNegation ? step(ts, negated.operand, name, lock) : undefined;
}

/** Returns the call of the runtime in `await lockweave.acquire(lock)`. */
function step(ts: Parser, node: TS.Expression, name: string, lock: string): TS.CallExpression | undefined {
  return awaitedValues(ts, node).find(
    (value): value is TS.CallExpression => ts.isCallExpression(value) && calls(ts, value, name, lock),
  );
}

/** Whether this is the call of the step, and its other arguments run nothing. */
function calls(ts: Parser, call: TS.CallExpression, name: string, lock: string): boolean {
  const [first, ...others] = call.arguments;
  const isStep = namesStep(ts, call.expression, name) && isNamed(ts, first, lock);
  return isStep && others.every((other) => runsNothing(ts, other));
}
