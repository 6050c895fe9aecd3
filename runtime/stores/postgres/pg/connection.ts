import { asError } from "../../../base/errors";
import { listenInRoot } from "../../../base/root-context";
import type { PostgresRow } from "../client-port";
import { parserOf, type Connection, type ConnectionListeners, type Notice } from "../connection";
import type { PgClient, PgClientClass, PgResult } from "./client";

/**
 * Options that override those of the application. Timeouts are the store's own. A pooler refuses connections with settings such as
 * `statement_timeout`. The parsers are our own, because an application may change those of the package for the whole process.
 */
const OURS = {
  query_timeout: 0,
  connectionTimeoutMillis: 0,
  statement_timeout: 0,
  lock_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  binary: false,
  pipeline: false,
  replication: undefined,
  connection: undefined,
  Promise: undefined,
  types: { getTypeParser: parserOf },
  keepAlive: true,
  fallback_application_name: "lockweave",
};

/** A connection over a `Client` of `pg`. */
export class PgConnection implements Connection {
  readonly #client: PgClient;

  constructor(Client: PgClientClass, options: object, listeners: ConnectionListeners) {
    this.#client = new Client({ ...options, ...OURS });
    listenInRoot<[never]>(this.#client, {
      error: (error) => listeners.ended(asError(error)),
      end: () => listeners.ended(new Error("the connection closed")),
      notification: ({ payload = "" }: { readonly payload?: string }) => listeners.notified(payload),
      notice: (notice: Notice) => listeners.warned(notice),
    });
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  async run(text: string, values: readonly unknown[]): Promise<readonly PostgresRow[]> {
    // Without a name, the statement is not prepared. With values, it is still one round trip.
    const result = await this.#client.query(values.length === 0 ? { text } : { text, values });
    return lastOf(result)?.rows ?? [];
  }

  end(): Promise<unknown> {
    return this.#client.end();
  }

  destroy(): void {
    const { connection } = this.#client;
    if (connection?.stream === undefined) void this.#client.end();
    else connection.stream.destroy();
  }
}

/** A text of several statements has several results. */
function lastOf(result: PgResult | PgResult[]): PgResult | undefined {
  return Array.isArray(result) ? result.at(-1) : result;
}
