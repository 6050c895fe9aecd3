import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import type { Plan } from "../read/plan";
import { isAsync } from "../read/promised";
import type { Insertion } from "../text/edits";

/** Returns the insertion that makes the function `async`, if it is not. The keyword goes after all other modifiers. */
export function asyncKeyword(ts: Parser, file: TS.SourceFile, { fn, at }: Plan): Insertion[] {
  if (isAsync(ts, fn)) return [];
  const lastModifier = fn.modifiers?.at(-1);
  const start = lastModifier === undefined ? fn.getStart(file) : tokenAfter(ts, file, lastModifier.end);
  const blank = /[\w$]/.test(file.text.charAt(start - 1)) ? " " : ""; // `export default(id) => ...` has no space.
  return [{ at: start, pieces: [{ code: `${blank}async `, from: at, exact: false }] }];
}

/**
 * Returns the start of the next token. The end of the modifier would be wrong, because a comment may follow it. A line break in that
 * comment would end up after `async`, where none is allowed.
 */
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
