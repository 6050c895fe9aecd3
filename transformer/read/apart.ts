import type * as TS from "typescript";
import { assignedParameters, redeclaredParameter } from "./parameters";
import { isAsync, type Promised } from "./promised";
import { returnsThroughCode } from "./returns";
import type { LockableFunction } from "./syntax";

/** A body that becomes a function inside the woven one. */
export interface Apart {
  readonly isAsync: boolean;
  /** Its return type: a node of the file; `"void"` where the compiler would make `never` of it. */
  readonly type: TS.TypeNode | "void" | undefined;
  /** The parameters that it gives other values. */
  readonly assigned: readonly string[];
  /** A parameter that a `var` in it would hide. */
  readonly hidden: string | undefined;
}

/**
 * The body becomes a function of its own
 * - when the lock is reentrant, since it needs an async context of its own;
 * - when it returns promises from where code runs on the way out, since they are to be awaited outside of it;
 * - when the function is no `async` one: what it returns is checked to be a promise, and awaited by nobody else.
 */
export function apartOf(
  ts: typeof TS,
  fn: LockableFunction,
  promised: Promised | undefined,
  reentrant: boolean,
): Apart | undefined {
  const isOwnAsync = isAsync(ts, fn);
  const needsContext = reentrant || (isOwnAsync && ts.isBlock(fn.body) && returnsThroughCode(ts, fn.body));
  if (isOwnAsync && !needsContext) return undefined;
  return {
    isAsync: isOwnAsync,
    type: fn.type ?? (isOwnAsync ? undefined : promised?.type) ?? (neverReturns(ts, fn) ? "void" : undefined),
    assigned: assignedParameters(ts, fn),
    hidden: redeclaredParameter(ts, fn),
  };
}

/**
 * Whether the body only throws: then a method or a declared function is a `Promise<void>` to the compiler, an
 * arrow function a `Promise<never>`, which no overriding method could keep to.
 */
function neverReturns(ts: typeof TS, fn: LockableFunction): boolean {
  const isDeclared = ts.isFunctionDeclaration(fn) || ts.isMethodDeclaration(fn);
  return isDeclared && ts.isBlock(fn.body) && !returnsValue(ts, fn.body) && throwsAtEnd(ts, fn.body);
}

function returnsValue(ts: typeof TS, node: TS.Node): boolean {
  if (ts.isFunctionLike(node)) return false;
  if (ts.isReturnStatement(node)) return node.expression !== undefined;
  return ts.forEachChild(node, (child) => returnsValue(ts, child) || undefined) ?? false;
}

function throwsAtEnd(ts: typeof TS, statement: TS.Statement | undefined): boolean {
  if (statement === undefined) return false;
  if (ts.isBlock(statement)) return throwsAtEnd(ts, statement.statements.at(-1));
  if (ts.isIfStatement(statement)) {
    return throwsAtEnd(ts, statement.thenStatement) && throwsAtEnd(ts, statement.elseStatement);
  }
  if (ts.isTryStatement(statement)) {
    const { tryBlock, catchClause, finallyBlock } = statement;
    const isCaught = catchClause === undefined || throwsAtEnd(ts, catchClause.block);
    return (throwsAtEnd(ts, tryBlock) && isCaught) || throwsAtEnd(ts, finallyBlock);
  }
  return ts.isThrowStatement(statement);
}
