import type { PostgresLibrary } from "../library";
import { libraryOf } from "./library";

/**
 * Loads pg. The ES module uses `load.mts` in place of this file, and loads it asynchronously.
 *
 * @returns `undefined` if it is too old
 * @throws {Error} if it cannot be loaded. Its cause says why
 */
export function loadPg(): PostgresLibrary | undefined | Promise<PostgresLibrary | undefined> {
  try {
    return libraryOf(require("pg"));
  } catch (error) {
    // Without this `try`, a bundler would require that pg is installed.
    throw new Error("pg cannot be loaded", { cause: error });
  }
}
