import type { Clock } from "../../base/clock";
import type { PostgresRow } from "./client-port";

/** One connection of a client library. It never connects again, and gets one statement at a time. */
export interface Connection {
  /** Opens the connection. Called once, before the first statement. Rejects with the library's error. */
  connect(): Promise<void>;
  /** Runs the statement. Rejects with the library's error. */
  run(text: string, values: readonly unknown[]): Promise<readonly PostgresRow[]>;
  /** Ends the session with the server. Resolves once the connection is closed. */
  end(): Promise<unknown>;
  /** Closes the connection immediately, whether the server answers or not. */
  destroy(): void;
}

export interface ConnectionListeners {
  /** The connection has closed, or could not be opened. May be called again. */
  ended(error: Error): void;
  /** A notification of a channel has arrived. */
  notified(payload: string): void;
  warned(notice: Notice): void;
}

/** A message from the server that is neither a reply nor an error. */
export interface Notice {
  readonly message?: string | undefined;
  /** The function in the server that sent it. Unlike the message, it is the same in all languages. */
  readonly routine?: string | undefined;
}

/**
 * Creates a connection, which is not open yet.
 *
 * @throws if the library cannot read the address
 */
export type OpenConnection = (listeners: ConnectionListeners) => Connection;

/** Opens connections to a server, which a URL or a client of the application names. */
export interface Source {
  /** Opens a connection to the server. */
  readonly open: OpenConnection;
  /** Opens a connection to another address, with the same library and the same TLS options. */
  openAt(url: string, listeners: ConnectionListeners): Connection;
}

/** The longest time that one attempt to connect may take. */
export const CONNECT_MS = 10_000;

/** The time for which the end of a connection may wait for the server. */
const GOODBYE_MS = 1_000;

/** Ends the connection, and destroys it if the server does not answer in time. */
export async function endInTime(connection: Connection, clock: Clock): Promise<void> {
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      cancel();
      resolve();
    };
    const cancel = clock.after(GOODBYE_MS, finish);
    connection.end().then(finish, finish);
  });
  connection.destroy();
}

/** Converts the text of a column. The types are the ones that {@link PostgresRow} may contain. */
export type Parse = (text: string) => unknown;

const asIs: Parse = (text) => text;
const PARSERS: ReadonlyMap<number, Parse> = new Map<number, Parse>([
  [16, (text) => text === "t"], // boolean
  [21, Number], // smallint
  [23, Number], // integer
  [26, Number], // oid
  [700, Number], // real
  [701, Number], // double precision
  [114, JSON.parse], // json
  [3802, JSON.parse], // jsonb
]);

/** Returns the parser for a type, by its number in the catalog. Other types, such as `bigint`, stay strings. */
export function parserOf(type: number): Parse {
  return PARSERS.get(type) ?? asIs;
}
