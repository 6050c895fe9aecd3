import type * as Uuid from "uuid";

/** The package has many files: they wait for the first id, which programs that take in ours may never draw. */
export function loadUuid(): typeof Uuid.v4 {
  return (require("uuid") as typeof Uuid).v4;
}
