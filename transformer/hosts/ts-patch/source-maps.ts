import type * as TS from "typescript";
import { mapToDisk, type Source } from "../../text/source-map";

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
  return mapToDisk(fileName, output, (name) => sourceNamed(name, compiled, sourceOf));
}

/**
 * One output nearly always has one source; the sources of a bundle are told apart by the ends of their paths. From where
 * on these are written is for all the same, so where several end so, the shortest is meant.
 */
function sourceNamed(
  name: string,
  compiled: readonly TS.SourceFile[],
  sourceOf: (file: TS.SourceFile) => Source | undefined,
): Source | undefined {
  const [only, another] = compiled;
  if (another === undefined) return only && sourceOf(only);
  const end = `/${name.replace(/^(?:\.{0,2}\/)+/, "")}`;
  const [file] = compiled
    .filter(({ fileName }) => fileName.endsWith(end))
    .toSorted((a, b) => a.fileName.length - b.fileName.length);
  return file && sourceOf(file);
}
