import type { Source } from "../parser/parser";
import { isExpression } from "./expression";
import type { Word } from "./tag";

/** The whole key of a lock, in the syntax of a template literal: `mutex:${tenant}:${order.id}`. */
export interface Template {
  /** The literal texts. There is one more than there are values, and some may be empty. */
  readonly texts: readonly Word[];
  /** The expressions between the braces. */
  readonly values: readonly Word[];
  /** A `${` whose brace is not closed. */
  readonly unclosed: Word | undefined;
}

/** Parses a template. A value ends at the first brace that makes it an expression. If no brace does, it ends at the first one. */
export function templateIn(source: Source, item: Word): Template {
  const word = (start: number, end: number): Word => ({
    start: item.start + start,
    end: item.start + end,
    text: item.text.slice(start, end),
  });
  const texts: Word[] = [];
  const values: Word[] = [];
  let from = 0;
  for (;;) {
    const opening = item.text.indexOf(OPENING, from);
    const start = opening + OPENING.length;
    const end = opening === -1 ? undefined : endOfValue(source, item.text, start);
    if (end === undefined) {
      const unclosed = opening === -1 ? undefined : word(opening, item.text.length);
      return { texts: [...texts, word(from, item.text.length)], values, unclosed };
    }
    texts.push(word(from, opening));
    values.push(word(start, end));
    from = end + 1;
  }
}

const OPENING = "${";

/** Returns the texts with `${}` between them. The result is the same for keys of the same kind. */
export function kindOf({ texts }: Pick<Template, "texts">): string {
  return kindOfTexts(texts.map(({ text }) => text));
}

/** Returns the texts of a woven template with `${}` between them. */
export function kindOfTexts(texts: readonly string[]): string {
  return texts.join(`${OPENING}}`);
}

function endOfValue(source: Source, text: string, start: number): number | undefined {
  const ends: number[] = [];
  for (let end = text.indexOf("}", start); end !== -1; end = text.indexOf("}", end + 1)) ends.push(end);
  return ends.find((end) => isExpression(source, text.slice(start, end))) ?? ends[0];
}
