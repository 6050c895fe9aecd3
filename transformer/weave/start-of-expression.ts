import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { isJavaScript } from "../read/file-kind";

/** Returns the start of the expression. In JavaScript, that includes a JSDoc comment before it, which may cast the expression. */
export function startOfExpression(ts: Parser, file: TS.SourceFile, expression: TS.Expression): number {
  return jsDocBefore(ts, file, expression)?.pos ?? expression.getStart(file);
}

/** Whether the expression is a cast: `/** @type {X} *\/ (value)`. */
export function isCast(ts: Parser, file: TS.SourceFile, expression: TS.Expression): boolean {
  return ts.isParenthesizedExpression(expression) && jsDocBefore(ts, file, expression) !== undefined;
}

function jsDocBefore(ts: Parser, file: TS.SourceFile, { pos }: TS.Expression): TS.CommentRange | undefined {
  if (!isJavaScript(file)) return undefined;
  const comments = [
    ...(ts.getTrailingCommentRanges(file.text, pos) ?? []),
    ...(ts.getLeadingCommentRanges(file.text, pos) ?? []),
  ];
  return comments.find((comment) => file.text.startsWith("/**", comment.pos));
}
