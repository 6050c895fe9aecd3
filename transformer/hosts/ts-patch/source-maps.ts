import { basename } from "node:path";
import { decode, encode, type SourceMapSegment } from "@jridgewell/sourcemap-codec";
import type * as TS from "typescript";
import type { Positions } from "../../text/positions";

/** The file on disk behind a file that is compiled in woven form. */
export interface Source {
  readonly text: string;
  readonly positions: Positions;
}

interface SourceMap {
  sources: string[];
  sourcesContent?: (string | null)[];
  mappings: string;
}

const INLINE_MAP = /(?<=\n\/\/# sourceMappingURL=data:application\/json;base64,)[A-Za-z0-9+/=]+(?=\s*$)/;

/**
 * The output of a compiler that was given woven text, with its source maps, in files of their own or inline,
 * led on to the text on disk. Everything else is returned as it is.
 */
export function correctSourceMaps(
  fileName: string,
  output: string,
  compiled: readonly TS.SourceFile[],
  sourceOf: (file: TS.SourceFile) => Source | undefined,
): string {
  if (!compiled.some((file) => sourceOf(file) !== undefined)) return output;
  const correct = (json: string): string => {
    const map = JSON.parse(json) as SourceMap;
    return JSON.stringify(
      correctMap(
        map,
        map.sources.map((source) => sourceNamed(source, compiled, sourceOf)),
      ),
    );
  };
  if (fileName.endsWith(".map")) return correct(output);
  return output.replace(INLINE_MAP, (encoded) =>
    Buffer.from(correct(Buffer.from(encoded, "base64").toString())).toString("base64"),
  );
}

/** One output nearly always has one source; the sources of a bundle are told apart by their names. */
function sourceNamed(
  name: string,
  compiled: readonly TS.SourceFile[],
  sourceOf: (file: TS.SourceFile) => Source | undefined,
): Source | undefined {
  const [only, another] = compiled;
  const file =
    another === undefined ? only : compiled.find(({ fileName }) => basename(fileName) === basename(name));
  return file && sourceOf(file);
}

function correctMap(map: SourceMap, sources: readonly (Source | undefined)[]): SourceMap {
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
  const corrected = {
    ...map,
    mappings: encode(decode(map.mappings).map((line) => line.map(correctSegment))),
  };
  const { sourcesContent } = map;
  if (sourcesContent === undefined) return corrected;
  return { ...corrected, sourcesContent: sourcesContent.map((text, index) => sources[index]?.text ?? text) };
}
