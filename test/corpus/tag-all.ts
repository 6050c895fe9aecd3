import ts from "typescript";

/**
 * Returns the text with a tag before every function that can be locked, and the number of these functions.
 *
 * @param attributes the attributes of each tag. If they are `undefined`, the function gets none
 */
export function tagAll(
  fileName: string,
  text: string,
  attributes: string | ((index: number) => string | undefined),
  tag: "redisLock" | "needsLock" = "redisLock",
): { text: string; count: number } {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  if (!ts.isExternalModule(file)) return { text, count: 0 };
  const places: { at: number; isGenerator: boolean }[] = [];
  const visit = (node: ts.Node): void => {
    if (isLockable(node))
      places.push({ at: node.getStart(file), isGenerator: node.asteriskToken !== undefined });
    ts.forEachChild(node, visit);
  };
  visit(file);
  let tagged = text;
  for (const [index, { at, isGenerator }] of [...places.entries()].toReversed()) {
    const given = typeof attributes === "string" ? attributes : attributes(index);
    if (given === undefined) continue;
    const words = isGenerator ? given.replace(/reentrant=\w+/, "") : given;
    tagged = `${tagged.slice(0, at)}/** @${tag} ${words} */ ${tagged.slice(at)}`;
  }
  return { text: tagged, count: places.length };
}

export type AnyFunction =
  ts.FunctionDeclaration | ts.MethodDeclaration | ts.FunctionExpression | ts.ArrowFunction;

/** Whether a function can be locked. */
export function isLockable(node: ts.Node): node is AnyFunction {
  const isFunction =
    ts.isFunctionDeclaration(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node);
  if (!isFunction || node.body === undefined) return false;
  const isAsync = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false;
  return isAsync || (node.asteriskToken === undefined && isPromise(node.type));
}

function isPromise(type: ts.TypeNode | undefined): boolean {
  return (
    type !== undefined &&
    ts.isTypeReferenceNode(type) &&
    ts.isIdentifier(type.typeName) &&
    type.typeName.text === "Promise"
  );
}
