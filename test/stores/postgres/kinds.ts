import { Pool } from "pg";
import postgres from "postgres";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { Connections } from "../../../runtime/stores/postgres/connections";
import { openPort } from "../../../runtime/stores/postgres/open-port";
import { libraryOf as pgIn } from "../../../runtime/stores/postgres/pg/library";
import { libraryOf as postgresJsIn } from "../../../runtime/stores/postgres/postgres-js/library";
import { readTarget, type PostgresTarget } from "../../../runtime/stores/postgres/target";

/** One way to connect to PostgreSQL. */
export interface Kind {
  readonly name: string;
  /** @param connections the number of connections for statements */
  open(url: string, connections?: number): PostgresPort;
}

/** Opens the connections as `configure({ postgres })` does. */
export function portOf(target: PostgresTarget): PostgresPort {
  return openPort(readTarget(target, "postgres"), "postgres");
}

/** All libraries, each by a URL and alongside a client of the application. */
export const KINDS: readonly Kind[] = [
  {
    name: "pg, by its URL",
    open: (url, connections = 2) => new Connections(sourceIn(pgIn(require("pg")), url).open, connections),
  },
  {
    name: "a Pool of pg",
    open: (url, connections = 2) => portOf({ client: new Pool({ connectionString: url }), connections }),
  },
  {
    name: "postgres.js, by its URL",
    open: (url, connections = 2) =>
      new Connections(sourceIn(postgresJsIn(require("postgres")), url).open, connections),
  },
  {
    name: "a client of postgres.js",
    open: (url, connections = 2) => portOf({ client: postgres(url), connections }),
  },
];

function sourceIn<Source>(library: { at(url: string): Source } | undefined, url: string): Source {
  if (library === undefined) throw new Error("the installed version is too old");
  return library.at(url);
}
