import { Client } from "pg";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { startPgBouncer } from "../../support/pgbouncer";
import { signalAll, startPostgres } from "../../support/postgres-server";
import { setTimeout as pause } from "node:timers/promises";
import { LONGEST_LOCK_MS } from "../plan";
import { openRoutes } from "../route";
import type { Topology } from "../topology";

const OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";

/** One PostgreSQL server, which some processes reach through a pooler. */
export async function startPostgresServer(): Promise<Topology> {
  const server = await startPostgres("max_connections=200");
  const pooler = await startPgBouncer(server, "default_pool_size = 10");
  const run = (statement: string): Promise<readonly unknown[]> => runAlone(server.url, statement);
  await run(migrationSql());
  return {
    options: { replicas: 0 },
    hasSharedLocks: true,
    configuration: { postgres: server.url },
    faults: {
      "killed connection": async () =>
        void (await run(
          `SELECT pg_terminate_backend(pid) FROM (SELECT pid ${OTHERS} ORDER BY random() LIMIT 1) one`,
        )),
      "killed connections": async () => void (await run(`SELECT pg_terminate_backend(pid) ${OTHERS}`)),
      "canceled statements": async () => void (await run(`SELECT pg_cancel_backend(pid) ${OTHERS}`)),
      "crashed server": () => server.crash(),
      "restarted pooler": () => pooler.restart(),
      async "frozen server"(random) {
        signalAll(server, "SIGSTOP");
        await pause(random.below(2_000));
        signalAll(server, "SIGCONT");
      },
    },
    mayRepeatCommands: false,
    async connect(random) {
      const routes = await openRoutes([server.port, pooler.port]);
      const [direct = "", pooled = ""] = routes.map(
        ({ port }) => `postgres://postgres@127.0.0.1:${port}/postgres`,
      );
      const url = random.oneOf(direct, pooled);
      return { routes, target: { kind: "postgres", url, listenUrl: direct, guardUrl: direct } };
    },
    async leftovers() {
      const rows = await run(
        `SELECT key, expires_at - clock_timestamp() AS left_for FROM lockweave.hold
         WHERE expires_at > clock_timestamp() + interval '${LONGEST_LOCK_MS} ms'`,
      );
      return rows.map((row) => `stays too long: ${JSON.stringify(row)}`);
    },
    clear: async () => void (await run("DELETE FROM lockweave.hold")),
    async stop() {
      await pooler.stop();
      await server.stop();
    },
  };
}

/** Runs a statement on a connection of its own, because faults end connections. */
async function runAlone(url: string, statement: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {}); // The statement rejects.
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}
