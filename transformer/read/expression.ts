import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";

/**
 * Whether the text is a single expression that cannot affect the code around it, not even with a comment, and that does not yield. A
 * `yield` would run before the lock is open. The text is parsed like the file, because `<T>x` may be JSX.
 */
export function isExpression({ ts, file: { languageVariant } }: Source, text: string): boolean {
  const name = languageVariant === ts.LanguageVariant.JSX ? "key.tsx" : "key.ts";
  const file = ts.createSourceFile(name, `async function* key() { [${text}]; }`, ts.ScriptTarget.Latest);
  const { parseDiagnostics = [] } = file as { parseDiagnostics?: readonly unknown[] };
  const [fn, another] = file.statements;
  if (parseDiagnostics.length > 0 || another !== undefined) return false;
  const [statement, anotherStatement] =
    fn !== undefined && ts.isFunctionDeclaration(fn) ? (fn.body?.statements ?? []) : [];
  if (statement === undefined || anotherStatement !== undefined || !ts.isExpressionStatement(statement))
    return false;
  const list = statement.expression;
  if (!ts.isArrayLiteralExpression(list) || yields(ts, list)) return false;
  const [element, anotherElement] = list.elements;
  if (element === undefined || anotherElement !== undefined || list.elements.hasTrailingComma) return false;
  return !ts.isSpreadElement(element) && !ts.isOmittedExpression(element);
}

/** Whether a list of expressions awaits something itself. */
export function awaits({ ts }: Source, code: string): boolean {
  const file = ts.createSourceFile("key.ts", `async function key() { [${code}]; }`, ts.ScriptTarget.Latest);
  const visit = (node: TS.Node): boolean =>
    ts.isAwaitExpression(node) ||
    (ts.forEachChild(node, (child) => (!ts.isFunctionLike(child) && visit(child)) || undefined) ?? false);
  return file.statements.some(
    (fn) => ts.isFunctionDeclaration(fn) && fn.body !== undefined && visit(fn.body),
  );
}

function yields(ts: Parser, node: TS.Node): boolean {
  if (ts.isFunctionLike(node)) return false;
  if (ts.isYieldExpression(node)) return true;
  return ts.forEachChild(node, (child) => yields(ts, child) || undefined) ?? false;
}
