import type * as Uuid from "uuid";

/**
 * Returns a function that makes random UUIDs. The package `uuid` has many files, so it loads with the first ID. The ES module has
 * `uuid.mts` in place of this file.
 */
export function loadUuid(): () => string {
  return (require("uuid") as typeof Uuid).v4;
}
