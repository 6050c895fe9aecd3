import type * as TS from "typescript";
import type { Problem } from "../text/problems";
import type { TaggedFile } from "./project";

/** A place in a source file, counted from 1. */
export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Returns the place of a problem in the file. */
export function placeOf({ source }: TaggedFile, { start }: Pick<Problem, "start">): Place {
  return placeIn(source, start);
}

export function placeIn(file: TS.SourceFile, start: number): Place {
  const { line, character } = file.getLineAndCharacterOfPosition(start);
  return { file: file.fileName, line: line + 1, column: character + 1 };
}
