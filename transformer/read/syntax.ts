import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import type { ProblemName } from "../text/problems";
import { identifiersIn, namesIn } from "./names";

/** The functions that may follow a tag. */
export type AnyFunction =
  TS.FunctionDeclaration | TS.MethodDeclaration | TS.FunctionExpression | TS.ArrowFunction;

export type LockableFunction = AnyFunction & { readonly body: TS.ConciseBody };

/** The role of a node for a tag before it, and its part in the name of a function inside it. */
type Role = { readonly name?: string | undefined } & (
  | { readonly is: "function"; readonly fn: AnyFunction }
  /** It names the expression inside, or passes it on. */
  | { readonly is: "around"; readonly inside: TS.Node | undefined }
  | { readonly is: "never"; readonly why: ProblemName; readonly words: readonly string[] }
  | { readonly is: "other" }
);

/** Returns the role of a node. Only this function knows what kinds of syntax there are around functions. */
export function roleOf(source: Source, node: TS.Node): Role {
  const { ts, file } = source;
  const { SyntaxKind: Kind } = ts;
  switch (node.kind) {
    case Kind.FunctionDeclaration: {
      const fn = node as TS.FunctionDeclaration;
      return { is: "function", fn, name: fn.name?.text ?? "default" };
    }
    case Kind.MethodDeclaration:
    case Kind.FunctionExpression:
    case Kind.ArrowFunction: {
      const fn = node as TS.MethodDeclaration | TS.FunctionExpression | TS.ArrowFunction;
      return { is: "function", fn, name: nameIn(source, fn) };
    }
    case Kind.VariableStatement:
      return { is: "around", inside: (node as TS.VariableStatement).declarationList };
    case Kind.VariableDeclarationList: {
      const [only, another] = (node as TS.VariableDeclarationList).declarations;
      return another === undefined
        ? { is: "around", inside: only }
        : { is: "never", why: "severalVariables", words: [] };
    }
    case Kind.VariableDeclaration:
    case Kind.PropertyDeclaration:
    case Kind.PropertyAssignment: {
      const named = node as TS.VariableDeclaration | TS.PropertyDeclaration | TS.PropertyAssignment;
      return { is: "around", inside: named.initializer, name: nameIn(source, named) };
    }
    case Kind.BindingElement: // A function here is only a default, and the value that replaces it would run unlocked.
      return { is: "other", name: nameIn(source, node as TS.BindingElement) };
    case Kind.BinaryExpression: {
      const { left, operatorToken, right } = node as TS.BinaryExpression;
      const name = left.getText(file);
      return operatorToken.kind === Kind.EqualsToken
        ? { is: "around", inside: right, name }
        : { is: "other", name };
    }
    case Kind.ExportAssignment:
      return { is: "around", inside: (node as TS.ExportAssignment).expression, name: "default" };
    case Kind.ExpressionStatement:
    case Kind.ReturnStatement:
    case Kind.ParenthesizedExpression:
    case Kind.AwaitExpression: // The weave adds an `await` to the returns of a tagged outer function.
    case Kind.AsExpression:
    case Kind.SatisfiesExpression:
    case Kind.TypeAssertionExpression:
    case Kind.NonNullExpression:
      return { is: "around", inside: (node as TS.ReturnStatement | TS.AsExpression).expression };
    case Kind.ClassDeclaration:
    case Kind.ClassExpression:
    case Kind.ModuleDeclaration:
      return {
        is: "other",
        name: nameIn(source, node as TS.ClassLikeDeclaration | TS.ModuleDeclaration),
      };
    case Kind.Constructor:
      return { is: "never", why: "constructorTagged", words: [] };
    case Kind.GetAccessor:
    case Kind.SetAccessor:
      return { is: "never", why: "accessorTagged", words: [] };
    case Kind.MethodSignature:
    case Kind.PropertySignature:
      return { is: "never", why: "noBody", words: ["A member of a type"] };
    default:
      return { is: "other" };
  }
}

/** Returns the kind of a node for messages: `a numeric literal`. */
export function describe(ts: Parser, node: TS.Node): string {
  // The first name of a kind is its own. The others are markers such as `FirstStatement`.
  const [name = ""] = Object.entries(ts.SyntaxKind).find(([, kind]) => kind === node.kind) ?? [];
  const words = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
  return `${/^[aeiou]/.test(words) ? "an" : "a"} ${words}`;
}

function nameIn(
  { ts, file }: Source,
  { name }: { readonly name?: TS.PropertyName | TS.BindingName | TS.ModuleName | undefined },
): string | undefined {
  if (name === undefined || ts.isObjectBindingPattern(name) || ts.isArrayBindingPattern(name))
    return undefined;
  return ts.isStringLiteral(name) ? name.text : name.getText(file);
}

/** Returns the directives at the start of a body or a file, such as `"use strict"`. */
export function directives(ts: Parser, body: TS.Block | TS.SourceFile): readonly TS.Statement[] {
  const end = body.statements.findIndex(
    (statement) => !(ts.isExpressionStatement(statement) && ts.isStringLiteral(statement.expression)),
  );
  return end === -1 ? body.statements : body.statements.slice(0, end);
}

// ---- promises and documented types -----------------------------------------------------------------------

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
