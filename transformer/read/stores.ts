import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import { callsOf } from "./lockweave-calls";

/**
 * Returns the names of the stores in each of the file's calls of `configure({ stores: { ... } })` and `LockModule.forRoot()`. A call counts
 * as `undefined` if it does not name them in a literal.
 */
export function configuredStores(source: Source): (readonly string[] | undefined)[] {
  const { ts } = source;
  const calls = (["configure", "forRoot"] as const).flatMap((name) => callsOf(source, name, undefined));
  const unknown = callsOf(source, "forRootAsync", undefined).map(() => undefined);
  const known = calls.map(({ arguments: [given] }) => {
    const stores = valueOf(ts, given, "stores");
    if (stores === "none") return [];
    return stores === undefined ? undefined : namesIn(ts, stores);
  });
  return [...known, ...unknown];
}

/** Returns the value of a property, or `"none"` if the object does not have it, or `undefined` if that is unknown. */
function valueOf(
  ts: Parser,
  object: TS.Expression | undefined,
  name: string,
): TS.Expression | "none" | undefined {
  const names = object && namesIn(ts, object);
  if (object === undefined || names === undefined || !ts.isObjectLiteralExpression(object)) return undefined;
  const property = object.properties[names.indexOf(name)];
  if (property === undefined) return "none";
  return ts.isPropertyAssignment(property) ? property.initializer : undefined;
}

function namesIn(ts: Parser, object: TS.Expression): string[] | undefined {
  if (!ts.isObjectLiteralExpression(object)) return undefined;
  const names = object.properties.map(({ name }) =>
    name !== undefined && (ts.isIdentifier(name) || ts.isStringLiteral(name)) ? name.text : undefined,
  );
  return names.every((name) => name !== undefined) ? names : undefined;
}
