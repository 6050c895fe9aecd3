import { migrationSql } from "./migration";
import { openPort } from "./open-port";
import { inSchema } from "./schema-name";
import { VERSION_QUERY } from "./schema/version";
import { readTarget } from "./target";

/** The time for which the migration may wait for others that run at the same time. */
const PATIENCE_MS = 60_000;

/**
 * Begins the transaction of the migration, whatever the settings of the role are. At a higher isolation level, a migration that has waited for
 * another one would not see its result. The transaction must not be read-only.
 */
const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE;";

/**
 * Creates the tables and functions of the store, or upgrades them. Many processes may do so at once. Resolves to the version that the schema
 * now has, which may be a later one than this store needs.
 *
 * @param what the name of the URL, for messages
 * @throws {LockOptionError} if the URL is invalid
 * @throws {LockMisconfiguredError} if no client library is installed
 */
export async function applyMigration(url: string, schema: string, what: string): Promise<number> {
  const port = openPort({ ...readTarget(url, what), schema }, what);
  try {
    await port.query(`${BEGIN}\n${migrationSql(schema)}COMMIT;`, [], PATIENCE_MS);
    const rows = await port.query(inSchema(schema, VERSION_QUERY), [], PATIENCE_MS);
    return Number(rows[0]?.["version"]);
  } finally {
    await port.close();
  }
}
