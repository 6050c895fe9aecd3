import type * as TS from "typescript";
import type { LockableFunction } from "./syntax";

export function isAsync(ts: typeof TS, { modifiers }: Pick<LockableFunction, "modifiers">): boolean {
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false;
}

/**
 * Whether the function says that it returns a `Promise<...>`: with its own return type, or with the function
 * type of the variable or property that it is the value of. Such a function can become `async`.
 */
export function isTypedPromise(
  ts: typeof TS,
  { type }: Pick<LockableFunction, "type">,
  around: readonly TS.Node[],
): boolean {
  if (type !== undefined) return isPromise(ts, type);
  const typed = around.findLast((node) => "type" in node && node.type !== undefined);
  const outer = (typed as { readonly type?: TS.TypeNode } | undefined)?.type;
  return outer !== undefined && ts.isFunctionTypeNode(outer) && isPromise(ts, outer.type);
}

function isPromise(ts: typeof TS, type: TS.TypeNode): boolean {
  return ts.isTypeReferenceNode(type) && ts.isIdentifier(type.typeName) && type.typeName.text === "Promise";
}
