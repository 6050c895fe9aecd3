import type * as TS from "typescript";
import type { Parser } from "../parser/parser";

/** Returns the name, or the name with a number if one of the sets contains it. */
export function freshName(name: string, ...used: readonly ReadonlySet<string>[]): string {
  let fresh = name;
  for (let count = 1; used.some((names) => names.has(fresh)); count += 1) fresh = `${name}_${count}`;
  return fresh;
}

/** Returns the names that the node binds or refers to. The names of members do not count. */
export function identifiersIn(ts: Parser, node: TS.Node): Set<string> {
  const names = new Set<string>();
  const visit = (child: TS.Node, parent: TS.Node): void => {
    if (ts.isIdentifier(child) && !isMemberName(ts, child, parent)) names.add(child.text);
    ts.forEachChild(child, (grandchild) => visit(grandchild, child));
  };
  ts.forEachChild(node, (child) => visit(child, node));
  return names;
}

/** Returns the same for the text of an expression in the file. */
export function identifiersOf(ts: Parser, code: string, { languageVariant }: TS.SourceFile): Set<string> {
  const name = languageVariant === ts.LanguageVariant.JSX ? "key.tsx" : "key.ts";
  return identifiersIn(ts, ts.createSourceFile(name, `[${code}]`, ts.ScriptTarget.Latest));
}

function isMemberName(ts: Parser, name: TS.Identifier, parent: TS.Node): boolean {
  const hasMemberName =
    ts.isPropertyAccessExpression(parent) ||
    ts.isPropertyAssignment(parent) ||
    ts.isPropertyDeclaration(parent) ||
    ts.isPropertySignature(parent) ||
    ts.isMethodDeclaration(parent) ||
    ts.isMethodSignature(parent);
  return hasMemberName && parent.name === name;
}
