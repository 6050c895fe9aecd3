import ts from "typescript";
import { isLockable, type AnyFunction } from "./tag-all";

interface Insertion {
  readonly at: number;
  readonly text: string;
}

/** A lock of the memory store delays the body and the result by a few microtasks. */
const TICKS = "await null; ".repeat(8);

/**
 * Returns the text with a delay instead of a lock in every function that can be locked. A test that fails with it depends on the tick in
 * which a body begins or ends.
 */
export function delayAll(fileName: string, text: string): string {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  if (!ts.isExternalModule(file)) return text;
  const insertions: Insertion[] = [];
  const visit = (node: ts.Node): void => {
    if (isLockable(node)) insertions.push(...delayOf(node, file));
    ts.forEachChild(node, visit);
  };
  visit(file);
  // Of two insertions at one place, the later one belongs to an inner function.
  return insertions
    .toSorted((a, b) => a.at - b.at)
    .toReversed()
    .reduce((rest, { at, text: added }) => rest.slice(0, at) + added + rest.slice(at), text);
}

function delayOf(node: AnyFunction, file: ts.SourceFile): readonly Insertion[] {
  const { body } = node;
  if (body === undefined) return [];
  const isAsync = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false;
  const modifier = isAsync ? [] : [{ at: keywordOf(node, file), text: "async " }];
  if (ts.isBlock(body)) {
    return [
      ...modifier,
      { at: body.getStart(file) + 1, text: ` ${TICKS}try {` },
      { at: body.getEnd() - 1, text: `} finally { ${TICKS}} ` },
    ];
  }
  return [
    ...modifier,
    { at: body.getStart(file), text: `{ ${TICKS}try { return (` },
    { at: body.getEnd(), text: `); } finally { ${TICKS}} }` },
  ];
}

/** The place for the word `async`. */
function keywordOf(node: AnyFunction, file: ts.SourceFile): number {
  if (ts.isMethodDeclaration(node)) return node.name.getStart(file);
  if (ts.isArrowFunction(node)) return node.getStart(file);
  const keyword = node.getChildren(file).find(({ kind }) => kind === ts.SyntaxKind.FunctionKeyword);
  return keyword?.getStart(file) ?? node.getStart(file);
}
