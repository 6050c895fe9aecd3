import type { PostgresJsLibrary } from "./client.js";
import { libraryOf } from "./library.js";

/**
 * Loads postgres.js. webpack and esbuild leave this import out of a bundle, because webpack would otherwise warn in each application without it.
 */
export async function loadPostgresJs(): Promise<PostgresJsLibrary | undefined> {
  let loaded: unknown;
  try {
    loaded = await import(/* webpackIgnore: true */ "postgres");
  } catch (error) {
    // Without this `try`, a bundler would require that postgres.js is installed.
    throw new Error("postgres.js cannot be loaded", { cause: error });
  }
  return libraryOf(loaded);
}
