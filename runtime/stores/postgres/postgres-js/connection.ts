import { asError } from "../../../base/errors";
import type { PostgresRow } from "../client-port";
import type { Connection, ConnectionListeners, Notice } from "../connection";
import type { ParsedOptions, PostgresJsFields, PostgresJsResult } from "./client";
import { withLiterals } from "./literals";
import { Sockets, type Hosts } from "./socket";

/** A connection over postgres.js: a client that is limited to one connection. */
export class PostgresJsConnection implements Connection {
  readonly #sql: PostgresJsFields;
  readonly #sockets: Sockets;
  readonly #listeners: ConnectionListeners;
  #isOpen = false;

  /**
   * @param create creates the client with these options, and those of its address
   * @param socket opens the sockets, if the application has such a function
   * @param hosts shared by all connections to the server
   */
  constructor(
    create: (options: object) => PostgresJsFields,
    socket: ParsedOptions["socket"],
    hosts: Hosts,
    listeners: ConnectionListeners,
  ) {
    this.#listeners = listeners;
    this.#sockets = new Sockets(socket, hosts);
    this.#sql = create({
      max: 1,
      prepare: false,
      fetch_types: false,
      // Timeouts are the store's own. The library must not close the connection, and must not wait before it connects.
      idle_timeout: null,
      max_lifetime: null,
      connect_timeout: 0,
      backoff: 0,
      socket: (options: ParsedOptions) => this.#openSocket(options),
      onnotice: (notice: Notice) => listeners.warned(notice),
      onnotify: (_channel: string, payload: string) => listeners.notified(payload),
      onclose: () => listeners.ended(new Error("the connection closed")),
    });
  }

  /** The library connects for a statement only, so this runs an empty one. */
  async connect(): Promise<void> {
    await this.#sql.unsafe("SELECT");
    this.#isOpen = true;
  }

  async run(text: string, values: readonly unknown[]): Promise<readonly PostgresRow[]> {
    return rowsOf(await this.#sql.unsafe(withLiterals(text, values)));
  }

  end(): Promise<unknown> {
    return this.#sql.end({ timeout: 1 });
  }

  destroy(): void {
    if (!this.#isOpen) this.#sockets.giveUpHost();
    this.#sockets.destroy();
    // Without this, the library would connect again for a statement that it has not sent.
    this.#sql.end({ timeout: 0 }).catch(() => {});
  }

  /** With several hosts, the library expects another event than this rejection, and would not reject the statement. */
  async #openSocket(options: ParsedOptions): ReturnType<Sockets["open"]> {
    try {
      return await this.#sockets.open(options);
    } catch (error) {
      this.#listeners.ended(asError(error));
      throw error;
    }
  }
}

/** A text of several statements has several results. */
function rowsOf(result: PostgresJsResult): readonly PostgresRow[] {
  const last = result.at(-1);
  return Array.isArray(last) ? (last as readonly PostgresRow[]) : (result as readonly PostgresRow[]);
}
