import type * as TS from "typescript";
import type { Parser } from "../parser/parser";

/**
 * Returns the names of all functions with a body in the text, which any compiler may have written. A function that is exported under
 * another name also counts under that name. An anonymous function has the name `""`.
 */
export function functionsIn(ts: Parser, path: string, text: string): ReadonlySet<string> {
  const names = new Set<string>();
  const aliases: { readonly name: string; readonly target: string }[] = [];
  visitNamed(ts, ts.createSourceFile(path, text, ts.ScriptTarget.Latest), (node, name) => {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) names.add(name);
    const value = aliasedBy(ts, node);
    if (value !== undefined) aliases.push({ name, target: value });
  });
  const exported = aliases.filter(({ target }) => names.has(target)).map(({ name }) => name);
  return new Set([...names, ...exported]);
}

/** A function with a body. */
export interface NamedFunction {
  readonly name: string;
  readonly fn: TS.SignatureDeclaration;
  readonly body: TS.Node;
}

/** Returns the functions in the file that have a body and one of these names. */
export function functionsNamed(ts: Parser, file: TS.SourceFile, names: ReadonlySet<string>): NamedFunction[] {
  const found: NamedFunction[] = [];
  visitNamed(ts, file, (node, name) => {
    if (!names.has(name) || !ts.isFunctionLike(node)) return;
    const { body } = node as { readonly body?: TS.Node };
    if (body !== undefined) found.push({ name, fn: node, body });
  });
  return found;
}

/** Visits all nodes, each with the name that a function in its place has. */
function visitNamed(ts: Parser, file: TS.SourceFile, use: (node: TS.Node, name: string) => void): void {
  const visit = (node: TS.Node, outerName: string): void => {
    const name = nameOf(ts, node) ?? outerName;
    use(node, name);
    // A class does not give its name to the functions inside it.
    const inside = ts.isFunctionLike(node) || ts.isClassLike(node) ? "" : name;
    ts.forEachChild(node, (child) => visit(child, inside));
  };
  visit(file, "");
}

/** Returns the name that a node gives to a function inside it. */
function nameOf(ts: Parser, node: TS.Node): string | undefined {
  if (isAssignment(ts, node)) {
    const { left } = node;
    if (ts.isPropertyAccessExpression(left)) return left.name.text;
    return ts.isIdentifier(left) ? left.text : undefined;
  }
  const { name } = node as { readonly name?: TS.Node };
  return name !== undefined && "text" in name ? String(name.text) : undefined;
}

/** Returns `a` for `export { a as pay }`, for `exports.pay = a`, and for `{ pay: a }`. */
function aliasedBy(ts: Parser, node: TS.Node): string | undefined {
  if (ts.isExportSpecifier(node)) return node.propertyName?.text;
  const value = isAssignment(ts, node)
    ? node.right
    : ts.isPropertyAssignment(node) || ts.isVariableDeclaration(node)
      ? node.initializer
      : undefined;
  return value !== undefined && ts.isIdentifier(value) ? value.text : undefined;
}

function isAssignment(ts: Parser, node: TS.Node): node is TS.BinaryExpression {
  return ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.EqualsToken;
}
