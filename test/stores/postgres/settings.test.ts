import test from "ava";
import { Client } from "pg";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { Store, WholeStore } from "../../../runtime/stores/port";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import {
  acquire,
  batchOf,
  isForgotten,
  LONG_MS,
  newId,
  newKey,
  peek,
  release,
  renewal,
  request,
  SHORT_MS,
  TAKEN,
  TIMEOUT_MS,
} from "../../store-contract/subject";
import { poolPort } from "./pool-port";

let server: PostgresServer;
let port: PostgresPort;
let store: WholeStore;
let client: Client;

test.before(async () => {
  server = await startPostgres();
  port = poolPort(server.url);
  await port.query(migrationSql(), [], TIMEOUT_MS);
  store = postgresStore(port);
  client = new Client({ connectionString: server.url });
  await client.connect();
});

test.after.always(async () => {
  await client.end();
  await store.close();
  await server.stop();
});

async function works(over: Store, key = newKey()): Promise<boolean> {
  const id = newId();
  const isAcquired = (await acquire(over, key, id)).acquired;
  return isAcquired && (await peek(over, key)) === id && (await release(over, key, id)).released;
}

// ---- keys ---------------------------------------------------------------------------------------------

const LONG = "x".repeat(5_000);

for (const key of [
  "a\0b",
  "a\\0b",
  "\\",
  "\\#",
  LONG,
  `${LONG}y`,
  "ключ",
  "🔑".repeat(400),
  "a'b\"c$1",
  " ",
]) {
  test(`the key ${JSON.stringify(key.slice(0, 20))} of ${key.length} characters can be held`, async (t) => {
    t.true(await works(store, key));
  });
}

test("keys that look alike are separate locks", async (t) => {
  const alike = ["a\0b", "a\\0b", "a\\\\0b", LONG, `${LONG}y`, "é", "e\u0301", "A", "a", "a "];
  const keys = alike.map((key) => `alike${key}`);
  const ids = keys.map(() => newId());
  for (const [index, key] of keys.entries())
    t.deepEqual(await acquire(store, key, ids[index] ?? ""), TAKEN, key.slice(0, 10));
  t.deepEqual(await store.peek(keys, TIMEOUT_MS), ids);
  for (const [index, key] of keys.entries()) await release(store, key, ids[index] ?? "");
});

// ---- settings of the user -----------------------------------------------------------------------------

test("locks work whatever the settings of the role are", async (t) => {
  const options = [
    "search_path=nowhere",
    "TimeZone=Asia/Kathmandu",
    "DateStyle=SQL,DMY",
    "IntervalStyle=sql_standard",
    "default_transaction_isolation=repeatable\\ read",
    "default_transaction_read_only=on",
    "default_transaction_deferrable=on",
    "synchronous_commit=off",
    "extra_float_digits=-15",
    "lock_timeout=1",
    "row_security=off",
    "check_function_bodies=off",
    "standard_conforming_strings=off",
  ];
  const given = options.map((option) => `-c ${option}`).join(" ");
  const over = postgresStore(poolPort(server.url, { options: given }));
  t.true(await works(over));
  const [key, id] = [newKey(), newId()];
  await acquire(over, key, id, { lockTimeMs: LONG_MS });
  const [hold] = (await over.admin.inspect(key, TIMEOUT_MS)).holds;
  t.true((hold?.leftMs ?? 0) > LONG_MS - TIMEOUT_MS);
  await over.close();
});

/** The store over a port that also reports a setting at the end of the transaction of each statement. */
async function settingAfter(
  run: (over: Store) => Promise<unknown>,
  set: string,
): Promise<string | undefined> {
  let seen: string | undefined;
  const over = postgresStore({
    ...port,
    async query(text, values) {
      await client.query(`BEGIN; SET LOCAL synchronous_commit = ${set}`);
      const { rows } = await client.query<Record<string, unknown>>(text, [...values]);
      seen = (await client.query<{ readonly s: string }>("SELECT current_setting('synchronous_commit') AS s"))
        .rows[0]?.s;
      await client.query("COMMIT");
      return rows;
    },
  });
  await run(over);
  return seen;
}

test.serial(
  "a grant and a renewal wait for the disk even if the role turned that off, and a release does not",
  async (t) => {
    const [key, id] = [newKey(), newId()];
    const taking = (over: Store): Promise<unknown> => acquire(over, key, id);
    const renewing = (over: Store): Promise<unknown> => over.renew([renewal(key, id)], TIMEOUT_MS);
    const refused = (over: Store): Promise<unknown> => acquire(over, key, newId());
    t.is(await settingAfter(taking, "off"), "local");
    t.is(await settingAfter(renewing, "off"), "local");
    t.is(await settingAfter(renewing, "remote_apply"), "remote_apply");
    t.is(await settingAfter(refused, "on"), "off");
    t.is(await settingAfter((over) => release(over, key, id), "on"), "off");
  },
);

