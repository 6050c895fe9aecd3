import { LockMisconfiguredError } from "../../base/errors";
import { formatValue } from "../../base/format-value";
import type { GuardRequest, RunSql } from "../port";
import { storedKey } from "./keys";
import { NOT_HELD, NOT_HELD_TEXT, OTHER_DATABASE } from "./schema/guard";
import { inSchema } from "./schema-name";

// The guard runs in a transaction of the application, over the application's own client library.

/** The store, as a guard sees it. */
interface GuardingStore {
  /** Returns the ID of the database in which the store keeps its locks. */
  databaseId(): Promise<string>;
  /** Returns whether each hold is alive and not revoked, in order. */
  areHeld(holds: readonly GuardRequest[]): Promise<readonly boolean[]>;
}

/** The error code of a transaction that conflicts with another one, and may succeed if it is repeated. */
const SERIALIZATION_FAILURE = "40001";

/**
 * Locks the holds inside a transaction of the application. If one of them is gone, the server refuses to commit that transaction.
 *
 * @param store answers questions about the locks, over connections of its own
 * @returns whether each hold is still held, in order
 * @throws {LockMisconfiguredError} if `run` does not run statements in one transaction in that database
 */
export async function guardHolds(
  schema: string,
  holds: readonly GuardRequest[],
  run: RunSql,
  store: GuardingStore,
): Promise<readonly boolean[]> {
  const request = {
    database: await store.databaseId(),
    holds: holds.map(({ key, requestId }) => ({ key: storedKey(key), request_id: requestId })),
  };
  const hex = Buffer.from(JSON.stringify(request)).toString("hex");
  let transaction: string;
  try {
    transaction = await ask(run, inSchema(schema, `SELECT lockweave.guard_v1('${hex}') AS guarded`), schema);
  } catch (error) {
    const areHeld = await areHeldAfter(error, holds, store);
    if (areHeld.includes(false)) return areHeld;
    throw error;
  }
  const now = await ask(
    run,
    "SELECT coalesce(pg_current_xact_id_if_assigned()::text, '') AS guarded",
    schema,
  );
  if (now !== transaction) throw new LockMisconfiguredError(NO_TRANSACTION);
  return holds.map(() => true);
}

/**
 * Returns which holds are gone after a guard has failed. If the server rejected the guard because of another transaction, that one may have ended a
 * hold, or may only have used the same data. So this asks the store.
 *
 * @returns whether each hold is still held, in order
 */
async function areHeldAfter(
  failure: unknown,
  holds: readonly GuardRequest[],
  store: GuardingStore,
): Promise<readonly boolean[]> {
  const errors = errorsIn(failure);
  const codes = new Set(errors.flatMap(codesOf));
  const text = [failure, ...errors.map(({ message }) => message)].map(String).join();
  const named = holds.map(({ requestId }) => !text.includes(requestId));
  const isLost = codes.has(NOT_HELD) || text.includes(NOT_HELD_TEXT);
  if (isLost && named.includes(false)) return named;
  if (!isLost && !codes.has(SERIALIZATION_FAILURE)) return holds.map(() => true);
  const areHeld = await store.areHeld(holds).catch((): readonly boolean[] => []);
  // A library may hide the message of the server.
  return isLost && !areHeld.includes(false) ? holds.map(() => false) : areHeld;
}

async function ask(run: RunSql, sql: string, schema: string): Promise<string> {
  let result: unknown;
  try {
    result = await run(sql, []);
  } catch (error) {
    const code = errorsIn(error)
      .flatMap(codesOf)
      .find((one) => one in REFUSALS);
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
const INNER_ERRORS = [
  "cause",
  "driverError",
  "original",
  "parent",
  "nativeError",
  "meta",
  "driverAdapterError",
];

type Fields = Readonly<Record<string, unknown>>;

/** Returns the error and the errors inside it. */
function errorsIn(error: unknown, depth = 0): readonly Fields[] {
  if (typeof error !== "object" || error === null || depth > 3) return [];
  const fields = error as Fields;
  return [fields, ...INNER_ERRORS.flatMap((name) => errorsIn(fields[name], depth + 1))];
}

/** Returns the codes that the server may have given to the error. Bun has them in `errno`. */
function codesOf({ code, originalCode, errno, sqlState }: Fields): readonly string[] {
  return [code, originalCode, errno, sqlState].filter((one) => typeof one === "string");
}

const otherDatabase = (schema: string): string =>
  `the transaction of guard() is in another database than the locks of the schema ${schema}. Fix: configure the lock's store with the database of the transaction`;

const NO_TRANSACTION =
  "the two statements of guard() did not run in one transaction, so the lock is not guarded. Fix: begin a transaction, and run the statements of guard() on its connection, not on a pool";

const REFUSALS: Readonly<Record<string, (schema: string) => string>> = {
  [OTHER_DATABASE]: otherDatabase,
  "3F000": otherDatabase,
  "42883": otherDatabase,
  "25006": () =>
    "the transaction of guard() is read-only, and a guard has to lock a row. Fix: begin a READ WRITE transaction on the primary",
  "42501": (schema) =>
    `the PostgreSQL role of the transaction may not lock rows of the schema ${schema}. Fix: grant it USAGE on the schema, EXECUTE on its functions, and SELECT and UPDATE on its tables`,
};
