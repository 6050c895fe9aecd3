import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { identifiersIn } from "./names";
import { namesIn } from "./scopes";
import type { LockableFunction } from "./syntax";

export function isAsync(ts: Parser, { modifiers }: Pick<LockableFunction, "modifiers">): boolean {
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false;
}

/** A function that says that it returns a `Promise<...>`. Such a function can become `async`. */
export interface Promised {
  /** The promise's type, if its words mean the same inside the function. */
  readonly type: TS.TypeNode | undefined;
}

/** Said with its own return type, or with the function type of the variable or property that it is the value of. */
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
  // What only the outer type declares, or the function declares otherwise: type parameters, and the `id` of `typeof id`.
  const parameters = [...outer.parameters, ...fn.parameters].flatMap(({ name }) => namesIn(ts, name));
  const typeParameters = [...(outer.typeParameters ?? []), ...(fn.typeParameters ?? [])];
  const own = [...parameters, ...typeParameters.map(({ name }) => name)];
  return { type: own.some(({ text }) => names.has(text)) ? undefined : outer.type };
}

/**
 * Whether `Promise` is another one in this file, or in a part of it: bluebird's, maybe. What is added to the global one,
 * in `declare global`, does not count.
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

/** What JavaScript says in the comment of the function, or of what it is the value of. */
export function documentedReturn(ts: Parser, nodes: readonly TS.Node[]): TS.TypeNode | undefined {
  return documentation(nodes).find((tag) => ts.isJSDocReturnTag(tag))?.typeExpression?.type;
}

/** What JavaScript says there, or in the parameter's own comment. */
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

/** `getJSDocTags` wants bound nodes. */
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
