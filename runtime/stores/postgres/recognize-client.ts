import { LockOptionError } from "../../base/errors";
import { formatValue } from "../../base/format-value";
import { loadLibrary, type Choice, type LibraryLog } from "../load-library";
import type { GivenPostgres } from "./client";
import type { Source } from "./connection";
import type { PostgresLibrary } from "./library";
import { besidePgPool, isPgPool } from "./pg/given";
import { loadPg } from "./pg/load";
import type { PostgresJsFields, PostgresJsLibrary } from "./postgres-js/client";
import { isPostgresJs } from "./postgres-js/given";
import { loadPostgresJs } from "./postgres-js/load";

// The only file that knows which client libraries there are. It recognizes a client by its methods, because it may come from another copy of
// its library than ours.

const DESCRIBED = {
  pg: "pg 8.11 or later",
  postgres: "postgres.js 3.4 or later (the package `postgres`)",
} as const;

const BY_URL: Choice<keyof typeof DESCRIBED, PostgresLibrary> = {
  server: "PostgreSQL",
  what: "A PostgreSQL URL",
  names: ["pg", "postgres"],
  described: DESCRIBED,
  loaders: { pg: loadPg, postgres: loadPostgresJs },
};

const POSTGRES_JS: Choice<"postgres", PostgresJsLibrary> = {
  server: "PostgreSQL",
  what: "A client of postgres.js",
  names: ["postgres"],
  described: DESCRIBED,
  loaders: { postgres: loadPostgresJs },
};

/** Whether it is a client that {@link assertClient} accepts. */
export function isClient(value: unknown): value is GivenPostgres {
  return isPgPool(value) || isPostgresJs(value);
}

/** Returns a source of connections to the server of a client. For a client of postgres.js, it needs the package `postgres`. */
export function beside(client: GivenPostgres): Source | Promise<Source> {
  if (isPgPool(client)) return besidePgPool(client);
  const given: unknown = client;
  const sourceOf = (library: PostgresJsLibrary): Source => library.beside(given as PostgresJsFields);
  const library = loadLibrary(POSTGRES_JS, undefined);
  return library instanceof Promise ? library.then(sourceOf) : sourceOf(library);
}

/** Returns a source of connections to a URL, with the library that the application declares. */
export function at(url: string, log: LibraryLog | undefined): Source | Promise<Source> {
  const library = loadLibrary(BY_URL, undefined, log);
  return library instanceof Promise ? library.then((loaded) => loaded.at(url)) : library.at(url);
}

/** @throws {LockOptionError} if it is not a client of a supported library */
export function assertClient(client: unknown, what: string): asserts client is GivenPostgres {
  if (isClient(client)) return;
  const expected = `Expected \`${what}\` to be a Pool of pg, a client of postgres.js, or a postgres:// URL`;
  const other = isObject(client) ? OTHERS.find(({ has }) => has.every((name) => name in client)) : undefined;
  if (other !== undefined) throw new LockOptionError(`${expected}, got ${other.name}. Fix: ${other.fix}`);
  throw new LockOptionError(`${expected}, got ${formatValue(client)}`);
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

const POOL = "pass the Pool itself. Lockweave opens its own connections with its options";
const SQL = "pass the client that postgres() returned. Lockweave opens its own connections with its options";
const URL = "pass the URL of the database, or a Pool of pg with the same options";
const OPTIONS = "pass a client with these options, such as new Pool({ ... }) of pg, or a URL";

/** Other clients, recognized by properties that no other client in this list has. The first match counts. */
const OTHERS = [
  { name: "a client of a Pool of pg", has: ["query", "release", "processID"], fix: POOL },
  {
    name: "a Client of pg, which has only one connection",
    has: ["query", "connect", "connectionParameters"],
    fix: `pass a Pool: new Pool({ ... }) with the same options`,
  },
  {
    name: "PGlite, which is no server: all callers share one session, and its advisory locks and row locks exclude nobody",
    has: ["waitReady", "execProtocol"],
    fix: "use a PostgreSQL server, or configure({ store: memoryStore() }) for one process",
  },
  { name: "a transaction of postgres.js", has: ["unsafe", "savepoint"], fix: SQL },
  { name: "a reserved connection of postgres.js", has: ["unsafe", "release"], fix: SQL },
  { name: "a client of Prisma", has: ["$queryRawUnsafe"], fix: URL },
  { name: "a database of Drizzle", has: ["$client"], fix: "pass its property `$client`" },
  { name: "a client of Knex", has: ["schema", "raw", "migrate"], fix: URL },
  {
    name: "a database of Kysely",
    has: ["selectFrom", "insertInto"],
    fix: "pass the Pool that you gave to its dialect",
  },
  { name: "a DataSource of TypeORM", has: ["createQueryRunner", "getRepository"], fix: URL },
  { name: "a client of Sequelize", has: ["getQueryInterface", "define"], fix: URL },
  { name: "a client of Redis", has: ["duplicate", "disconnect"], fix: "give it to the option `redis`" },
  { name: "options of a Pool", has: ["connectionString"], fix: OPTIONS },
  { name: "options of a client", has: ["host"], fix: OPTIONS },
] as const;
