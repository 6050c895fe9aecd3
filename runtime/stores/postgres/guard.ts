import { LockMisconfiguredError } from "../../base/errors";
import { formatValue } from "../../base/format-value";
import type { GuardRequest, RunSql } from "../port";
import { storedKey } from "./keys";
import { inSchema } from "./schema-name";

// The guard runs in a transaction of the application, over the application's own client library.

/** The reply of `guard_v1`. */
interface Guarded {
  readonly database: string;
  readonly transaction: string;
  readonly held: readonly string[];
}

/**
 * Locks the holds inside a transaction of the application.
 *
 * @param databaseId returns the ID of the database in which the store keeps its locks
 * @returns whether each hold is still held, in order
 * @throws {LockMisconfiguredError} if `run` does not run statements in one transaction in that database
 */
export async function guardHolds(
  schema: string,
  holds: readonly GuardRequest[],
  run: RunSql,
  databaseId: () => Promise<string>,
): Promise<readonly boolean[]> {
  const requests = holds.map(({ key, requestId }) => ({ key: storedKey(key), request_id: requestId }));
  const hex = Buffer.from(JSON.stringify(requests)).toString("hex");
  const text = await ask(run, inSchema(schema, `SELECT lockweave.guard_v1('${hex}') AS guarded`), schema);
  const { database, transaction, held } = JSON.parse(text) as Guarded;
  if (database !== (await databaseId())) throw new LockMisconfiguredError(otherDatabase(schema));
  const now = await ask(
    run,
    "SELECT coalesce(pg_current_xact_id_if_assigned()::text, '') AS guarded",
    schema,
  );
  if (now !== transaction) throw new LockMisconfiguredError(NO_TRANSACTION);
  return holds.map(({ requestId }) => held.includes(requestId));
}

async function ask(run: RunSql, sql: string, schema: string): Promise<string> {
  let result: unknown;
  try {
    result = await run(sql, []);
  } catch (error) {
    const code = codes(error).find((one) => one in REFUSALS);
    if (code === undefined) throw error;
    throw new LockMisconfiguredError(REFUSALS[code]?.(schema) ?? "", { cause: error });
  }
  const text = fieldIn(result);
  if (typeof text === "string") return text;
  throw new LockMisconfiguredError(
    `guard() got ${formatValue(result)} instead of a row. Fix: return what the query returns, as in \`guard((sql) => tx.query(sql))\``,
  );
}

/** Returns the field of the row. Client libraries return a list of rows, an object with `rows`, or a list of both. */
function fieldIn(result: unknown): unknown {
  let value = result;
  for (let depth = 0; depth < 3; depth += 1) {
    if (Array.isArray(value)) [value] = value as unknown[];
    else if (typeof value === "object" && value !== null && "rows" in value) value = value.rows;
    else break;
  }
  return (value as { readonly guarded?: unknown } | null | undefined)?.guarded;
}

/** Object-relational mappers put the error of the client library into one of these fields. */
const INNER_ERRORS = ["cause", "driverError", "original", "meta", "driverAdapterError"] as const;

/** Returns the error codes of the server in an error and the errors inside it. */
function codes(error: unknown, depth = 0): readonly string[] {
  if (typeof error !== "object" || error === null || depth > 3) return [];
  const fields = error as Readonly<Record<string, unknown>>;
  const own = [fields["code"], fields["originalCode"]].filter((code) => typeof code === "string");
  return [...own, ...INNER_ERRORS.flatMap((name) => codes(fields[name], depth + 1))];
}

const otherDatabase = (schema: string): string =>
  `the transaction of guard() is in another database than the locks of the schema ${schema}. Fix: configure the lock's store with the database of the transaction`;

const NO_TRANSACTION =
  "the two statements of guard() did not run in one transaction, so the lock is not guarded. Fix: begin a transaction, and run the statements of guard() on its connection, not on a pool";

const REFUSALS: Readonly<Record<string, (schema: string) => string>> = {
  "3F000": otherDatabase,
  "42883": otherDatabase,
  "25006": () =>
    "the transaction of guard() is read-only, and a guard has to lock a row. Fix: begin a READ WRITE transaction on the primary",
  "42501": (schema) =>
    `the PostgreSQL role of the transaction may not lock rows of the schema ${schema}. Fix: grant it USAGE on the schema, EXECUTE on its functions, and SELECT and UPDATE on its tables`,
};
