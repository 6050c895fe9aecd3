/** Returns the path of this copy of the package. The ES module has `own-path.mts` in place of this file. */
export function ownPath(): string {
  return typeof __filename === "string" ? __filename : "a bundle";
}
