import type { LibraryLog } from "../load-library";
import type { WholeStore } from "../port";
import { warnOfSchema } from "./check-schema";
import { openPort } from "./open-port";
import { postgresStore } from "./postgres-store";
import { readTarget, type PostgresTarget } from "./target";

/**
 * Returns a store of locks in PostgreSQL that opens its own connections, and closes them. It connects at once, to check the schema.
 *
 * @param what the name of the target, for messages
 * @param log receives which client library a URL uses, and whether the schema is missing
 * @throws {LockOptionError} if Lockweave cannot connect to it, or an option is invalid
 * @throws {LockMisconfiguredError} if no client library is installed. In the ES module, the first lock rejects instead
 */
export function postgresStoreAt(target: PostgresTarget, what: string, log?: LibraryLog): WholeStore {
  const read = readTarget(target, what);
  const port = openPort(read, what, log);
  if (log !== undefined) void warnOfSchema(port, read.schema, what, log);
  return postgresStore(port, read);
}
