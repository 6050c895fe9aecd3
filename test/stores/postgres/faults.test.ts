import test from "ava";
import { Client } from "pg";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { Store } from "../../../runtime/stores/port";
import {
  acquire,
  batchOf,
  newId,
  newKey,
  peek,
  placing,
  release,
  renew,
  request,
  LONG_MS,
  TAKEN,
  TIMEOUT_MS,
} from "../../store-contract/subject";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { poolPort } from "./pool-port";

let server: PostgresServer;

test.before(async () => {
  server = await startPostgres("max_connections=20", "superuser_reserved_connections=3");
  const client = new Client({ connectionString: server.url });
  await client.connect();
  await client.query(`${migrationSql()}
    CREATE ROLE hasty LOGIN SUPERUSER;
    ALTER ROLE hasty SET statement_timeout = 500;
    CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data;`);
  await client.query("CREATE DATABASE latin ENCODING LATIN1 TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
  await client.end();
});

test.after.always(() => server.stop());

test.serial("a held lock and its fencing token survive a crash of the server", async (t) => {
  const [key, id] = [newKey(), newId()];
  const before = postgresStore(poolPort(server.url));
  const first = await acquire(before, key, id, { fencing: true });
  await before.close();
  await server.crash();
  const after = postgresStore(poolPort(server.url));
  t.is(await peek(after, key), id);
  t.deepEqual(await renew(after, key, id, LONG_MS), { renewed: true });
  t.true((await release(after, key, id)).released);
  const second = await acquire(after, key, newId(), { fencing: true });
  t.true(first.acquired && second.acquired && (second.fencingToken ?? 0) > (first.fencingToken ?? Infinity));
  await after.close();
});

test.serial("listeners are notified when the server replies again after an outage", async (t) => {
  const store = postgresStore(poolPort(server.url));
  let reconnects = 0;
  const unsubscribe = store.listen({
    onWakeUp() {},
    onReconnect: () => void (reconnects += 1),
    onWarning() {},
  });
  await acquire(store, newKey(), newId());
  await server.halt();
  await t.throwsAsync(acquire(store, newKey(), newId()));
  await server.resume();
  t.true((await acquire(store, newKey(), newId())).acquired);
  t.is(reconnects, 1);
  unsubscribe();
  await store.close();
});

test.serial(
  "if the server has too many connections, the error says what to do, and a retry may succeed",
  async (t) => {
    const clients = Array.from({ length: 17 }, () => new Client({ connectionString: server.url }));
    await Promise.all(clients.map((client) => client.connect()));
    const store = postgresStore(poolPort(server.urlOf({ user: "app" })));
    const error = await t.throwsAsync(acquire(store, newKey(), newId()));
    t.not(error.name, "LockMisconfiguredError");
    t.regex(error.message, /too many connections .*Fix: raise max_connections/);
    await Promise.all(clients.map((client) => client.end()));
    await store.close();
  },
);

test.serial("a statement_timeout of the role cancels a command, which then has no effect", async (t) => {
  const store = postgresStore(poolPort(server.urlOf({ user: "hasty" })));
  const key = newKey();
  const other = new Client({ connectionString: server.url });
  await other.connect();
  await other.query("BEGIN");
  await other.query(
    "SELECT pg_advisory_xact_lock(hashtextextended($1, 'lockweave.hold'::regclass::oid::bigint))",
    [key],
  );
  await t.throwsAsync(store.acquire(request(key, newId()), TIMEOUT_MS), { message: /statement timeout/ });
  await other.query("ROLLBACK");
  await other.end();
  await store.close();
  const patient = postgresStore(poolPort(server.url));
  t.deepEqual(await patient.peek([key], TIMEOUT_MS), [undefined]);
  await patient.close();
});

test.serial(
  "a database that cannot represent a key rejects it with an error that says what to do",
  async (t) => {
    const url = server.urlOf({ database: "latin" });
    const port = poolPort(url);
    await port.query(migrationSql(), [], TIMEOUT_MS);
    const store = postgresStore(port);
    t.true((await acquire(store, `é${newKey()}`, newId())).acquired);
    const expected = {
      name: "LockMisconfiguredError",
      message: /encoding .* Fix: use a database with the encoding UTF8/,
    };
    await t.throwsAsync(acquire(store, "ключ", newId()), expected);
    const keys = [newKey(), newKey(), "ключ", newKey()];
    const replies = await batchOf(store).acquireMany(
      keys.map((key) => request(key, newId())),
      TIMEOUT_MS,
    );
    const [, , rejected] = replies;
    t.true(rejected instanceof Error && expected.message.test(rejected.message));
    t.deepEqual(replies.toSpliced(2, 1), [TAKEN, TAKEN, TAKEN]);
    await store.close();
  },
);

test.serial(
  "the error of a command that waits too long for a table says so, and the command has no effect later",
  async (t) => {
    const port = poolPort(server.url);
    // The test needs the error of the server, however late it comes.
    const query: typeof port.query = (text, values) => port.query(text, values, TIMEOUT_MS);
    const store = postgresStore({ ...port, query });
    const [held, id, key] = [newKey(), newId(), newKey()];
    await acquire(store, held, id);
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query("BEGIN");
    await client.query("LOCK TABLE lockweave.hold IN ACCESS EXCLUSIVE MODE");
    const blocked = { message: /another transaction in PostgreSQL blocks the command .*Fix: find its pid/ };
    await t.throwsAsync(store.acquire(request(key, newId()), 50), blocked);
    await t.throwsAsync(store.release({ key: held, requestId: id }, 50), blocked);
    await client.query("COMMIT");
    await client.end();
    t.deepEqual(await store.peek([held, key], TIMEOUT_MS), [id, undefined]);
    await store.close();
  },
);

test.serial(
  "fencing tokens never fall, even if the server's clock steps back or an old backup is restored",
  async (t) => {
    const store = postgresStore(poolPort(server.url));
    const client = new Client({ connectionString: server.url });
    await client.connect();
    const key = newKey();
    const draw = async (): Promise<number> => {
      const id = newId();
      const reply = await acquire(store, key, id, { fencing: true });
      await release(store, key, id);
      return reply.acquired ? (reply.fencingToken ?? NaN) : NaN;
    };
    // The clock was a minute ahead when the last token was drawn.
    const first = await draw();
    await client.query("UPDATE lockweave.fence SET last_token = last_token + 60000000 WHERE key = $1", [key]);
    const second = await draw();
    t.true(second > first + 59_000_000);
    // A backup has no fence yet, or an old one.
    await client.query("DELETE FROM lockweave.fence WHERE key = $1", [key]);
    t.true((await draw()) > first);
    await client.end();
    await store.close();
  },
);

test.serial(
  "a fencing token that no number in JavaScript can represent is rejected, and other keys are served",
  async (t) => {
    const store = postgresStore(poolPort(server.url));
    const client = new Client({ connectionString: server.url });
    await client.connect();
    const [key, id, other] = [newKey(), newId(), newKey()];
    const largest = BigInt(Number.MAX_SAFE_INTEGER);
    const setLast = (token: bigint): Promise<unknown> =>
      client.query(
        `INSERT INTO lockweave.fence VALUES ($1, $2, now() + interval '1 day')
        ON CONFLICT (key) DO UPDATE SET last_token = $2`,
        [key, token],
      );
    const expected = /^the fencing token 900719925474099[4-9] is too large .*Fix: correct the clock/;
    await setLast(largest - 64n);
    t.is((await tokenOf(store, key)) ?? NaN, Number.MAX_SAFE_INTEGER - 63);
    await setLast(largest + 2n);
    await t.throwsAsync(store.acquire(request(key, id, { fencing: true }), TIMEOUT_MS), {
      message: expected,
    });
    await setLast(largest + 4n);
    const renewals = [
      { ...request(key, id), fencing: true },
      { ...request(other, id), fencing: true },
    ];
    await acquire(store, other, id);
    const [failed, renewed] = await store.renew(renewals, TIMEOUT_MS);
    t.true(failed instanceof Error && expected.test(failed.message));
    t.true(renewed !== undefined && "renewed" in renewed && renewed.renewed);
    await setLast(largest + 5n);
    const placed = store.queue.releaseAndEnqueue(
      { key, requestId: id },
      placing(key, newId(), { fencing: true }),
      TIMEOUT_MS,
    );
    await t.throwsAsync(placed, { message: expected });
    await client.end();
    await store.close();
  },
);

async function tokenOf(store: Store, key: string): Promise<number | undefined> {
  const id = newId();
  const reply = await acquire(store, key, id, { fencing: true });
  await release(store, key, id);
  return reply.acquired ? reply.fencingToken : undefined;
}
