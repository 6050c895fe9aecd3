import { Client } from "pg";
import {
  StatementError,
  type PostgresPort,
  type PostgresRow,
} from "../../../runtime/stores/postgres/client-port";
import { systemClock, type Clock } from "../../../runtime/base/clock";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import { RenewalGroups } from "../../../runtime/stores/postgres/renewal-groups";
import type { WakeUp } from "../../../runtime/stores/postgres/statements";
import { NOTIFY } from "../../../runtime/stores/postgres/wake-ups";
import type { WholeStore } from "../../../runtime/stores/port";
import type { PostgresServer } from "../../support/postgres-server";
import { PROCESSES, type HistoryTransaction, type Subject } from "../history";

/** Functions that replace those of the server in the functions of the schema. The test sets the time. */
const REPLACEMENTS = `
CREATE SCHEMA lockweave;
CREATE FUNCTION lockweave.test_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
  $$ SELECT to_timestamp(current_setting('test.now_ms')::double precision / 1000) $$;
CREATE FUNCTION lockweave.test_random() RETURNS double precision LANGUAGE sql VOLATILE AS $$ SELECT 0.9 $$;
`;

const STORED = `
SELECT key || ' ' || holder || ' ' || round(extract(epoch FROM h.expires_at) * 1000 - $1) || ' ' || is_revoked || ' ' || is_released
  || ' ' || coalesce(permit_limit::text, '') || ' ' || permits
  || ' ' || coalesce(round(extract(epoch FROM g.expires_at) * 1000 - $1)::text, '') || ' ' || coalesce(g.renewals::text, '') AS line
  FROM lockweave.hold h LEFT JOIN lockweave.renewal_group g ON g.id = h.group_id
UNION ALL
SELECT 'group ' || round(extract(epoch FROM expires_at) * 1000 - $1) || ' ' || renewals FROM lockweave.renewal_group
UNION ALL
SELECT key || ' ' || ticket || ' ' || turn || ' ' || is_reader || ' ' || round(extract(epoch FROM expires_at) * 1000 - $1)
  FROM lockweave.waiter`;

const EMPTY = ["hold", "renewal_group", "waiter", "fence"]
  .map((table) => `DELETE FROM lockweave.${table};`)
  .join("");

/** The clock of the stores. What they know of renewal groups must not depend on the speed of the server. */
const STOPPED: Clock = { ...systemClock, now: () => 0 };

/** A port without notifications, over a function that runs a statement. */
export function portOver(
  query: (text: string, values: readonly unknown[]) => Promise<readonly PostgresRow[]>,
): PostgresPort {
  return {
    async query(text, values) {
      try {
        return await query(text, values);
      } catch (error) {
        const { message, code = "" } = error as Error & { readonly code?: string };
        throw new StatementError(message, code, { cause: error });
      }
    },
    listen: () => ({ ping: () => undefined, replace() {}, close() {} }),
    close: async () => {},
  };
}

/**
 * Opens the store of each process. Histories let processes renew each other's holds, and then the server compares the IDs of their groups. So
 * these must not be random.
 */
export function storesOver(port: PostgresPort): readonly WholeStore[] {
  return Array.from({ length: PROCESSES }, (_, process) =>
    postgresStore(port, {
      clock: STOPPED,
      groups: new RenewalGroups(1, process.toString(16).padStart(16, "0")),
    }),
  );
}

/** A real server with the real functions, on a clock that the test sets. */
export class TimedPostgres {
  readonly #server: PostgresServer;
  readonly #client: Client;
  /** The connections of transactions, and those that have none at the moment. */
  readonly #clients = new Set<Client>();
  readonly #idle: Client[] = [];
  readonly #open = new Set<Client>();

  private constructor(server: PostgresServer) {
    this.#server = server;
    this.#client = new Client({ connectionString: server.url });
  }

  static async start(server: PostgresServer): Promise<TimedPostgres> {
    const timed = new TimedPostgres(server);
    await timed.#client.connect();
    await timed.#client.query(REPLACEMENTS);
    const sql = migrationSql()
      .replaceAll("clock_timestamp()", "lockweave.test_now()")
      .replaceAll(/\brandom\(\)/g, "lockweave.test_random()");
    await timed.#client.query(sql);
    return timed;
  }

  /** Returns an empty database. */
  async subject(startsAtMs: number): Promise<Subject> {
    const client = this.#client;
    let now = startsAtMs;
    await client.query(EMPTY);
    const pass = async (ms: number): Promise<void> => {
      now += ms;
      await client.query("SELECT set_config('test.now_ms', $1, false)", [String(now)]);
    };
    await pass(0);
    const wakeUps: string[] = [];
    const port = portOver(async (text, values) => {
      if (text === NOTIFY) {
        wakeUps.push(...(JSON.parse(String(values[0])) as readonly WakeUp[]).map(([, ticket]) => ticket));
        return [];
      }
      const { rows } = await client.query<PostgresRow>(text, [...values]);
      return rows;
    });
    return {
      name: "PostgreSQL",
      stores: storesOver(port),
      pass,
      stepClock: pass,
      forgetScripts: async () => {},
      wakeUps: async () => wakeUps.splice(0),
      begin: (isRepeatable) => this.#begin(isRepeatable),
      async stored() {
        const { rows } = await client.query<{ line: string }>(STORED, [startsAtMs]);
        return rows
          .map(({ line }) => `\n    ${line}`)
          .toSorted()
          .join("");
      },
    };
  }

  async #begin(isRepeatable: boolean): Promise<HistoryTransaction> {
    const client = this.#idle.pop() ?? (await this.#connect());
    this.#open.add(client);
    await client.query(`BEGIN ISOLATION LEVEL ${isRepeatable ? "REPEATABLE READ" : "READ COMMITTED"}`);
    await client.query("SELECT 1"); // In REPEATABLE READ, it sees what is committed now.
    return {
      query: (sql) => client.query(sql),
      end: () => this.#end(client),
    };
  }

  async #connect(): Promise<Client> {
    const client = new Client({ connectionString: this.#server.url });
    this.#clients.add(client);
    await client.connect();
    return client;
  }

  async #end(client: Client): Promise<void> {
    this.#open.delete(client);
    await client.query("COMMIT");
    this.#idle.push(client);
  }

  /** Ends the transactions that are still open. */
  async endTransactions(): Promise<void> {
    for (const client of this.#open) await this.#end(client);
  }

  async close(): Promise<void> {
    await Promise.all([this.#client, ...this.#clients].map((client) => client.end()));
  }
}
