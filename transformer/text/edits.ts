import type { Span } from "./span";

/** Code to be woven. `from` is the text on disk that it stands for; `exact` when it is that very text. */
export interface Piece {
  readonly code: string;
  readonly from: Span;
  readonly exact: boolean;
}

/** Code inserted at one place of a text. Nothing is ever replaced, and no insertion has a line break. */
export interface Insertion {
  readonly at: number;
  readonly pieces: readonly Piece[];
}