test("commands wait for other transactions no longer than their own timeout", async (t) => {
  const other = new Client({ connectionString: server.url });
  await other.connect();
  // The connections are those of this test alone, and wait longer than the server, whose time is what counts.
  const ownPort = poolPort(server.url);
  const idle = postgresStore({
    listen: ownPort.listen,
    close: ownPort.close,
    query: (text, values, timeoutMs) => ownPort.query(text, values, timeoutMs + TIMEOUT_MS),
  });
  const key = newKey();
  await other.query("BEGIN");
  await other.query(
    "SELECT pg_advisory_xact_lock(hashtextextended($1, 'lockweave.hold'::regclass::oid::bigint))",
    [key],
  );
  const refused = idle.acquire(request(key, newId()), SHORT_MS);
  await t.throwsAsync(refused, { message: /holds the advisory lock of the key/ });
  await other.query("ROLLBACK");
  await other.end();
  t.true(await works(idle, key));
  await idle.close();
});

test("the server gives up before the caller does, so that the caller gets the server's error", async (t) => {
  const times: unknown[] = [];
  const over = postgresStore({
    ...port,
    query(text, values, timeoutMs) {
      times.push(values.at(-1));
      return port.query(text, values, timeoutMs);
    },
  });
  await acquire(over, newKey(), newId());
  t.deepEqual(times, [TIMEOUT_MS * 0.9]);
});

// ---- many keys ----------------------------------------------------------------------------------------

test("batches with the same keys in different orders never deadlock", async (t) => {
  const keys = Array.from({ length: 60 }, newKey);
  const { acquireMany, releaseMany } = batchOf(store);
  const rounds = Array.from({ length: 40 }, async (_, round) => {
    const order = round % 2 === 0 ? keys : keys.toReversed();
    const requests = order.map((key) => request(key, newId()));
    const replies = await acquireMany.call(store.batch, requests, TIMEOUT_MS);
    const held = requests.filter((_one, index) => {
      const reply = replies[index];
      return reply !== undefined && "acquired" in reply && reply.acquired;
    });
    const renewed = store.renew(held.toReversed(), TIMEOUT_MS);
    const released = releaseMany.call(store.batch, held, TIMEOUT_MS);
    await renewed;
    return (await released).every((reply) => "released" in reply && reply.released);
  });
  t.true((await Promise.all(rounds)).every(Boolean));
  for (const key of keys) t.true(await isForgotten(store, key));
});

// ---- what is left -------------------------------------------------------------------------------------

const count = async (table: string): Promise<number> =>
  Number(
    (await client.query<{ readonly n: string }>(`SELECT count(*) AS n FROM lockweave.${table}`)).rows[0]?.n,
  );

test.serial("old rows of keys that nobody uses again disappear while other keys are used", async (t) => {
  await client.query(`
    INSERT INTO lockweave.hold (key, holder, expires_at)
      SELECT 'old' || n, md5(n::text), clock_timestamp() - interval '1 minute' FROM generate_series(1, 2000) n;
    INSERT INTO lockweave.waiter (key, turn, ticket, inbox, is_reader, expires_at)
      SELECT 'old' || n, 1, md5(n::text), '', false, clock_timestamp() - interval '1 minute' FROM generate_series(1, 2000) n;
    INSERT INTO lockweave.fence (key, last_token, expires_at)
      SELECT 'old' || n, 1, clock_timestamp() - interval '1 minute' FROM generate_series(1, 2000) n;`);
  const keys = Array.from({ length: 64 }, newKey);
  const isDone = async (): Promise<boolean> => {
    const counts = await Promise.all(
      ["hold", "waiter", "fence"].map((table) => count(`${table} WHERE key LIKE 'old%'`)),
    );
    return counts.every((rows) => rows < 200);
  };
  // Each round reads a few blocks at random. Mostly that takes less than 130 rounds.
  for (let round = 0; round < 2_000 && !(await isDone()); round += 1) {
    const requests = keys.map((key) => request(key, newId()));
    await store.batch?.acquireMany(requests, TIMEOUT_MS);
    await store.batch?.releaseMany(requests, TIMEOUT_MS);
  }
  t.true(await isDone());
});
