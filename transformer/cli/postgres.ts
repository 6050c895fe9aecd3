import { LockError, errorMessage } from "../../runtime/base/errors";
import { applyMigration } from "../../runtime/stores/postgres/apply-migration";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { NO_PERMISSION, translateError } from "../../runtime/stores/postgres/errors";
import { isPostgresUrl } from "../../runtime/stores/postgres/recognize";
import { SCHEMA_VERSION } from "../../runtime/stores/postgres/schema/version";
import { assertSchemaName } from "../../runtime/stores/postgres/schema-name";
import { block, print, safe } from "../terminal/printer";
import { UsageError } from "../terminal/usage-error";

/** The SQLSTATE of a table that stays locked. */
const IN_USE = "55P03";

/**
 * Prints the SQL that creates the tables and functions for locks, or applies it.
 *
 * @param url the address of the database, or undefined to print
 * @throws {UsageError} if the database refuses it, or cannot be reached
 */
export async function postgres(url: string | undefined, schema: string): Promise<number> {
  try {
    assertSchemaName(schema, "--schema");
    if (url === undefined) {
      print(block(migrationSql(schema).trimEnd()));
      return 0;
    }
    if (!isPostgresUrl(url)) {
      throw new UsageError(
        "Expected `--apply` to be a postgres:// URL, such as postgres://localhost:5432/database.",
      );
    }
    print(safe`${stateOf(schema, await applyMigration(url, schema, "--apply"))}`);
    return 0;
  } catch (error) {
    throw error instanceof UsageError ? error : new UsageError(`${reasonFor(error, schema)}.`);
  }
}

/** @param version the version that the schema has */
function stateOf(schema: string, version: number): string {
  if (version === SCHEMA_VERSION) return `The schema ${schema} is up to date.`;
  return `The schema ${schema} has version ${version}, which is from a later version of Lockweave. This version needs version ${SCHEMA_VERSION}, and works with it. Nothing was changed.`;
}

/** Returns what went wrong, and what to do. */
function reasonFor(thrown: unknown, schema: string): string {
  if (thrown instanceof LockError) return thrown.message;
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  const message = errorMessage(thrown);
  if (code === NO_PERMISSION)
    return `${message}. Fix: use the URL of a role that may create schemas in this database, or that owns the schema`;
  if (code === IN_USE)
    return `${message}: a transaction uses the tables of the schema, such as one that guards a lock. Fix: end it, and run this command again`;
  return errorMessage(translateError(thrown, schema));
}
