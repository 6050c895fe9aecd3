import { asError, LockMisconfiguredError } from "../../base/errors";
import { StatementError } from "./client-port";
import { DEFAULT_SCHEMA } from "./schema-name";
import { SCHEMA_VERSION } from "./schema/version";
import { KEY_IS_BUSY, NOT_ISOLATED, TOO_FEW_STANDBYS } from "./schema/transaction";

/** An error of a command: what is wrong, what to do, and whether a retry may help. */
interface Known {
  readonly what: string;
  readonly fix: string;
  readonly mayPass?: boolean;
}

const DENIED =
  "run the GRANT statements of node_modules/lockweave/docs/postgres.md as the owner of the schema";

/** The SQLSTATE of a missing table. */
export const NO_TABLE = "42P01";
/** The SQLSTATE of a missing permission. */
export const NO_PERMISSION = "42501";

/** The codes for a schema, a table, a column, a function, and a type that does not exist. */
const MISSING: readonly string[] = ["3F000", NO_TABLE, "42703", "42883", "42704"];

/** The codes for a text that the encoding of the database cannot represent, and for one in JSON. */
const UNSTORABLE: readonly string[] = ["22021", "22P05"];

export const BUSY_KEY: Known = {
  what: "another transaction in PostgreSQL holds the advisory lock of the key",
  fix: "find its pid with `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted`, and end it",
  mayPass: true,
};

/** The server does not say which lock the command waited for. */
const BLOCKED: Known = {
  what: "another transaction in PostgreSQL blocks the command",
  fix: "find its pid with `SELECT pg_blocking_pids(pid), query FROM pg_stat_activity WHERE wait_event_type = 'Lock'`, and end it",
  mayPass: true,
};

/** Known errors by their SQLSTATE. */
const KNOWN: Readonly<Record<string, (schema: string, version?: number) => Known>> = {
  [TOO_FEW_STANDBYS]: () => ({
    what: "a commit in PostgreSQL waits for fewer standbys than `replicas`",
    fix: "set synchronous_standby_names, such as 'ANY 1 (a, b)', or lower `replicas`",
  }),
  ...Object.fromEntries(MISSING.map((code) => [code, missing])),
  [NO_PERMISSION]: (schema) => ({
    what: `the PostgreSQL role lacks a permission in the schema ${schema}`,
    fix: DENIED,
  }),
  ...Object.fromEntries(UNSTORABLE.map((code) => [code, unstorable])),
  "28P01": () => ({
    what: "PostgreSQL rejected the password",
    fix: "use the password of this role",
    mayPass: true,
  }),
  "28000": () => ({
    what: "PostgreSQL rejected the role",
    fix: "correct the user in the URL, create the role, or allow it in pg_hba.conf",
  }),
  "3D000": () => ({ what: "the PostgreSQL database does not exist", fix: "create it, or correct the URL" }),
  "25006": () => ({
    what: "PostgreSQL is a read-only standby",
    fix: "use the address of its primary",
    mayPass: true,
  }),
  "53100": () => ({ what: "the disk of PostgreSQL is full", fix: "free space on it", mayPass: true }),
  "53200": () => ({
    what: "PostgreSQL has no memory for more locks",
    fix: "raise max_locks_per_transaction",
    mayPass: true,
  }),
  "53300": () => ({
    what: "PostgreSQL has too many connections",
    fix: "raise max_connections, or use a pooler",
    mayPass: true,
  }),
  "57P03": () => ({
    what: "PostgreSQL is starting, stopping, or recovering from a crash",
    fix: "read its log if this lasts",
    mayPass: true,
  }),
  "55P03": () => BLOCKED,
  [KEY_IS_BUSY]: () => BUSY_KEY,
};

/** @param version the version that the schema has, if there is one */
function missing(schema: string, version?: number): Known {
  const fix = `npx lockweave postgres --apply <url>${schema === DEFAULT_SCHEMA ? "" : ` --schema ${schema}`}`;
  if (version === undefined)
    return { what: `the schema ${schema} of Lockweave is missing in the PostgreSQL database`, fix };
  if (version === SCHEMA_VERSION) {
    const what = `a part of the schema ${schema} is missing in the PostgreSQL database`;
    return { what, fix: `drop the schema, which forgets all held locks, and run ${fix}` };
  }
  return {
    what: `the schema ${schema} has version ${version}, and this version of Lockweave needs ${SCHEMA_VERSION}`,
    fix: version < SCHEMA_VERSION ? fix : "upgrade the package lockweave",
  };
}

function unstorable(): Known {
  return {
    what: "the encoding of the PostgreSQL database cannot represent the key",
    fix: "use a database with the encoding UTF8, and keys of valid Unicode",
  };
}

/**
 * Returns the error for the runtime. If the server's error is known, the error says what is wrong and what to do.
 *
 * @param version the version that the schema has, if a part of it is missing
 */
export function translateError(thrown: unknown, schema: string, version?: number): Error {
  if (!(thrown instanceof Error)) return new Error(String(thrown));
  const known = KNOWN[stateOf(thrown)]?.(schema, version);
  if (known === undefined) return thrown;
  const message = `${known.what} (${thrown.message}). Fix: ${known.fix}`;
  return known.mayPass === true
    ? new Error(message, { cause: thrown })
    : new LockMisconfiguredError(message, { cause: thrown });
}

/** Whether the settings of the user begin transactions in which locks would not be safe. */
export function needsIsolation(error: unknown): boolean {
  return error instanceof StatementError && error.code === NOT_ISOLATED;
}

/** Whether the schema, or a part of it, does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof StatementError && MISSING.includes(error.code);
}

/** Whether an error from {@link translateError} says that the database cannot represent a key. */
export function isUnstorable(error: unknown): boolean {
  return error instanceof LockMisconfiguredError && UNSTORABLE.includes(stateOf(asError(error.cause)));
}

function stateOf(error: Error): string {
  const code: unknown = "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}
