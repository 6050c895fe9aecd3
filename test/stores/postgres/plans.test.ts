import test from "ava";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { AcquireRequest, WholeStore } from "../../../runtime/stores/port";
import {
  acquire,
  batchOf,
  LONG_MS,
  newId,
  newKey,
  release,
  renew,
  request,
  TIMEOUT_MS,
} from "../../store-contract/subject";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { poolPort } from "./pool-port";

// A connection keeps the plan that it made while a table was empty. The plan must read few rows when the table is large, too.

const OTHER_HOLDS = 5_000;
const BATCH = 20;

let server: PostgresServer;
let port: PostgresPort;
let store: WholeStore;

test.before(async () => {
  server = await startPostgres();
  port = poolPort(server.url, { connections: 1 });
  await port.query(migrationSql(), [], TIMEOUT_MS);
  store = postgresStore(port);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

/** Runs all commands of a plain lock, for one key and for several. */
async function runAll(): Promise<void> {
  const [key, id] = [newKey(), newId()];
  await acquire(store, key, id);
  await renew(store, key, id, LONG_MS);
  await release(store, key, id);
  const requests = Array.from({ length: BATCH }, (): AcquireRequest => request(newKey(), newId()));
  await batchOf(store).acquireMany(requests, TIMEOUT_MS);
  await store.renew(requests, TIMEOUT_MS); // They join a renewal group.
  await store.renew(requests, TIMEOUT_MS);
  await batchOf(store).releaseMany(requests, TIMEOUT_MS);
}

/** Returns how many rows of the table, and entries of its indexes, the connection has read so far. */
async function rowsRead(): Promise<number> {
  await port.query("SELECT pg_stat_force_next_flush()", [], TIMEOUT_MS);
  const [row] = await port.query(
    `SELECT (t.seq_tup_read + t.idx_tup_fetch + sum(i.idx_tup_read))::integer AS read
    FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid) WHERE t.relname = 'hold'
    GROUP BY t.seq_tup_read, t.idx_tup_fetch`,
    [],
    TIMEOUT_MS,
  );
  return Number(row?.["read"]);
}

test("no command reads the whole table, even if the table was empty when its plan was made", async (t) => {
  await runAll();
  await port.query(
    `INSERT INTO lockweave.hold (key, holder, expires_at)
    SELECT 'other ' || n, 'holder', clock_timestamp() + interval '1 hour' FROM generate_series(1, ${OTHER_HOLDS}) n`,
    [],
    TIMEOUT_MS,
  );
  const before = await rowsRead();
  await runAll();
  const read = (await rowsRead()) - before;
  t.true(read < OTHER_HOLDS, `${read} rows`);
});

test("a batch grants a key to the first of its requests", async (t) => {
  const [key, first, second, free] = [newKey(), newId(), newId(), newId()];
  const requests = [request(key, first), request(key, second), request(newKey(), free)];
  t.deepEqual(await batchOf(store).acquireMany(requests, TIMEOUT_MS), [
    { acquired: true },
    { acquired: false, holder: first, freeInMs: undefined },
    { acquired: true },
  ]);
});
