import { LockOptionError } from "../../../base/errors";
import type { Connection, Sentinels } from "../address";
import type { NodeRedisOptions } from "./client";

/**
 * Returns the options of node-redis for an address. Those for sentinels lack the address of the master.
 *
 * @param what the name of the address in `configure()`, for messages
 * @throws {LockOptionError} if node-redis does not know a parameter
 */
export function optionsOf(connection: Connection, what: string): NodeRedisOptions {
  const { host, port, path, database, parameters } = connection;
  const { connectionName, keyPrefix, family, connectTimeout, ...others } = parameters;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    throw new LockOptionError(
      `The URL in \`${what}\` has a parameter that node-redis does not know: ${JSON.stringify(unknown)}. Fix: remove it. With node-redis, a URL may have the parameters connectionName, keyPrefix, family, connectTimeout, db, username, and password`,
    );
  }
  return {
    RESP: 2,
    ...credentialsOf(connection),
    ...(database !== undefined && { database }),
    ...(connectionName !== undefined && { name: connectionName }),
    ...(keyPrefix !== undefined && { keyPrefix }),
    socket: {
      ...(path === undefined
        ? {
            host: host ?? "localhost",
            ...(port !== undefined && { port }),
            ...(family !== undefined && { family: Number(family) }),
            ...(connectTimeout !== undefined && { connectTimeout: Number(connectTimeout) }),
          }
        : { path }),
      ...tlsOf(connection),
    },
  };
}

/** Returns the options for connections to the sentinels, without their addresses. */
export function optionsOfSentinels(connection: Connection, sentinels: Sentinels): NodeRedisOptions {
  return { RESP: 2, ...credentialsOf(sentinels), socket: tlsOf(connection) };
}

function credentialsOf({
  username,
  password,
}: Pick<Connection, "username" | "password">): Pick<NodeRedisOptions, "username" | "password"> {
  return { ...(username !== undefined && { username }), ...(password !== undefined && { password }) };
}

function tlsOf({ tls }: Connection): NonNullable<NodeRedisOptions["socket"]> {
  return tls === undefined ? {} : { ...tls, tls: true };
}
