/**
 * A segment of decoded mappings, as `@jridgewell/sourcemap-codec` defines it: the generated column, and the source, line, column, and name to
 * which it leads. All numbers count from 0. That package is bundled, so the published types cannot import its type.
 */
export type SourceMapSegment =
  | [column: number]
  | [column: number, source: number, line: number, sourceColumn: number]
  | [column: number, source: number, line: number, sourceColumn: number, name: number];
