import type { Span } from "./span";

/** Code to insert. `from` is the text on disk that it stands for. `exact` means that it is exactly that text. */
export interface Piece {
  readonly code: string;
  readonly from: Span;
  readonly exact: boolean;
  /** Source maps do not map the code to the file on disk, so that coverage tools do not count it. */
  readonly isUnmapped?: boolean;
}

/** Returns the code as a piece that source maps leave out. */
export function unmapped(piece: Piece): Piece {
  return { ...piece, isUnmapped: true };
}

/** Code that is inserted at one offset of a text. The weave never replaces anything, and never inserts a line break. */
export interface Insertion {
  readonly at: number;
  readonly pieces: readonly Piece[];
}

/** Returns the text as a literal on one line. JSON does not escape U+2028 and U+2029, which are line breaks to a compiler. */
export function stringLiteral(text: string): string {
  return JSON.stringify(text)
    .replaceAll("\u2028", String.raw`\u2028`)
    .replaceAll("\u2029", String.raw`\u2029`);
}
