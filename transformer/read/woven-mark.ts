import type * as TS from "typescript";
import { directives } from "./directives";

/** Compiled output keeps the comments: whoever compiles it again must not lock twice. */
export function isWoven(ts: typeof TS, body: TS.ConciseBody): boolean {
  if (!ts.isBlock(body)) return false;
  const [first, second] = body.statements.slice(directives(ts, body).length);
  if (first === undefined || second === undefined) return false;
  if (!ts.isVariableStatement(first) || !ts.isWhileStatement(second)) return false;
  const call = first.declarationList.declarations[0]?.initializer;
  if (call === undefined || !ts.isCallExpression(call)) return false;
  const [site] = call.arguments;
  if (site === undefined || !ts.isObjectLiteralExpression(site)) return false;
  const name = site.properties[0]?.name;
  const isOpen = ts.isPropertyAccessExpression(call.expression) && call.expression.name.text === "open";
  return isOpen && name !== undefined && ts.isIdentifier(name) && name.text === "site";
}
