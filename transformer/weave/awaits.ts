import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { isSettled, returnsOf, scopeInside } from "../read/returns";
import type { LockableFunction } from "../read/syntax";
import type { Insertion } from "../text/edits";
import { isCast, startOfExpression } from "./start-of-expression";

/**
 * `return work()` inside `try { } finally { }` would run `finally` before the work is done: the returns of
 * the body become `return await`. Nested functions keep their own returns.
 */
export function awaitedReturns(ts: Parser, file: TS.SourceFile, fn: LockableFunction): Insertion[] {
  return returnsOf(ts, fn).flatMap((found) => addAwait(ts, file, found.expression, found.isSettled));
}

/** What makes `expression`, which the function is, into `await expression`: nothing where it cannot be a promise. */
export function awaited(
  ts: Parser,
  file: TS.SourceFile,
  fn: LockableFunction,
  expression: TS.Expression,
): Insertion[] {
  const scope = scopeInside(ts, fn);
  const isPartSettled = (part: TS.Expression): boolean => isSettled(ts, part, scope);
  return isPartSettled(expression) ? [] : addAwait(ts, file, expression, isPartSettled);
}

/** To each branch by itself, as the compiler checks them: `(await (a ? b : c))` would hide `c` behind an `any`. */
function addAwait(
  ts: Parser,
  file: TS.SourceFile,
  expression: TS.Expression,
  isPartSettled: (part: TS.Expression) => boolean,
): Insertion[] {
  const branches = branchesOf(ts, file, expression);
  if (branches !== undefined) {
    return branches.flatMap((branch) =>
      isPartSettled(branch) ? [] : addAwait(ts, file, branch, isPartSettled),
    );
  }
  const start = startOfExpression(ts, file, expression);
  const from = { start: expression.getStart(file), end: expression.end };
  const insertion = (at: number, code: string): Insertion => ({ at, pieces: [{ code, from, exact: false }] });
  // After `await`, terser takes the slash of a regular expression for a division. Parentheses are clear to every parser.
  const added = /\w/.test(file.text.charAt(start - 1)) ? " await " : "await "; // `return[0].work()` has no blank.
  const isClear =
    ts.isLeftHandSideExpression(expression) && !/[[/`]/.test(file.text.charAt(expression.getStart(file)));
  return isClear
    ? [insertion(start, added)]
    : [insertion(start, `${added}(`), insertion(expression.end, ")")];
}

/** Those of which one is the value; `undefined` of anything else. */
function branchesOf(
  ts: Parser,
  file: TS.SourceFile,
  expression: TS.Expression,
): readonly TS.Expression[] | undefined {
  if (ts.isConditionalExpression(expression)) return [expression.whenTrue, expression.whenFalse];
  if (!ts.isParenthesizedExpression(expression) || isCast(ts, file, expression)) return undefined;
  const isBranching = branchesOf(ts, file, expression.expression) !== undefined;
  return isBranching ? [expression.expression] : undefined;
}
