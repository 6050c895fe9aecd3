import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { Plan } from "../read/plan";
import { isAsync } from "../read/promised";
import type { Insertion } from "../text/edits";

/** What makes the function `async`: nothing where it is. The word comes behind all other modifiers. */
export function asyncKeyword(ts: Parser, file: TS.SourceFile, { fn, at }: Plan): Insertion[] {
  if (isAsync(ts, fn)) return [];
  const lastModifier = fn.modifiers?.at(-1);
  const start = lastModifier === undefined ? fn.getStart(file) : tokenAfter(ts, file, lastModifier.end);
  const blank = /[\w$]/.test(file.text.charAt(start - 1)) ? " " : ""; // `export default(id) => ...` has none.
  return [{ at: start, pieces: [{ code: `${blank}async `, from: at, exact: false }] }];
}

/** Not the end of the modifier: behind `async` there must be no line break, and a comment may have one. */
function tokenAfter(ts: Parser, file: TS.SourceFile, offset: number): number {
  const scanner = ts.createScanner(
    ts.ScriptTarget.Latest,
    true,
    file.languageVariant,
    file.text,
    undefined,
    offset,
  );
  scanner.scan();
  return scanner.getTokenStart();
}
