import type * as TS from "typescript";
import type { LockableFunction } from "../read/syntax";

/** A function whose body can be analyzed. */
export type Callable = LockableFunction;

export function isFunctionWithBody(ts: typeof TS, node: TS.Node): node is Callable {
  const isFunction =
    ts.isFunctionDeclaration(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node);
  return isFunction && node.body !== undefined;
}

/** The methods of a promise that return the next promise. */
export const CONTINUES: ReadonlySet<string> = new Set(["then", "catch", "finally"]);

/** Returns the expression without the syntax that does not change its value. */
export function bare(ts: typeof TS, expression: TS.Expression): TS.Expression {
  let inner = expression;
  while (
    ts.isParenthesizedExpression(inner) ||
    ts.isAsExpression(inner) ||
    ts.isSatisfiesExpression(inner) ||
    ts.isTypeAssertionExpression(inner) ||
    ts.isNonNullExpression(inner)
  ) {
    inner = inner.expression;
  }
  return inner;
}

export function functionIn(ts: typeof TS, expression: TS.Expression): Callable | undefined {
  const inner = bare(ts, expression);
  return isFunctionWithBody(ts, inner) ? inner : undefined;
}

/** Returns the name of the function for messages, such as `Stock.reserve`, or `undefined` if it has no name. */
export function nameOf(ts: typeof TS, fn: Callable): string | undefined {
  const named =
    fn.name === undefined && (ts.isVariableDeclaration(fn.parent) || isPropertyOf(ts, fn.parent))
      ? fn.parent
      : fn;
  const { name } = named as { readonly name?: TS.Node };
  if (name === undefined) return undefined;
  const { parent } = named;
  const own = name.getText();
  const isMember = ts.isClassLike(parent) && parent.name !== undefined;
  return isMember ? `${parent.name?.text ?? ""}.${own}` : own;
}

function isPropertyOf(ts: typeof TS, node: TS.Node): boolean {
  return ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node);
}
