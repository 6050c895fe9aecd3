import type { Span } from "./span";

/** Code to insert. `from` is the text on disk that it stands for. `exact` means that it is exactly that text. */
export interface Piece {
  readonly code: string;
  readonly from: Span;
  readonly exact: boolean;
}

/** Code that is inserted at one offset of a text. The weave never replaces anything, and never inserts a line break. */
export interface Insertion {
  readonly at: number;
  readonly pieces: readonly Piece[];
}
