import type * as parts from "./typescript";

/** The parts of TypeScript that the weave works with: a whole TypeScript, or those parts alone. */
export type Parser = typeof parts;

/** Our own, for hosts that have no TypeScript to give. Loaded when the first file is to be woven, and not before. */
export function parser(): Parser {
  return require("./typescript") as Parser;
}
