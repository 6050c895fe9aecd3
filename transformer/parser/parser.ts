import type * as parts from "./typescript";

/** The parts of TypeScript that the weave uses. A host passes its whole TypeScript, or these parts alone. */
export type Parser = typeof parts;

/** Returns our own parser, for hosts that have no TypeScript. It is loaded only when the first file is woven. */
export function parser(): Parser {
  return require("./typescript") as Parser;
}
