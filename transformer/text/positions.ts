import type { Insertion, Piece } from "./edits";
import { lineStarts } from "./line-starts";
import type { Span } from "./span";

interface Segment {
  readonly start: number;
  readonly end: number;
  readonly at: number;
  readonly piece: Piece;
}

/** Maps offsets in the woven text to the text on disk. */
export class Positions {
  readonly #segments: Segment[] = [];
  readonly #onDisk: string;
  #lineStarts: { disk: number[]; woven: number[] } | undefined;
  readonly #woven: string;

  constructor(onDisk: string, woven: string, insertions: readonly Insertion[]) {
    this.#onDisk = onDisk;
    this.#woven = woven;
    let inserted = 0;
    for (const { at, pieces } of insertions) {
      for (const piece of pieces) {
        const start = at + inserted;
        inserted += piece.code.length;
        this.#segments.push({ start, end: at + inserted, at, piece });
      }
    }
  }

  /**
   * Returns the range on disk for a range of the woven text. For inserted code, that is the part of the tag that the code was made from.
   */
  toDisk({ start, end }: Span): Span {
    const first = this.#segmentAt(start);
    if (first === undefined || start >= first.end) {
      const from = this.#offsetAfter(first, start);
      return { start: from, end: Math.max(from, this.#endToDisk(end)) };
    }
    const { piece } = first;
    if (end > first.end) {
      // The range begins in inserted code and ends in the code after it, such as an added `await` and its operand.
      const last = this.#segmentAt(end - 1);
      const endsInInsertion = last !== undefined && end <= last.end;
      if (!endsInInsertion) return { start: first.at, end: this.#endToDisk(end) };
    }
    if (!piece.exact) return piece.from;
    const offset = piece.from.start + start - first.start;
    return { start: offset, end: Math.min(piece.from.end, offset + end - start) };
  }

  /** Returns the line and the column on disk for those in the woven text, all counted from 0. Lines do not change. */
  columnToDisk(line: number, column: number): { line: number; column: number } {
    this.#lineStarts ??= { disk: lineStarts(this.#onDisk), woven: lineStarts(this.#woven) };
    const { disk, woven } = this.#lineStarts;
    const offset = (woven[line] ?? 0) + column;
    let start = this.#insertionAt(offset) ?? this.toDisk({ start: offset, end: offset }).start;
    // Inserted code before the line of its tag, such as an import, maps to the place where it was inserted.
    if (start >= (disk[line + 1] ?? Infinity)) start = this.#segmentAt(offset)?.at ?? start;
    let diskLine = line;
    while ((disk[diskLine] ?? 0) > start) diskLine -= 1;
    return { line: diskLine, column: start - (disk[diskLine] ?? 0) };
  }

  /** Returns the place on disk of an insertion that begins at the offset. The code before it ends there, too. */
  #insertionAt(offset: number): number | undefined {
    const before = this.#segmentAt(offset - 1);
    const here = this.#segmentAt(offset);
    const isFirst = here !== before && (before === undefined || before.end < offset);
    return isFirst && here?.start === offset ? here.at : undefined;
  }

  #endToDisk(end: number): number {
    const segment = this.#segmentAt(end);
    if (segment === undefined) return end;
    return end <= segment.end ? segment.at : this.#offsetAfter(segment, end);
  }

  #offsetAfter(segment: Segment | undefined, offset: number): number {
    return segment === undefined ? offset : segment.at + (offset - segment.end);
  }

  /** Returns the last segment that starts at or before the offset. */
  #segmentAt(offset: number): Segment | undefined {
    let low = 0;
    let high = this.#segments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#segments[middle]?.start ?? Infinity) <= offset) low = middle + 1;
      else high = middle;
    }
    return this.#segments[low - 1];
  }
}
