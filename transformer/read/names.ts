import type * as TS from "typescript";
import type { Parser } from "../parser/parser";

/** Names that are in use. */
interface UsedNames {
  has(name: string): boolean;
}

/** Returns the name, or the name with a number if it is in use. */
export function freshName(name: string, ...used: readonly UsedNames[]): string {
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

/** Returns the names of `identifiersIn`, to test for single ones. Walks the node only if the file's text may contain the name. */
export function usedNamesIn(ts: Parser, node: TS.Node, { text }: TS.SourceFile): UsedNames {
  let names: Set<string> | undefined;
  return {
    has(name) {
      const isInText = text.includes("\\u") || new RegExp(`\\b${name}\\b`).test(text); // A name may contain escapes.
      return isInText && (names ??= identifiersIn(ts, node)).has(name);
    },
  };
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
