import test from "ava";
import { Client } from "pg";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import { newId, newKey, request, TIMEOUT_MS } from "../store-contract/subject";
import { KINDS } from "../stores/postgres/kinds";
import { Crowd } from "../support/crowd";
import { startPgBouncer, type PgBouncer } from "../support/pgbouncer";
import { startPostgres, type PostgresServer } from "../support/postgres-server";
import { judge } from "../support/sections";
import { inMatrixSerially, isMatrix } from "../support/suites";
import { until } from "../support/until";

// PgBouncer in transaction mode, whose one connection to each of two databases serves all processes. It restarts under load. In the other
// database, each command begins a transaction of its own.

let server: PostgresServer;
let pooler: PgBouncer;

const DATABASES = ["postgres", "other"] as const;

test.before(async () => {
  if (!isMatrix) return;
  server = await startPostgres();
  pooler = await startPgBouncer(server, "default_pool_size = 1", "server_reset_query_always = 0");
  const admin = new Client({ connectionString: server.url });
  await admin.connect();
  await admin.query("CREATE DATABASE other");
  await admin.query("ALTER DATABASE other SET default_transaction_isolation = 'serializable'");
  await admin.end();
  for (const database of DATABASES) {
    const client = new Client({ connectionString: server.urlOf({ database }) });
    await client.connect();
    await client.query(migrationSql());
    await client.end();
  }
});

test.after.always(async () => {
  if (!isMatrix) return;
  await pooler.stop();
  await server.stop();
});

const RESTARTS = 3;

for (const { name, open } of KINDS) {
  for (const fencing of [false, true]) {
    inMatrixSerially(
      `${name}: locks ${fencing ? "with" : "without"} fencing tokens exclude each other through a pooler that restarts`,
      async (t) => {
        const crowds = DATABASES.map((database) => {
          const store = (): ReturnType<typeof postgresStore> => postgresStore(open(pooler.urlOf(database)));
          return new Crowd(store, ["LOCK_pooled", "LOCK_pooled_2"], true, { fencing });
        });
        for (let restart = 0; restart < RESTARTS; restart += 1) {
          await Promise.all(crowds.map((crowd) => crowd.progresses()));
          await pooler.restart();
        }
        await Promise.all(crowds.map((crowd) => crowd.progresses()));
        await Promise.all(crowds.map((crowd) => crowd.end()));
        const perKey = crowds.flatMap(({ sections }) => Array.from(sections.values()));
        for (const sections of perKey) {
          const { unannounced, fallenTokens } = judge(sections);
          t.deepEqual([unannounced, fallenTokens], [[], []]);
        }
        for (const database of DATABASES) t.deepEqual(await leftIn(database), []);
      },
    );
  }
}

for (const { name, open } of KINDS) {
  inMatrixSerially(
    `${name}: a command that waits for a transaction of the pooler has no effect after its timeout`,
    async (t) => {
      const client = new Client({ connectionString: pooler.url });
      await client.connect();
      t.teardown(() => client.end());
      const store = postgresStore(open(pooler.url));
      t.teardown(() => store.close());
      const key = newKey();
      await store.peek([key], TIMEOUT_MS); // Opens a connection, which may take longer than the command may.
      await client.query("BEGIN");
      const sockets = openSockets();
      const error = await t.throwsAsync(store.acquire(request(key, newId()), 200));
      t.is(error.message, "PostgreSQL did not answer within 200 ms");
      // The pooler must see that the connection of the command has closed before the transaction ends.
      await until(() => openSockets() < sockets);
      await client.query("COMMIT");
      t.deepEqual(await store.peek([key], TIMEOUT_MS), [undefined]);
    },
  );
}

function openSockets(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
}

/** Returns the settings and prepared statements that the pooler's connection still has, and the advisory locks of the database. */
async function leftIn(database: string): Promise<readonly unknown[]> {
  const client = new Client({ connectionString: pooler.urlOf(database) });
  await client.connect();
  const { rows } = await client.query(`
    SELECT name FROM pg_settings
      WHERE name IN ('lock_timeout', 'synchronous_commit', 'search_path', 'default_transaction_isolation', 'enable_seqscan') AND source = 'session'
    UNION ALL SELECT 'isolation'
      WHERE current_setting('transaction_isolation') <> current_setting('default_transaction_isolation')
    UNION ALL SELECT name FROM pg_prepared_statements
    UNION ALL SELECT locktype FROM pg_locks WHERE locktype = 'advisory'`);
  await client.end();
  return rows;
}
