import type * as TS from "typescript";
import type { Problem } from "../text/problems";
import type { TaggedFile } from "./project";

/** A position in a source file, counted from 1. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** Returns the position of a problem in the file. */
export function positionOf({ source }: TaggedFile, { start }: Pick<Problem, "start">): Position {
  return positionIn(source, start);
}

export function positionIn(file: TS.SourceFile, start: number): Position {
  const { line, character } = file.getLineAndCharacterOfPosition(start);
  return { file: file.fileName, line: line + 1, column: character + 1 };
}
