import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { identifiersIn } from "./names";
import { namesIn } from "./scopes";
import type { LockableFunction } from "./syntax";

export function isAsync(ts: Parser, { modifiers }: Pick<LockableFunction, "modifiers">): boolean {
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false;
}

/** The declaration that a function returns a `Promise<...>`. Such a function can become `async`. */
export interface Promised {
  /** The type of the promise, if its names mean the same inside the function. */
  readonly type: TS.TypeNode | undefined;
}

/**
 * Returns the promise that the function declares: in its own return type, or in the function type of the variable or property whose value
 * it is.
 */
export function promisedBy(
  ts: Parser,
  fn: Pick<LockableFunction, "type" | "typeParameters" | "parameters">,
  around: readonly TS.Node[],
): Promised | undefined {
  const { type } = fn;
  if (type !== undefined) return isPromise(ts, type) ? { type } : undefined;
  const typed = around.findLast((node) => "type" in node && node.type !== undefined);
  const outer = (typed as { readonly type?: TS.TypeNode } | undefined)?.type;
  if (outer === undefined || !ts.isFunctionTypeNode(outer) || !isPromise(ts, outer.type)) return undefined;
  const names = identifiersIn(ts, outer.type);
  // The names that only the outer type declares, or that the function declares, too: type parameters, and the `id` in `typeof id`.
  const parameters = [...outer.parameters, ...fn.parameters].flatMap(({ name }) => namesIn(ts, name));
  const typeParameters = [...(outer.typeParameters ?? []), ...(fn.typeParameters ?? [])];
  const own = [...parameters, ...typeParameters.map(({ name }) => name)];
  return { type: own.some(({ text }) => names.has(text)) ? undefined : outer.type };
}

/**
 * Whether the file, or a part of it, declares a `Promise` of its own, such as an import from bluebird. A `declare global` does not count,
 * because it extends the global one.
 */
export function hasOwnPromise(ts: Parser, node: TS.Node): boolean {
  if (ts.isModuleDeclaration(node)) return false;
  const { SyntaxKind: Kind } = ts;
  const ofTypes: readonly TS.SyntaxKind[] = [
    Kind.ImportClause,
    Kind.ImportSpecifier,
    Kind.ImportEqualsDeclaration,
    Kind.ClassDeclaration,
    Kind.InterfaceDeclaration,
    Kind.TypeAliasDeclaration,
    Kind.TypeParameter,
  ];
  const { name } = node as { readonly name?: TS.Node };
  if (ofTypes.includes(node.kind) && name !== undefined && ts.isIdentifier(name) && name.text === "Promise")
    return true;
  return ts.forEachChild(node, (child) => hasOwnPromise(ts, child) || undefined) ?? false;
}

/** Returns the return type in the JSDoc comment of a JavaScript function, or of the variable or property whose value it is. */
export function documentedReturn(ts: Parser, nodes: readonly TS.Node[]): TS.TypeNode | undefined {
  return documentation(nodes).find((tag) => ts.isJSDocReturnTag(tag))?.typeExpression?.type;
}

/** Returns the type of a parameter in those comments, or in the parameter's own comment. */
export function documentedParameter(
  ts: Parser,
  nodes: readonly TS.Node[],
  parameter: TS.ParameterDeclaration,
): TS.TypeNode | undefined {
  const own = documentation([parameter]).find((tag) => ts.isJSDocTypeTag(tag));
  if (own !== undefined) return own.typeExpression.type;
  const { name } = parameter;
  const isOfIt = (tag: TS.JSDocTag): tag is TS.JSDocParameterTag =>
    ts.isJSDocParameterTag(tag) &&
    ts.isIdentifier(name) &&
    ts.isIdentifier(tag.name) &&
    tag.name.text === name.text;
  return documentation(nodes).find(isOfIt)?.typeExpression?.type;
}

/** Reads the tags from the nodes themselves, because `getJSDocTags` needs bound nodes. */
function documentation(nodes: readonly TS.Node[]): readonly TS.JSDocTag[] {
  const comments = nodes.toReversed().flatMap((node) => {
    const { jsDoc = [] } = node as { readonly jsDoc?: readonly TS.JSDoc[] };
    return jsDoc;
  });
  return comments.flatMap(({ tags }) => tags ?? []);
}

function isPromise(ts: Parser, type: TS.TypeNode): boolean {
  return ts.isTypeReferenceNode(type) && ts.isIdentifier(type.typeName) && type.typeName.text === "Promise";
}
