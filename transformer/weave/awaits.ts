import type * as TS from "typescript";
import { isSettled, returnsOf } from "../read/returns";
import type { Insertion } from "../text/edits";

/**
 * `return work()` inside `try { } finally { }` would run `finally` before the work is done: the returns of
 * the body become `return await`. Nested functions keep their own returns.
 */
export function awaitedReturns(ts: typeof TS, file: TS.SourceFile, body: TS.Block): Insertion[] {
  return returnsOf(ts, body).flatMap(({ expression }) => addAwait(ts, file, expression));
}

/** What makes `expression` into `await expression`: nothing where its value cannot be a promise. */
export function awaited(ts: typeof TS, file: TS.SourceFile, expression: TS.Expression): Insertion[] {
  return isSettled(ts, expression) ? [] : addAwait(ts, file, expression);
}

function addAwait(ts: typeof TS, file: TS.SourceFile, expression: TS.Expression): Insertion[] {
  const start = expression.getStart(file);
  const insertion = (at: number, code: string): Insertion => ({
    at,
    pieces: [{ code, from: { start, end: expression.end }, exact: false }],
  });
  const added = /\w/.test(file.text.charAt(start - 1)) ? " await " : "await "; // `return[0].work()` has no blank.
  return ts.isLeftHandSideExpression(expression)
    ? [insertion(start, added)]
    : [insertion(start, `${added}(`), insertion(expression.end, ")")];
}
