import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { directives } from "../read/directives";
import type { Insertion, Piece } from "../text/edits";

/** Inserts the pieces as the first statements of the body, after its directives. */
export function startOfBody(ts: Parser, file: TS.SourceFile, body: TS.Block, pieces: Piece[]): Insertion {
  const last = directives(ts, body).at(-1);
  if (last === undefined) return { at: body.getStart(file) + 1, pieces };
  const separator: Piece = { code: ";", from: { start: last.end, end: last.end }, exact: false };
  return { at: last.end, pieces: file.text.charAt(last.end - 1) === ";" ? pieces : [separator, ...pieces] };
}
