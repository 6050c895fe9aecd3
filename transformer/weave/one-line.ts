import type * as TS from "typescript";
import type { Source } from "../parser/parser";

const BREAK = /\r\n|[\n\r\u2028\u2029]/;
const BREAKS = new RegExp(BREAK, "g");

/**
 * Returns the type on one line. The text alone is not enough if line breaks separate members or end comments, so such a type is printed
 * anew.
 */
export function onOneLine(source: Source, type: TS.TypeNode): string {
  const { ts, file } = source;
  const text = type.getText(file);
  if (!BREAK.test(text)) return text;
  const printer = ts.createPrinter({ removeComments: true });
  const flat = ts.visitEachChild(type, (child) => withoutBreaks(source, child), undefined);
  return printer.printNode(ts.EmitHint.Unspecified, flat, file).replaceAll(/\s*[\n\r]\s*/g, " ");
}

/** Replaces the line breaks of template literals by `\n`, because they are part of the text. */
function withoutBreaks(source: Source, node: TS.Node): TS.Node {
  const { ts, file } = source;
  if (ts.isNoSubstitutionTemplateLiteral(node)) {
    return ts.factory.createNoSubstitutionTemplateLiteral(node.text, rawOf(file, node, 1));
  }
  if (ts.isTemplateHead(node)) return ts.factory.createTemplateHead(node.text, rawOf(file, node, 2));
  if (ts.isTemplateMiddle(node)) return ts.factory.createTemplateMiddle(node.text, rawOf(file, node, 2));
  if (ts.isTemplateTail(node)) return ts.factory.createTemplateTail(node.text, rawOf(file, node, 1));
  return ts.visitEachChild(node, (child) => withoutBreaks(source, child), undefined);
}

/** Returns the text between the delimiters at the node's ends. */
function rawOf(file: TS.SourceFile, node: TS.Node, endLength: number): string {
  const raw = file.text.slice(node.getStart(file) + 1, node.end - endLength);
  return raw.replaceAll(BREAKS, (found) =>
    /[\u2028\u2029]/.test(found) ? `\\u${found.charCodeAt(0).toString(16)}` : String.raw`\n`,
  );
}
