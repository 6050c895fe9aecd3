import type { CancelTimer, Clock } from "../../base/clock";
import { inRoot } from "../../base/root-context";
import { Backoff } from "../connection/backoff";
import type { NotificationListeners } from "./client-port";
import { CONNECT_MS, endInTime, type Connection, type OpenConnection } from "./connection";
import { translateError } from "./server-errors";

/** A connection that listens to a channel. When it breaks, another one takes its place. */
export class ListeningConnection {
  readonly #open: OpenConnection;
  readonly #channel: string;
  readonly #listeners: NotificationListeners;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  #connection: Connection | undefined;
  /** Whether the server has confirmed that the current connection listens. */
  #isListening = false;
  #cancelTimer: CancelTimer = () => {};
  #isClosed = false;

  constructor(open: OpenConnection, channel: string, listeners: NotificationListeners, clock: Clock) {
    this.#open = open;
    this.#channel = channel;
    this.#listeners = listeners;
    this.#clock = clock;
    this.#backoff = new Backoff(clock, () => Infinity);
    this.#connect();
  }

  ping(): Promise<unknown> | undefined {
    return this.#isListening ? inRoot(() => this.#connection?.run("SELECT 1", [])) : undefined;
  }

  replace(): void {
    inRoot(() => this.#replace());
  }

  async end(): Promise<void> {
    const connection = this.#connection;
    const wasListening = this.#isListening;
    this.#isClosed = true;
    this.#forget();
    this.#backoff.stop();
    if (connection === undefined) return;
    if (wasListening) await inRoot(() => endInTime(connection, this.#clock));
    else connection.destroy();
  }

  #connect(): void {
    if (this.#isClosed) return;
    try {
      const connection: Connection = this.#open({
        ended: (error) => this.#onEnd(connection, error),
        notified: (payload) => {
          if (this.#connection === connection) this.#listeners.message(payload);
        },
        warned() {},
      });
      this.#connection = connection;
      void this.#listen(connection);
    } catch (error) {
      this.#listeners.failed(translateError(error));
      this.#backoff.schedule(() => this.#connect());
    }
  }

  async #listen(connection: Connection): Promise<void> {
    this.#cancelTimer = this.#clock.afterInBackground(CONNECT_MS, () =>
      this.#onEnd(connection, new Error(`PostgreSQL did not answer within ${CONNECT_MS} ms`)),
    );
    try {
      await connection.connect();
      await connection.run(`LISTEN "${this.#channel.replaceAll('"', '""')}"`, []);
    } catch (error) {
      return this.#onEnd(connection, error);
    }
    if (this.#connection !== connection) return;
    this.#cancelTimer();
    this.#isListening = true;
    this.#backoff.connected();
    this.#listeners.subscribed();
  }

  #onEnd(connection: Connection, error: unknown): void {
    if (this.#connection !== connection) return;
    this.#replace();
    this.#listeners.failed(translateError(error));
  }

  #replace(): void {
    const connection = this.#connection;
    this.#forget();
    connection?.destroy();
    if (!this.#isClosed) this.#backoff.schedule(() => this.#connect());
  }

  #forget(): void {
    this.#cancelTimer();
    this.#connection = undefined;
    this.#isListening = false;
  }
}
