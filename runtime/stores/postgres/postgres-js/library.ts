import type { Source } from "../connection";
import type { ParsedOptions, Postgres, PostgresJsFields, PostgresJsLibrary } from "./client";
import { PostgresJsConnection } from "./connection";

/** @param exports all exports of the package */
export function libraryOf(exports: unknown): PostgresJsLibrary | undefined {
  const { default: inside = exports } = exports as { readonly default?: unknown };
  if (typeof inside !== "function" || !("PostgresError" in inside)) return undefined; // Version 2 or earlier exports something else.
  const create = inside as unknown as Postgres;
  return {
    at: (url) =>
      sourceOf(
        (options) => create(url, options),
        undefined,
        (other, options) => create(other, options),
      ),
    beside: (client) => besideClient(create, client),
  };
}

function besideClient(postgres: Postgres, { options }: PostgresJsFields): Source {
  const { host, port, path, database, user, pass, ssl, sslnegotiation, connection } = options;
  const settings = { ssl, sslnegotiation, connection, keep_alive: options.keep_alive };
  const server = {
    host,
    port,
    path,
    database,
    user,
    pass,
    target_session_attrs: options.target_session_attrs,
  };
  return sourceOf(
    (ours) => postgres({ ...server, ...settings, ...ours }),
    options.socket,
    (url, ours) => postgres(url, { ...settings, ...ours }),
  );
}

/** @param socket opens the sockets, if the application has such a function */
function sourceOf(
  create: (options: object) => PostgresJsFields,
  socket: ParsedOptions["socket"],
  createAt: (url: string, options: object) => PostgresJsFields,
): Source {
  const hosts = { first: 0 };
  return {
    open: (listeners) => new PostgresJsConnection(create, socket, hosts, listeners),
    openAt: (url, listeners) =>
      new PostgresJsConnection((options) => createAt(url, options), undefined, { first: 0 }, listeners),
  };
}
