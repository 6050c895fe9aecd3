import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { Pool } from "pg";
import postgres from "postgres";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { WholeStore } from "../../../runtime/stores/port";
import { storeContract, untilListening } from "../../store-contract";
import { startPgBouncer, type PgBouncer } from "../../support/pgbouncer";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { isMatrix } from "../../support/suites";
import { registering } from "../registering";
import { portOf } from "./kinds";
import { poolPort } from "./pool-port";

// The store contract on a real server: over each client library, directly and behind PgBouncer in transaction mode, and with a role whose
// settings begin other transactions than locks need.

const SCHEMA = "Locks_of_tests";
const OTHER_TRANSACTIONS =
  "-c default_transaction_isolation=serializable -c default_transaction_read_only=on";

type Way =
  | "pg"
  | "postgres.js"
  | "pg behind PgBouncer"
  | "postgres.js behind PgBouncer"
  | "serializable and read only";

let server: PostgresServer;
let pooler: PgBouncer;
let admin: PostgresPort;
let stores: Readonly<Record<Way, WholeStore>>;

test.before(async () => {
  server = await startPostgres();
  pooler = await startPgBouncer(server);
  const { url } = server;
  admin = poolPort(url);
  await admin.query(migrationSql(SCHEMA), [], 30_000);
  const over = (port: PostgresPort): WholeStore => postgresStore(port, { schema: SCHEMA });
  stores = {
    pg: over(portOf({ client: new Pool({ connectionString: url }) })),
    "postgres.js": over(portOf({ client: postgres(url) })),
    "pg behind PgBouncer": over(
      portOf({ client: new Pool({ connectionString: pooler.url }), listenUrl: url }),
    ),
    "postgres.js behind PgBouncer": over(portOf({ client: postgres(pooler.url), listenUrl: url })),
    "serializable and read only": over(poolPort(url, { options: OTHER_TRANSACTIONS })),
  };
  await Promise.all(Object.values(stores).map((store) => untilListening(store)));
});

test.after.always(async () => {
  await Promise.all([...Object.values(stores), admin].map((one) => one.close()));
  await pooler.stop();
  await server.stop();
});

/** The server and this process read the same clock, but a command may begin within the same millisecond. */
const elapse = (ms: number): Promise<void> => pause(ms + 5);

async function put(key: string, value: string, ms: number): Promise<void> {
  const text = `INSERT INTO "${SCHEMA}".hold (key, holder, expires_at)
    VALUES ($1::text, $2::text, clock_timestamp() + make_interval(secs => $3::float8 / 1000))`;
  await admin.query(text, [key, value, ms], 30_000);
}

const WAYS: readonly Way[] = isMatrix
  ? ["pg behind PgBouncer", "postgres.js behind PgBouncer", "serializable and read only"]
  : ["pg", "postgres.js"];
for (const way of WAYS) {
  storeContract(registering(test, `${way}: `), () => ({ store: stores[way], elapse, put }));
}
