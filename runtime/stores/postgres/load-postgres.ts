import type * as OpenStore from "./open-store";

/**
 * Loads the files for PostgreSQL when the first such store is created. There are many, and programs with Redis need none. The ES module uses
 * `load-postgres.mts` in place of this file.
 */
export function loadPostgres(): Pick<typeof OpenStore, "postgresStoreAt"> {
  return require("./open-store") as typeof OpenStore;
}
