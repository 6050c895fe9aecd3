import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";
import { keepsName, namesStep, precedesBody, isPreparation } from "./forms";

/** Whether the call has the arguments of `lockweave.needs({ site: "Ledger.post", businessFlag: "order" }, id)`. */
export type HasSite = (call: TS.CallExpression) => boolean;

/**
 * Returns the function that checks with this call that its caller holds a lock, or `undefined` if the function may do something else first.
 * A minifier may merge the check with the first step of the body: `return needs({ ... }, id), value`.
 */
export function checkedBy(
  ts: Parser,
  call: TS.CallExpression,
  hasSite: HasSite,
): TS.FunctionLikeDeclaration | undefined {
  if (!namesStep(ts, call.expression, "needs")) return undefined;
  let node: TS.Node = call;
  for (let { parent } = node; !ts.isFunctionLike(parent); { parent } = parent) {
    if (ts.isSourceFile(parent) || !isFirstIn(ts, parent, node, hasSite)) return undefined;
    node = parent;
  }
  const owner = node.parent as TS.FunctionLikeDeclaration;
  return owner.body === node ? owner : undefined;
}

/** Whether the function runs nothing of the body in this node before it reaches `node`. */
function isFirstIn(ts: Parser, parent: TS.Node, node: TS.Node, hasSite: HasSite): boolean {
  if (ts.isBlock(parent)) {
    const before = parent.statements.slice(0, parent.statements.indexOf(node as TS.Statement));
    return before.every(
      (one) => isPreparation(ts, one) || precedesBody(ts, one) || isCheck(ts, one, hasSite),
    );
  }
  if (ts.isBinaryExpression(parent) && parent.right === node)
    return isComma(ts, parent) && isCheck(ts, parent.left, hasSite);
  if (ts.isForInStatement(parent) || ts.isForOfStatement(parent)) return parent.expression === node;
  return ts.forEachChild(parent, (child) => ({ isFirst: child === node }))?.isFirst === true;
}

/** Whether the statement or expression only checks locks: `needs({ ... }, from), needs({ ... }, to);`. */
export function isCheck(ts: Parser, node: TS.Node, hasSite: HasSite): boolean {
  if (ts.isExpressionStatement(node) || ts.isParenthesizedExpression(node))
    return isCheck(ts, node.expression, hasSite);
  if (ts.isBinaryExpression(node))
    return isComma(ts, node) && isCheck(ts, node.left, hasSite) && isCheck(ts, node.right, hasSite);
  if (!ts.isCallExpression(node)) return false;
  return keepsName(ts, node) || (namesStep(ts, node.expression, "needs") && hasSite(node));
}

function isComma(ts: Parser, { operatorToken }: TS.BinaryExpression): boolean {
  return operatorToken.kind === ts.SyntaxKind.CommaToken;
}
