import type * as TS from "typescript";
import { mapToDisk, type TextOnDisk } from "../../text/source-map";

/** Maps the source maps of compiled woven text, in separate files or inline, to the text on disk. Returns all other output unchanged. */
export function correctSourceMaps(
  fileName: string,
  output: string,
  compiled: readonly TS.SourceFile[],
  sourceOf: (file: TS.SourceFile) => TextOnDisk | undefined,
): string {
  if (!compiled.some((file) => sourceOf(file) !== undefined)) return output;
  return mapToDisk(fileName, output, (name) => sourceNamed(name, compiled, sourceOf));
}

/**
 * Finds a source by its name in a source map. An output nearly always has one source. The sources of a bundle are matched by the ends of
 * their paths. All of them are relative to the same directory, so if several match, the shortest path is the right one.
 */
function sourceNamed(
  name: string,
  compiled: readonly TS.SourceFile[],
  sourceOf: (file: TS.SourceFile) => TextOnDisk | undefined,
): TextOnDisk | undefined {
  const [only, another] = compiled;
  if (another === undefined) return only && sourceOf(only);
  const end = `/${name.replace(/^(?:\.{0,2}\/)+/, "")}`;
  const [file] = compiled
    .filter(({ fileName }) => fileName.endsWith(end))
    .toSorted((a, b) => a.fileName.length - b.fileName.length);
  return file && sourceOf(file);
}
