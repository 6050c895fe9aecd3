/**
 * A client library of PostgreSQL, as the store sees it. Each library has one adapter, and only the adapter knows the library. An adapter
 * opens its own connections and replaces those that break. It adds no policy: the store decides about pauses, retries, and polling.
 */
export interface PostgresPort {
  /**
   * Runs one statement as one transaction, and resolves to its rows. Columns are strings, numbers, booleans, `null`, or parsed JSON.
   * Never sends a statement twice, and prepares none, because poolers in transaction mode lose prepared statements.
   *
   * Rejects with a {@link StatementError} if the server rejected the statement, and with any other error if the outcome is unknown. After
   * `timeoutMs`, it rejects and drops the connection, because the server may still run the statement there.
   *
   * @param isUrgent whether a connection is kept for this statement and others like it, and they come before the others
   */
  query(
    text: string,
    values: readonly unknown[],
    timeoutMs: number,
    isUrgent?: boolean,
  ): Promise<readonly PostgresRow[]>;

  /**
   * Opens a connection that listens to a channel, and reconnects until it is closed. Through a pooler in transaction mode, no notification may
   * ever arrive.
   */
  listen(channel: string, listeners: NotificationListeners): Subscription;

  /** Closes all connections. Resolves once they are closed. */
  close(): Promise<void>;
}

/** A row by column names. */
export type PostgresRow = Readonly<Record<string, unknown>>;

export interface NotificationListeners {
  /** The server confirmed the `LISTEN`. Called again after each reconnect: earlier notifications may be lost. */
  subscribed(): void;
  message(payload: string): void;
  /** The connection broke, or an attempt to connect failed. Another attempt follows. */
  failed(error: Error): void;
}

export interface Subscription {
  /** Resolves when the server answers on the listening connection. Undefined if there is no connection. */
  ping(): Promise<unknown> | undefined;
  /** Drops a connection that does not answer, and opens another one. */
  replace(): void;
  close(): void;
}

/** The server rejected a statement, which therefore had no effect. */
export class StatementError extends Error {
  override readonly name = "StatementError";

  /** @param code the five characters of the error, called SQLSTATE */
  constructor(
    message: string,
    readonly code: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
