/** A range of offsets in the file on disk. */
export interface Span {
  readonly start: number;
  readonly end: number;
}
