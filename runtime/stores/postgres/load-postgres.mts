import { postgresStoreAt } from "./open-store.js";

/** Nothing can load late here: `configure()` returns immediately, and a bundle has no files beside it. */
export function loadPostgres() {
  return { postgresStoreAt };
}
