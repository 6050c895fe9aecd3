import type * as TS from "typescript";

/** Whether the file is JavaScript, which has no syntax for types. */
export function isJavaScript({ fileName }: TS.SourceFile): boolean {
  return /\.[cm]?jsx?$/.test(fileName);
}
