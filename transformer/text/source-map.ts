import { decode, encode } from "@jridgewell/sourcemap-codec";
import type { Positions } from "./positions";
import type { SourceMapSegment } from "./segment";

/** A text on disk whose woven form was compiled. */
export interface TextOnDisk {
  readonly text: string;
  readonly positions: Positions;
}

export interface SourceMap {
  readonly sourceRoot?: string;
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly (string | null)[];
  readonly mappings: string;
}

const INLINE_MAP =
  /(?<=\n\/\/# sourceMappingURL=data:application\/json;(?:charset=utf-8;)?base64,)[A-Za-z0-9+/=]+(?=\s*$)/;

/** Returns the comment that ends code with an inline source map. */
export function inlineMap(map: object): string {
  return `\n//# sourceMappingURL=data:application/json;base64,${toBase64(JSON.stringify(map))}\n`;
}

/**
 * Returns a compiler's output with its source map changed to lead to the text on disk. The map is the whole file, or is inline at the end
 * of the code. Returns anything else unchanged.
 */
export function mapToDisk(
  fileName: string,
  output: string,
  sourceOf: (source: string, map: SourceMap) => TextOnDisk | undefined,
): string {
  return editMap(fileName, output, (map) =>
    mappedToDisk(
      map,
      map.sources.map((source) => sourceOf(source, map)),
    ),
  );
}

/** Returns an output with its source map edited. The map is the whole file, or is inline at the end of the code. */
export function editMap(fileName: string, output: string, edit: (map: SourceMap) => SourceMap): string {
  const edited = (json: string): string => JSON.stringify(edit(JSON.parse(json) as SourceMap));
  if (fileName.endsWith(".map")) return edited(output);
  return output.replace(INLINE_MAP, (encoded) => toBase64(edited(Buffer.from(encoded, "base64").toString())));
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

/**
 * Changes the segments of an import that the compiler moved from the end of the file to its start. Node's coverage tool takes all lines
 * before the first position for lines that did not run.
 */
function leadToStart(lines: SourceMapSegment[][]): void {
  const mapped = lines.flat().filter((segment) => segment.length !== 1);
  const [first] = mapped;
  if (first === undefined) return;
  const [, source, line, column] = first;
  const isAtFirst = (segment: SourceMapSegment): boolean =>
    segment[1] === source && segment[2] === line && segment[3] === column;
  const length = mapped.findIndex((segment) => !isAtFirst(segment));
  const isMoved = mapped.every(
    (other) => other[1] === source && (other[2] < line || (other[2] === line && other[3] <= column)),
  );
  if (isMoved && length > 0) for (const segment of mapped.slice(0, length)) segment.splice(2, 2, 0, 0);
}

/**
 * Removes the segments at the first columns of lines with code that is left out. v8-to-istanbul takes that code for the code at the first
 * column. Where a stack trace may show the first column, it stays.
 */
export function startLater(
  lines: SourceMapSegment[][],
  positionsOf: (source: number) => Positions | undefined,
): void {
  let last: SourceMapSegment | undefined;
  for (const line of lines) {
    const before = last;
    last = line.findLast(({ length }) => length !== 1) ?? last;
    const [first, second] = line;
    if (first === undefined || first.length === 1 || first[0] !== 0) continue;
    if (line.every(({ length }) => length !== 1)) continue;
    const [, source, diskLine, column] = first;
    // esbuild repeats the last segment of the line before.
    const isRepeated = [source, diskLine, column].every((each, index) => each === before?.[index + 1]);
    const isSilent = positionsOf(source)?.startsSilently({ line: diskLine, column }) === true;
    if (isRepeated || (isSilent && second?.[0] === 1)) line.shift();
    else if (isSilent) line[0] = [1, source, diskLine, column + 1];
  }
}

/** Returns the map with the positions and the texts of its sources on disk. */
export function mappedToDisk(map: SourceMap, sources: readonly (TextOnDisk | undefined)[]): SourceMap {
  const correctSegment = (segment: SourceMapSegment): SourceMapSegment => {
    if (segment.length === 1) return segment;
    const [column, index, sourceLine, sourceColumn, name] = segment;
    const source = sources[index];
    if (source === undefined) return segment;
    const at = source.positions.mappedTo(sourceLine, sourceColumn);
    if (at === undefined) return [column];
    return name === undefined
      ? [column, index, at.line, at.column]
      : [column, index, at.line, at.column, name];
  };
  const lines: SourceMapSegment[][] = decode(map.mappings).map((line) => line.map(correctSegment));
  startLater(lines, (source) => sources[source]?.positions);
  leadToStart(lines);
  const mappings = encode(lines);
  const { sourcesContent } = map;
  if (sourcesContent === undefined) return { ...map, mappings };
  return {
    ...map,
    mappings,
    sourcesContent: sourcesContent.map((text, index) => sources[index]?.text ?? text),
  };
}
