import { LockOptionError } from "../../base/errors";
import { formatValue } from "../../base/format-value";
import { isOptions, readOptions } from "../../base/options";
import type { GivenPostgres } from "./client";
import { isPostgresUrl } from "./recognize";
import { assertClient, isClient } from "./recognize-client";
import { assertSchemaName, DEFAULT_SCHEMA } from "./schema-name";

/**
 * The place of locks in PostgreSQL: a URL, a `Pool` of `pg`, or a client of postgres.js. Lockweave opens its own connections, so a body that holds
 * every connection of the pool does not keep it from renewing the lock.
 */
export type PostgresTarget = string | GivenPostgres | PostgresOptions;

/** A PostgreSQL server, with options. */
export type PostgresOptions = PostgresSettings &
  (
    | { readonly url: string; readonly client?: undefined }
    | { readonly client: GivenPostgres; readonly url?: undefined }
  );

/** The options of a PostgreSQL server, except its address. */
export interface PostgresSettings {
  /** The schema of Lockweave's tables. Default `"lockweave"`. */
  readonly schema?: string | undefined;
  /** The URL of the server itself, if `url` or `client` leads to a pooler such as PgBouncer. Wake-ups need such a connection. */
  readonly listenUrl?: string | undefined;
  /** The number of connections for locks. Default 2. One more renews and releases locks, and one receives wake-ups. */
  readonly connections?: number | undefined;
}

/** A target, after its options were read. */
export interface ReadTarget {
  readonly server: string | GivenPostgres;
  readonly schema: string;
  readonly listenUrl: string | undefined;
  readonly connections: number;
}

const OPTIONS = ["url", "client", "schema", "listenUrl", "connections"] satisfies (keyof PostgresOptions)[];
export const CONNECTIONS = 2;
const MOST_CONNECTIONS = 100;

/**
 * Reads where locks live.
 *
 * @param what its name in `configure()`, for messages
 * @throws {LockOptionError} if it does not lead to PostgreSQL, or an option is invalid
 */
export function readTarget(target: PostgresTarget, what: string): ReadTarget {
  if (typeof target === "string" || isClient(target) || !hasOptions(target)) {
    return {
      ...readServer(target, what),
      schema: DEFAULT_SCHEMA,
      listenUrl: undefined,
      connections: CONNECTIONS,
    };
  }
  const expected = (name: string): LockOptionError =>
    new LockOptionError(
      `Expected \`${what}\` to be { url: "postgres://..." } or { client: pool }, got ${formatValue(target)}. Fix: correct \`${name}\`. The other options are schema, listenUrl, and connections`,
    );
  const options = readOptions<Partial<Record<(typeof OPTIONS)[number], unknown>>>(target, OPTIONS, expected);
  const { url, client, schema = DEFAULT_SCHEMA, listenUrl, connections = CONNECTIONS } = options;
  if ((url === undefined) === (client === undefined)) throw expected(url === undefined ? "url" : "client");
  assertSchemaName(schema, `${what}.schema`);
  if (listenUrl !== undefined) assertUrl(listenUrl, `${what}.listenUrl`);
  if (!isNumberOfConnections(connections)) {
    throw new LockOptionError(
      `Expected \`${what}.connections\` to be a whole number from 1 to ${MOST_CONNECTIONS}, got ${formatValue(connections)}`,
    );
  }
  const server = url === undefined ? readServer(client, `${what}.client`) : readUrl(url, `${what}.url`);
  return { ...server, schema, listenUrl, connections };
}

/** Whether the object has options of ours, and is no client that Lockweave does not support. */
function hasOptions(value: unknown): value is object {
  return (
    isOptions(value) &&
    Object.keys(value).some((name) => (OPTIONS as readonly string[]).includes(name)) &&
    !("query" in value)
  );
}

function isNumberOfConnections(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= MOST_CONNECTIONS;
}

function readServer(given: unknown, what: string): Pick<ReadTarget, "server"> {
  if (typeof given === "string") return readUrl(given, what);
  assertClient(given, what);
  return { server: given };
}

function readUrl(url: unknown, what: string): Pick<ReadTarget, "server"> {
  assertUrl(url, what);
  return { server: url };
}

function assertUrl(url: unknown, what: string): asserts url is string {
  if (typeof url === "string" && isPostgresUrl(url)) return;
  if (typeof url === "string" && /^rediss?(?:\+sentinel)?:/i.test(url)) {
    throw new LockOptionError(
      `Expected \`${what}\` to be a postgres:// URL, got a redis:// URL. Fix: give it to the option \`redis\``,
    );
  }
  throw new LockOptionError(
    `Expected \`${what}\` to be a postgres:// URL, such as postgres://user:password@host:5432/database, got ${typeof url === "string" ? "other text" : formatValue(url)}`,
  );
}
