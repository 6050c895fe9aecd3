import { decode, encode, type SourceMapSegment } from "@jridgewell/sourcemap-codec";

/** As loaders hand it on. */
export interface SourceMap {
  version: number;
  sources: string[];
  names: string[];
  mappings: string;
  sourcesContent?: (string | null)[];
}

/** The map of a text whose source was itself made from another, as `before` says. */
export function chained({ mappings }: SourceMap, before: SourceMap): SourceMap {
  const lines = decode(before.mappings);
  const lead = (segment: SourceMapSegment): SourceMapSegment[] => {
    if (segment.length === 1) return [segment];
    const [column, , line, lineColumn] = segment;
    const origin = lines[line]?.findLast(([at]) => at <= lineColumn);
    return origin === undefined || origin.length === 1 ? [] : [[column, origin[1], origin[2], origin[3]]];
  };
  const led = decode(mappings).map((line) => line.flatMap(lead));
  return { ...before, names: [], mappings: encode(led) };
}
