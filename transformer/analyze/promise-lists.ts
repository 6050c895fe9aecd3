import type * as TS from "typescript";
import type { Calls } from "./calls";
import { bare, type Callable } from "./syntax";

/** The methods of arrays, sets, and maps that add something. */
export const COLLECTS: ReadonlySet<string> = new Set(["add", "push", "set", "unshift"]);

/** The members that describe or change the content of a list, and return none of it. */
const KEEPS: ReadonlySet<string> = new Set(["clear", "delete", "has", "length", "push", "size", "unshift"]);

/**
 * Returns the variable of a list, if it begins as a new list. A parameter, or another name for an existing list, may be awaited by the code
 * that owns that list.
 */
export function listCalled(
  ts: typeof TS,
  name: TS.Identifier,
  calls: Calls,
): TS.VariableDeclaration | undefined {
  const variable = calls.variableOf(name);
  if (variable?.initializer === undefined || !ts.isVariableDeclaration(variable)) return undefined;
  const value = bare(ts, variable.initializer);
  return ts.isArrayLiteralExpression(value) || ts.isNewExpression(value) ? variable : undefined;
}

/**
 * Whether the function, or one that it waits for, does more with the list than fill it. Awaiting it, looping over it, returning it, and
 * passing it on count as the same here.
 */
export function isListUsed(ts: typeof TS, list: TS.VariableDeclaration, fn: Callable, calls: Calls): boolean {
  const ofFunctions = usedLists.get(calls) ?? new Map<Callable, Map<TS.VariableDeclaration, boolean>>();
  usedLists.set(calls, ofFunctions);
  const known = ofFunctions.get(fn) ?? new Map<TS.VariableDeclaration, boolean>();
  ofFunctions.set(fn, known);
  const isUsed = known.get(list) ?? findsUse(ts, list, fn, calls);
  known.set(list, isUsed);
  return isUsed;
}

/** By the analysis, the function, and the list. The result is cached for all calls that fill the list. */
const usedLists = new WeakMap<Calls, Map<Callable, Map<TS.VariableDeclaration, boolean>>>();

function findsUse(ts: typeof TS, list: TS.VariableDeclaration, fn: Callable, calls: Calls): boolean {
  const isUse = (name: TS.Identifier): boolean => calls.variableOf(name) === list && !isOnlyFilled(ts, name);
  const { name } = list;
  if (ts.isIdentifier(name) && ts.findAncestor(list, (node) => node === fn) !== undefined)
    return calls.names.besides(name).some(isUse); // No other function can name the list.
  const visit = (node: TS.Node): boolean => {
    if (ts.isIdentifier(node)) return isUse(node);
    return ts.forEachChild(node, (child) => visit(child) || undefined) ?? false;
  };
  return functionsOf(fn, calls).some((one) => visit(one));
}

function isOnlyFilled(ts: typeof TS, name: TS.Identifier): boolean {
  let list: TS.Expression = name;
  while (ts.isExpression(list.parent) && bare(ts, list.parent) === name) list = list.parent;
  const { parent } = list;
  if (ts.isVariableDeclaration(parent)) return parent.name === list;
  if (ts.isBinaryExpression(parent)) {
    return parent.left === list && parent.operatorToken.kind === ts.SyntaxKind.EqualsToken;
  }
  if (!ts.isPropertyAccessExpression(parent) || parent.expression !== list) return false;
  if (KEEPS.has(parent.name.text)) return true;
  // `add` and `set` return the list.
  const call = parent.parent;
  return COLLECTS.has(parent.name.text) && ts.isCallExpression(call) && ts.isExpressionStatement(call.parent);
}

/** Returns the function, and the functions that it runs and waits for, at any depth. */
function functionsOf(fn: Callable, calls: Calls): Callable[] {
  const found = new Set([fn]);
  for (const one of found) {
    for (const { runs, isWaited } of calls.in(one)) if (isWaited) for (const run of runs) found.add(run);
  }
  return [...found];
}
