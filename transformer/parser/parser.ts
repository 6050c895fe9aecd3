import type * as TS from "typescript";
import type * as parts from "./typescript";

/** The parts of TypeScript that the weave uses. A host passes its whole TypeScript, or these parts alone. */
export type Parser = typeof parts;

/** A parsed file, and the parser that knows the kinds of its nodes. */
export interface Source {
  readonly ts: Parser;
  readonly file: TS.SourceFile;
}

/** Returns our own parser, for hosts that have no TypeScript. It is loaded only when the first file is woven. */
export function parser(): Parser {
  return require("./typescript") as Parser;
}
