import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { ProblemName } from "../text/problems";

/** The functions that may follow a tag. */
export type AnyFunction =
  TS.FunctionDeclaration | TS.MethodDeclaration | TS.FunctionExpression | TS.ArrowFunction;

export type LockableFunction = AnyFunction & { readonly body: TS.ConciseBody };

/** What a node means for a tag before it, and what it adds to the name of a function inside it. */
export type Role = { readonly name?: string | undefined } & (
  | { readonly is: "function"; readonly fn: AnyFunction }
  /** It names the expression inside, or passes it on. */
  | { readonly is: "around"; readonly inside: TS.Node | undefined }
  | { readonly is: "never"; readonly why: ProblemName; readonly words: readonly string[] }
  | { readonly is: "other" }
);

/** Returns the role of a node. Only this function knows what kinds of syntax there are around functions. */
export function roleOf(ts: Parser, file: TS.SourceFile, node: TS.Node): Role {
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
      return { is: "function", fn, name: nameIn(ts, file, fn) };
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
      return { is: "around", inside: named.initializer, name: nameIn(ts, file, named) };
    }
    case Kind.BindingElement: // A function here is only a default. Any other value would run unlocked.
      return { is: "other", name: nameIn(ts, file, node as TS.BindingElement) };
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
    case Kind.AwaitExpression: // The weave adds it to what a tagged outer function returns.
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
        name: nameIn(ts, file, node as TS.ClassLikeDeclaration | TS.ModuleDeclaration),
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
  ts: Parser,
  file: TS.SourceFile,
  { name }: { readonly name?: TS.PropertyName | TS.BindingName | TS.ModuleName | undefined },
): string | undefined {
  if (name === undefined || ts.isObjectBindingPattern(name) || ts.isArrayBindingPattern(name))
    return undefined;
  return ts.isStringLiteral(name) ? name.text : name.getText(file);
}
