import type * as TS from "typescript";

/** It has no syntax for types. */
export function isJavaScript({ fileName }: TS.SourceFile): boolean {
  return /\.[cm]?jsx?$/.test(fileName);
}
