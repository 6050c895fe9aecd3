import ts from "typescript";
import { ATTRIBUTE_NAMES, ATTRIBUTES as TABLE } from "../../../../runtime/attributes/tag-attributes";

/** The reported words of `source` are between « and ». The first problem is the expected one. */
export interface Row {
  readonly title: string;
  readonly source: string;
  readonly code: string;
  readonly message: string;
  /** The codes of the other problems, if one mistake looks like several. */
  readonly also?: readonly string[];
  /** The source has no function body that could refuse to run. */
  readonly bodiless?: true;
  readonly fileName?: string;
}

/** A module with a tagged async method of three parameters. */
export function onMethod(tag: string): string {
  return `export class OrderService {
  /**
   * Pays.
   *
   * ${tag}
   */
  async pay(orderNo: string, order: Order, { tenant, lines: [first] }: Cart): Promise<Receipt> {
    return this.charge(orderNo, order, tenant, first);
  }
}`;
}

export const SWITCHES = ATTRIBUTE_NAMES.filter((name) => TABLE[name].kind === "switch");

/** Returns the text without its marks, and the offsets of the text between them. */
export function unmark(source: string): { text: string; start: number; end: number } {
  const start = source.indexOf("«");
  const end = source.indexOf("»") - 1;
  return { text: source.replace("«", "").replace("»", ""), start, end };
}

export function syntaxErrors(fileName: string, text: string): unknown[] {
  const { parseDiagnostics = [] } = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest) as {
    parseDiagnostics?: readonly ts.Diagnostic[];
  };
  return parseDiagnostics.map(({ messageText }) => messageText);
}
