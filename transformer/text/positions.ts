import type { Insertion, Piece } from "./edits";
import { lineStarts } from "./line-starts";
import type { SourceMapSegment } from "./segment";
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
    const { disk, woven } = this.#starts();
    const offset = (woven[line] ?? 0) + column;
    let start = this.#insertionAt(offset) ?? this.toDisk({ start: offset, end: offset }).start;
    // Inserted code before the line of its tag, such as an import, maps to the place where it was inserted.
    if (start >= (disk[line + 1] ?? Infinity)) start = this.#segmentAt(offset)?.at ?? start;
    return this.#lineAndColumn(start, line);
  }

  /** Returns the line and the column of an offset on disk that is in the line or before it. */
  #lineAndColumn(offset: number, line: number): { line: number; column: number } {
    const { disk } = this.#starts();
    let diskLine = line;
    while ((disk[diskLine] ?? 0) > offset) diskLine -= 1;
    return { line: diskLine, column: offset - (disk[diskLine] ?? 0) };
  }

  /** Returns the same for a source map, or `undefined` if it leaves the position out. */
  mappedTo(line: number, column: number): { line: number; column: number } | undefined {
    const offset = (this.#starts().woven[line] ?? 0) + column;
    const segment = this.#segmentAt(offset);
    if (segment !== undefined && offset < segment.end && segment.piece.isUnmapped === true) return undefined;
    // Babel leads the helpers for an import to its end.
    if (offset === segment?.end && this.#isLineEnd(offset)) return undefined;
    return this.columnToDisk(line, column);
  }

  #isLineEnd(offset: number): boolean {
    return offset === this.#woven.length || /[\n\r]/.test(this.#woven.charAt(offset));
  }

  /**
   * Whether the text on disk has a word, a blank, or a sign at this position that no stack trace shows.
   *
   * @param line counted from 0, like the column
   */
  startsSilently({ line, column }: { readonly line: number; readonly column: number }): boolean {
    const start = (this.#starts().disk[line] ?? 0) + column;
    return /^(?:[\s@})\]]|(?:async|class|const|export|function|import|let|module|exports|var)\b)/.test(
      this.#onDisk.slice(start, start + 10),
    );
  }

  /**
   * Adds the inserted code to the decoded mappings of a source map from the woven text to the text on disk. The mappings count only `\n` as a
   * line break, so a text with other line breaks keeps them as they are.
   */
  addTo(mappings: SourceMapSegment[][]): void {
    if (/\r(?!\n)|[\u2028\u2029]/.test(this.#woven)) return;
    const { woven } = this.#starts();
    const changed = new Set<SourceMapSegment[]>();
    let line = 0;
    for (const { start, at, piece } of this.#segments) {
      while ((woven[line + 1] ?? Infinity) <= start) line += 1;
      const column = start - (woven[line] ?? 0);
      const to = piece.exact ? this.columnToDisk(line, column) : this.#lineAndColumn(at, line);
      const segments = (mappings[line] ??= []);
      segments.push(piece.isUnmapped === true ? [column] : [column, 0, to.line, to.column]);
      changed.add(segments);
    }
    for (const segments of changed) segments.sort(([a], [b]) => a - b);
  }

  #starts(): { readonly disk: number[]; readonly woven: number[] } {
    return (this.#lineStarts ??= { disk: lineStarts(this.#onDisk), woven: lineStarts(this.#woven) });
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
