import { asError } from "../../base/errors";
import type { LibraryLog } from "../load-library";
import { StatementError, type PostgresPort } from "./client-port";
import { NO_PERMISSION, NO_TABLE, translateError } from "./errors";
import { inSchema, TABLE_NAMES } from "./schema-name";
import { SCHEMA_VERSION } from "./schema/version";

const TIMEOUT_MS = 5_000;

/** Reads the version of the schema, and the permissions that the role lacks, as a list. */
const CHECK = `
SELECT a.version, array_to_string(ARRAY(
  SELECT p || ' on ' || t
  FROM unnest('{${TABLE_NAMES.join()}}'::text[]) t, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) p
  WHERE NOT has_table_privilege('lockweave.' || t, p)
  UNION ALL
  SELECT 'EXECUTE on the functions' WHERE NOT has_function_privilege('lockweave.acquire_v1(text, integer)', 'EXECUTE')
), ', ') AS lacking
FROM lockweave.about a`;

/**
 * Warns at startup if locks cannot work in the schema, so that a person learns of it before the first lock rejects. If the server does not
 * answer, there is no warning, because it may still be starting.
 *
 * @param what the name of the PostgreSQL in `configure()`
 */
export async function warnOfSchema(
  port: PostgresPort,
  schema: string,
  what: string,
  log: LibraryLog,
): Promise<void> {
  const problem = await problemOf(port, schema, TIMEOUT_MS);
  if (problem?.isKnown === true) log.warn(`configure({ ${what} }): ${problem.error.message}`);
}

/** @throws {LockMisconfiguredError} if locks cannot work in the schema, and any other error if the server did not answer */
export async function assertSchema(port: PostgresPort, schema: string, timeoutMs: number): Promise<void> {
  const problem = await problemOf(port, schema, timeoutMs);
  if (problem !== undefined) throw problem.error;
}

async function problemOf(
  port: PostgresPort,
  schema: string,
  timeoutMs: number,
): Promise<{ readonly error: Error; readonly isKnown: boolean } | undefined> {
  let version: number | undefined;
  try {
    const [about = {}] = await port.query(inSchema(schema, CHECK), [], timeoutMs);
    const { version: found, lacking } = about;
    version = Number(found ?? 0);
    if (version < SCHEMA_VERSION) throw new StatementError("it is outdated", NO_TABLE);
    if (lacking !== "") throw new StatementError(String(lacking), NO_PERMISSION);
    return undefined;
  } catch (thrown) {
    const error = translateError(asError(thrown), schema, version);
    return { error, isKnown: error !== thrown };
  }
}
