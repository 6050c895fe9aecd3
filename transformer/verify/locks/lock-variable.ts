import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";
import { assignedIn } from "../../read/body";
import { declaredInBlock, declaredInFunction, namesIn, varsIn } from "../../read/names";
import { functionAround } from "./canonical";

// The steps of a lock share a variable. In the locked part, it must not mean anything else.

/** Whether each call of the function has a variable of its own with this name. */
export function isLocal(ts: Parser, owner: TS.SignatureDeclaration, name: string): boolean {
  const { body } = owner as { readonly body?: TS.Node };
  const functions = [owner, functionAround(ts, owner)].filter((fn) => fn !== undefined);
  return (
    functions.some((fn) => isAmong(ts, declaredInFunction(ts, fn), name)) ||
    (body !== undefined && isDeclaredIn(ts, body, name))
  );
}

/** Whether the block declares the name for its statements. */
export function isDeclaredIn(ts: Parser, block: TS.Node, name: string): boolean {
  return isAmong(ts, declaredInBlock(ts, block), name);
}

/** Whether the locked part assigns to the variable of the lock, or its `catch` declares that name. */
export function isChanged(ts: Parser, tried: TS.TryStatement, name: string): boolean {
  const isAnother = (node: TS.Node): boolean => {
    const declared = ts.isFunctionLike(node) ? declaredInFunction(ts, node) : declaredInBlock(ts, node);
    return isAmong(ts, declared, name);
  };
  if (isAmong(ts, varsIn(ts, tried), name)) return true;
  if (tried.catchClause !== undefined && isAnother(tried.catchClause)) return true;
  return assignedIn(ts, tried, new Set([name]), isAnother).size > 0;
}

function isAmong(ts: Parser, declared: readonly { readonly name: TS.BindingName }[], name: string): boolean {
  return declared.some((one) => namesIn(ts, one.name).some(({ text }) => text === name));
}
