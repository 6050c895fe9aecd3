import { LockOptionError } from "../../base/errors";
import { formatValue } from "../../base/format-value";

/** The schema of Lockweave's tables and functions, unless the configuration names another one. */
export const DEFAULT_SCHEMA = "lockweave";

/** The tables that commands read and change. The table `about` describes the schema. */
export const TABLE_NAMES = ["hold", "renewal_group", "waiter", "fence", "process"] as const;

/** The names that need no escape sequence in any SQL text. */
const NAME = /^[a-z_][a-z0-9_]{0,62}$/i;
const OF_POSTGRES = /^(?:pg_.*|information_schema)$/i;

/** @throws {LockOptionError} if Lockweave does not accept the name of the schema */
export function assertSchemaName(schema: unknown, what = "schema"): asserts schema is string {
  if (typeof schema === "string" && NAME.test(schema)) {
    if (!OF_POSTGRES.test(schema)) return;
    throw new LockOptionError(
      `Expected \`${what}\` to be the name of a schema of your own, got ${formatValue(schema)}, which belongs to PostgreSQL. Fix: use another name, such as "${DEFAULT_SCHEMA}"`,
    );
  }
  throw new LockOptionError(
    `Expected \`${what}\` to be the name of a PostgreSQL schema, got ${formatValue(schema)}. Fix: use at most 63 letters, digits, and underscores, beginning with a letter`,
  );
}

/**
 * Returns the SQL text for this schema. The texts of this store name everything with the prefix `lockweave.`, which this function
 * replaces.
 */
export function inSchema(schema: string, text: string): string {
  assertSchemaName(schema);
  return text.replaceAll("lockweave.", `"${schema}".`);
}
