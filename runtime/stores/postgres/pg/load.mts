import type { PostgresLibrary } from "../library.js";
import { libraryOf } from "./library.js";

/**
 * Loads pg. webpack and esbuild leave this import out of a bundle, because webpack would otherwise warn in each application without it.
 */
export async function loadPg(): Promise<PostgresLibrary | undefined> {
  let loaded: unknown;
  try {
    loaded = await import(/* webpackIgnore: true */ "pg");
  } catch (error) {
    // Without this `try`, a bundler would require that pg is installed.
    throw new Error("pg cannot be loaded", { cause: error });
  }
  return libraryOf(loaded);
}
