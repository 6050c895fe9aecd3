import type * as TS from "typescript";
import type { LockableFunction } from "./join-points";
import type { Plan } from "./plan";
import type { Insertion } from "./positions";

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

/** What makes the function `async`: nothing where it is. The word comes behind all other modifiers. */
export function asyncKeyword(ts: typeof TS, file: TS.SourceFile, { fn, at }: Plan): Insertion[] {
  if (isAsync(ts, fn)) return [];
  const lastModifier = fn.modifiers?.at(-1);
  const start = lastModifier === undefined ? fn.getStart(file) : tokenAfter(ts, file, lastModifier.end);
  return [{ at: start, pieces: [{ code: "async ", from: at, exact: false }] }];
}

/** Not the end of the modifier: behind `async` there must be no line break, and a comment may have one. */
function tokenAfter(ts: typeof TS, file: TS.SourceFile, offset: number): number {
  const scanner = ts.createScanner(
    ts.ScriptTarget.Latest,
    true,
    file.languageVariant,
    file.text,
    undefined,
    offset,
  );
  scanner.scan();
  return scanner.getTokenStart();
}
