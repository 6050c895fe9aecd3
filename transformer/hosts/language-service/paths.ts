import type * as TS from "typescript";
import { namesIn } from "../../read/names";
import type { AnyFunction } from "../../read/syntax";

// Resolves the paths in a tag with the types of the tagged function.

/** An internal method of TypeScript that its declarations omit. */
interface CheckerInternals {
  tryGetThisTypeAt(node: TS.Node): TS.Type | undefined;
}

/** Returns `order`, `user`, and `[0]` for `order.user[0]`. */
export function stepsOf(path: string): string[] {
  return path.match(/[\p{ID_Continue}$#]+|\[\d+\]/gu) ?? [];
}

export function parametersOf(ts: typeof TS, fn: AnyFunction): TS.Identifier[] {
  return fn.parameters.flatMap(({ name }) => namesIn(ts, name)).filter(({ text }) => text !== "this");
}

export function typeOfThis(checker: TS.TypeChecker, { body }: AnyFunction): TS.Type | undefined {
  return body && (checker as TS.TypeChecker & CheckerInternals).tryGetThisTypeAt(body);
}

/** Returns the type of `this` or of a parameter, without `null` and `undefined`. */
function typeOfRoot(
  ts: typeof TS,
  checker: TS.TypeChecker,
  fn: AnyFunction,
  root: string,
): TS.Type | undefined {
  if (root === "this") return typeOfThis(checker, fn);
  const parameter = parametersOf(ts, fn).find(({ text }) => text === root);
  return parameter && present(checker, checker.getTypeAtLocation(parameter));
}

/** Returns the symbol and the type of a step. An array element has no symbol. */
export function stepInto(
  ts: typeof TS,
  checker: TS.TypeChecker,
  fn: AnyFunction,
  from: TS.Type,
  step: string,
): { readonly symbol: TS.Symbol | undefined; readonly type: TS.Type | undefined } {
  const index = /^\[(\d+)\]$/.exec(step)?.[1];
  const symbol = fieldsOf(ts, checker, from).find((field) => ts.symbolName(field) === (index ?? step));
  if (symbol !== undefined) return { symbol, type: typeOfField(checker, fn, symbol) };
  const element = index === undefined ? undefined : checker.getIndexTypeOfType(from, ts.IndexKind.Number);
  return { symbol, type: element && present(checker, element) };
}

export function typeOfPath(
  ts: typeof TS,
  checker: TS.TypeChecker,
  fn: AnyFunction,
  [root, ...steps]: readonly string[],
): TS.Type | undefined {
  let type = root === undefined ? undefined : typeOfRoot(ts, checker, fn, root);
  for (const step of steps) type = type && stepInto(ts, checker, fn, type, step).type;
  return type;
}

export function typeOfField(checker: TS.TypeChecker, fn: AnyFunction, field: TS.Symbol): TS.Type {
  return present(checker, checker.getTypeOfSymbolAtLocation(field, fn));
}

/** Returns the properties of a type. For a union, these are the properties of all its members. */
export function fieldsOf(ts: typeof TS, checker: TS.TypeChecker, type: TS.Type): TS.Symbol[] {
  return checker.getPropertiesOfType(checker.getApparentType(type));
}

/** Removes `null` and `undefined` from the type. */
export function present(checker: TS.TypeChecker, type: TS.Type): TS.Type {
  return checker.getNonNullableType(type);
}
