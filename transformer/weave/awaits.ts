import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { isSettled, returnsOf, scopeInside } from "../read/returns";
import type { LockableFunction } from "../read/syntax";
import type { Insertion } from "../text/edits";
import { isCast, startOfExpression } from "./start-of-expression";

/**
 * Adds `await` to the returns of the body. Without it, `return work()` inside `try { } finally { }` would run `finally` before the promise
 * settles. Nested functions keep their own returns.
 */
export function awaitedReturns(ts: Parser, file: TS.SourceFile, fn: LockableFunction): Insertion[] {
  return returnsOf(ts, fn).flatMap((found) => addAwait(ts, file, found.expression, found.isSettled));
}

/** Returns the insertions that make `await expression` of the function's body. There are none if the expression cannot be a promise. */
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

/**
 * Adds an `await` to each branch separately, because the compiler checks each branch. In `(await (a ? b : c))`, an `any` would hide the
 * type of `c`.
 */
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
  // After `await`, terser reads the slash of a regular expression as a division. Parentheses are clear to every parser.
  const added = /\w/.test(file.text.charAt(start - 1)) ? " await " : "await "; // `return[0].work()` has no space.
  const isUnambiguous =
    ts.isLeftHandSideExpression(expression) && !/[[/`]/.test(file.text.charAt(expression.getStart(file)));
  return isUnambiguous
    ? [insertion(start, added)]
    : [insertion(start, `${added}(`), insertion(expression.end, ")")];
}

/** Returns the branches of the expression, one of which is its value, or `undefined` if it has no branches. */
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
