import type { PostgresJsLibrary } from "./client";
import { libraryOf } from "./library";

/**
 * Loads postgres.js. The ES module uses `load.mts` in place of this file, and loads it asynchronously.
 *
 * @returns `undefined` if it is too old
 * @throws {Error} if it cannot be loaded. Its cause says why
 */
export function loadPostgresJs(): PostgresJsLibrary | undefined | Promise<PostgresJsLibrary | undefined> {
  try {
    return libraryOf(require("postgres"));
  } catch (error) {
    // Without this `try`, a bundler would require that postgres.js is installed.
    throw new Error("postgres.js cannot be loaded", { cause: error });
  }
}
