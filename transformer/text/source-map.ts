import { decode, encode, type SourceMapSegment } from "@jridgewell/sourcemap-codec";
import type { Positions } from "./positions";

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

/** Returns the map with the positions and the texts of its sources on disk. */
export function mappedToDisk(map: SourceMap, sources: readonly (TextOnDisk | undefined)[]): SourceMap {
  const correctSegment = (segment: SourceMapSegment): SourceMapSegment => {
    if (segment.length === 1) return segment;
    const [column, index, sourceLine, sourceColumn, name] = segment;
    const source = sources[index];
    if (source === undefined) return segment;
    const at = source.positions.columnToDisk(sourceLine, sourceColumn);
    return name === undefined
      ? [column, index, at.line, at.column]
      : [column, index, at.line, at.column, name];
  };
  const mappings = encode(decode(map.mappings).map((line) => line.map(correctSegment)));
  const { sourcesContent } = map;
  if (sourcesContent === undefined) return { ...map, mappings };
  return {
    ...map,
    mappings,
    sourcesContent: sourcesContent.map((text, index) => sources[index]?.text ?? text),
  };
}
