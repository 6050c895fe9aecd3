import type * as TS from "typescript";

/** What parses the files: loaded by those who weave, and by nobody who only looks for the package's other parts. */
export function parser(): typeof TS {
  return require("typescript") as typeof TS;
}
