import { Client, Pool } from "pg";
import {
  StatementError,
  type NotificationListeners,
  type PostgresPort,
  type PostgresRow,
  type Subscription,
} from "../../../runtime/stores/postgres/client-port";

/** Options of a {@link poolPort}. */
export interface PoolPortOptions {
  readonly connections?: number;
  /** Settings of each connection, such as `-c default_transaction_isolation=serializable`. */
  readonly options?: string;
}

/** The smallest port over `pg`, for tests of the store alone. */
export function poolPort(url: string, { connections = 4, options = "" }: PoolPortOptions = {}): PostgresPort {
  const pool = new Pool({ connectionString: url, max: connections, options });
  pool.on("error", () => {});
  const closing: (() => Promise<void>)[] = [];
  return {
    async query(text, values, timeoutMs) {
      try {
        const query = { text, values: [...values], query_timeout: timeoutMs };
        const { rows } = await pool.query<PostgresRow>(query);
        return rows;
      } catch (error) {
        const { severity, code, message } = error as Error & Readonly<Record<string, string | undefined>>;
        if (severity === "ERROR") throw new StatementError(message ?? "", code ?? "", { cause: error });
        throw error;
      }
    },
    listen(channel, listeners): Subscription {
      const listening = new Listening(url, channel, listeners);
      closing.push(() => listening.close());
      return listening;
    },
    async close() {
      await Promise.all([pool.end(), ...closing.map((close) => close())]);
    },
  };
}

const RECONNECT_MS = 100;

/** A connection that listens to a channel, and reconnects. */
class Listening implements Subscription {
  readonly #url: string;
  readonly #channel: string;
  readonly #listeners: NotificationListeners;
  #client: Client | undefined;
  #isClosed = false;

  constructor(url: string, channel: string, listeners: NotificationListeners) {
    this.#url = url;
    this.#channel = channel;
    this.#listeners = listeners;
    this.#open();
  }

  ping(): Promise<unknown> | undefined {
    return this.#client?.query("SELECT 1");
  }

  replace(): void {
    void this.#client?.end();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#client?.end().catch(() => {});
  }

  #open(): void {
    if (this.#isClosed) return;
    const client = new Client({ connectionString: this.#url });
    this.#client = client;
    client.on("notification", ({ payload = "" }) => this.#listeners.message(payload));
    client.on("error", (error) => this.#listeners.failed(error));
    client.once("end", () => setTimeout(() => this.#open(), RECONNECT_MS).unref());
    client
      .connect()
      .then(() => client.query(`LISTEN "${this.#channel}"`))
      .then(
        () => this.#listeners.subscribed(),
        (error: Error) => {
          this.#listeners.failed(error);
          void client.end().catch(() => {});
        },
      );
  }
}
