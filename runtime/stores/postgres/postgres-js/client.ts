// The part of postgres.js that the adapter uses. It has no types of the package, because TypeScript reads this file even in applications
// without it.

import type { Socket } from "node:net";
import type { Source } from "../connection";
import type { PostgresLibrary } from "../library";

/** The client that `postgres()` returns. */
export interface PostgresJsFields {
  unsafe(text: string): PromiseLike<PostgresJsResult>;
  end(options: { readonly timeout: number }): Promise<unknown>;
  readonly options: ParsedOptions;
}

/** The rows of a statement, or the rows of each statement of a text. */
export type PostgresJsResult = readonly (Row | readonly Row[])[];
type Row = Readonly<Record<string, unknown>>;

/** The options of a client, with those of its URL. */
export interface ParsedOptions {
  readonly host: readonly string[];
  readonly port: readonly number[];
  /** The path of a socket. */
  readonly path: string | false;
  readonly database: string;
  readonly user: string;
  readonly pass: unknown;
  readonly ssl: unknown;
  readonly sslnegotiation?: unknown;
  readonly connection: object;
  readonly target_session_attrs?: unknown;
  readonly keep_alive: unknown;
  /** Opens the socket. */
  readonly socket?: ((options: ParsedOptions) => Socket | Promise<Socket>) | undefined;
}

export interface Postgres {
  (options: object): PostgresJsFields;
  (url: string, options: object): PostgresJsFields;
}

export interface PostgresJsLibrary extends PostgresLibrary {
  /** Returns a source of connections to the server of the client. Does not change the client. */
  beside(client: PostgresJsFields): Source;
}
