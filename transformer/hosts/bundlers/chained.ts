import { decode, encode, type SourceMapSegment } from "@jridgewell/sourcemap-codec";

/** A source map as loaders pass it on. */
export interface SourceMap {
  version: number;
  sources: string[];
  names: string[];
  mappings: string;
  sourcesContent?: (string | null)[];
}

/** Combines two source maps: `before` maps the input of the weave to its original source. */
export function chained({ mappings }: SourceMap, before: SourceMap): SourceMap {
  const lines = decode(before.mappings);
  const trace = (segment: SourceMapSegment): SourceMapSegment[] => {
    if (segment.length === 1) return [segment];
    const [column, , line, lineColumn] = segment;
    const origin = lines[line]?.findLast(([at]) => at <= lineColumn);
    return origin === undefined || origin.length === 1 ? [] : [[column, origin[1], origin[2], origin[3]]];
  };
  const traced = decode(mappings).map((line) => line.flatMap(trace));
  return { ...before, names: [], mappings: encode(traced) };
}
