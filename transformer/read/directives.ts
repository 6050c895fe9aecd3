import type * as TS from "typescript";
import type { Parser } from "../parser/parser";

/** Returns the directives at the start of a body or a file, such as `"use strict"`. */
export function directives(ts: Parser, body: TS.Block | TS.SourceFile): readonly TS.Statement[] {
  const end = body.statements.findIndex(
    (statement) => !(ts.isExpressionStatement(statement) && ts.isStringLiteral(statement.expression)),
  );
  return end === -1 ? body.statements : body.statements.slice(0, end);
}
