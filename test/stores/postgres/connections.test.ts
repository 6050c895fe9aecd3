import { AsyncLocalStorage } from "node:async_hooks";
import test, { type ExecutionContext } from "ava";
import { StatementError, type PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { deferred } from "../../support/deferred";
import { startPgBouncer, type PgBouncer } from "../../support/pgbouncer";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { until } from "../../support/until";
import { KINDS } from "./kinds";

// The features that the store needs of each client library, on a real server.

let server: PostgresServer;
/** Needs a second to open each connection. */
let slow: PostgresServer;
let pooler: PgBouncer;
const PATIENCE_MS = 60_000;

test.before(async () => {
  // Without a standby of that name, a commit that has to be confirmed waits forever.
  server = await startPostgres("max_wal_senders=2", "wal_level=replica", "synchronous_commit=local");
  slow = await startPostgres("pre_auth_delay=3");
  pooler = await startPgBouncer(server);
});
test.after.always(async () => {
  await slow.stop();
  await pooler.stop();
  await server.stop();
});

type Listened = "subscribed" | "failed" | `message ${string}`;

/** Listens, and records what happens, in order. */
function listenTo(port: PostgresPort, channel: string) {
  const seen: Listened[] = [];
  const subscription = port.listen(channel, {
    subscribed: () => void seen.push("subscribed"),
    message: (payload) => void seen.push(`message ${payload}`),
    failed: () => void seen.push("failed"),
  });
  const saw = (what: Listened, times = 1): Promise<void> =>
    until(() => seen.filter((one) => one === what).length >= times);
  return { seen, saw, ...subscription };
}

async function ask(port: PostgresPort, text: string, ...values: readonly unknown[]): Promise<unknown> {
  const [row = {}] = await port.query(text, values, PATIENCE_MS);
  return Object.values(row)[0];
}

const pidOf = (port: PostgresPort): Promise<unknown> => ask(port, "SELECT pg_backend_pid()");

/** Returns the process of the server that listens, once there is one. */
async function listenerPid(port: PostgresPort, channel: string): Promise<number> {
  const text = "SELECT max(pid) FROM pg_stat_activity WHERE query = $1::text";
  await until(async () => (await ask(port, text, `LISTEN "${channel}"`)) !== null);
  return Number(await ask(port, text, `LISTEN "${channel}"`));
}

for (const { name, open } of KINDS) {
  const channel = `channel of ${name}`.replaceAll(/\W/g, "_").slice(0, 63);
  const opened = (t: ExecutionContext, url = server.url, connections?: number): PostgresPort => {
    const port = open(url, connections);
    t.teardown(() => port.close());
    return port;
  };

  for (const by of ["directly", "through PgBouncer in transaction mode"] as const) {
    const urlOf = (): string => (by === "directly" ? server.url : pooler.url);

    test(`${name}: values arrive unchanged, and columns have simple types (${by})`, async (t) => {
      const port = opened(t, urlOf());
      const texts = ["plain", "it's", "back\\slash", "\\'; DROP TABLE x; --", "$1 $2", "ünïcode 🔒", ""];
      for (const text of texts) t.is(await ask(port, "SELECT $1::text", text), text);
      const [row] = await port.query(
        "SELECT $1::integer AS i, $2::boolean AS b, $3::text AS n, $4::text::jsonb AS j, 5::bigint AS l, 1.5::float8 AS f",
        [-5, true, null, '{"a":[1]}'],
        PATIENCE_MS,
      );
      t.deepEqual({ ...row }, { i: -5, b: true, n: null, j: { a: [1] }, l: "5", f: 1.5 });
      t.deepEqual([...(await port.query("SELECT 1 WHERE false", [], PATIENCE_MS))], []);
    });

    test(`${name}: concurrent statements share the connections, in order (${by})`, async (t) => {
      const port = opened(t, urlOf());
      const all = Array.from({ length: 50 }, (_, index) => ask(port, "SELECT $1::integer", index));
      t.deepEqual(
        await Promise.all(all),
        all.map((_, index) => index),
      );
    });
  }

  test(`${name}: a statement that the server rejects fails with its code, and the connection stays open`, async (t) => {
    const port = opened(t);
    const pid = await pidOf(port);
    for (const [text, code, ...values] of [
      ["SELECT * FROM missing", "42P01"],
      ["SELECT 1 / $1::integer", "22012", 0],
      ["SELECT $1::text", "22021", "a\0b"],
    ] as const) {
      const error = await t.throwsAsync(port.query(text, values, PATIENCE_MS), {
        instanceOf: StatementError,
      });
      t.is(error?.code, code);
    }
    t.is(await pidOf(port), pid);
  });

  test(`${name}: a database that does not exist is a StatementError`, async (t) => {
    const port = opened(t, server.urlOf({ database: "missing" }));
    const error = await t.throwsAsync(pidOf(port), { instanceOf: StatementError });
    t.is(error?.code, "3D000");
  });

  test(`${name}: a statement without a reply rejects in time, and another connection replaces its connection`, async (t) => {
    const port = opened(t, server.url, 1);
    const pid = await pidOf(port);
    const sleeping = port.query("SELECT pg_sleep(600)", [], 200);
    const waiting = pidOf(port);
    await t.throwsAsync(sleeping, { message: "PostgreSQL did not answer within 200 ms" });
    t.not(await waiting, pid);
  });

  test(`${name}: the error of a statement that gets no connection in time says so`, async (t) => {
    const port = opened(t, server.url, 1);
    const sleeping = t.throwsAsync(port.query("SELECT pg_sleep(600)", [], 2_000));
    await t.throwsAsync(port.query("SELECT 1", [], 100), {
      message: "all connections to PostgreSQL were busy for 100 ms",
    });
    await sleeping;
  });

  test(`${name}: a connection that opens after its statement has timed out serves the next statement`, async (t) => {
    const port = opened(t, slow.url, 1);
    await t.throwsAsync(port.query("SELECT 1", [], 100), {
      message: "PostgreSQL did not answer within 100 ms",
    });
    // With each attempt, another connection begins to open.
    await until(() =>
      port.query("SELECT 1", [], 100).then(
        () => true,
        () => false,
      ),
    );
    t.is(await pidOf(port), await pidOf(port));
  });

  test(`${name}: a connection that opens too slowly does not close one that works`, async (t) => {
    const port = opened(t, slow.url, 2);
    const pid = await pidOf(port);
    // It takes much longer than the time of the other statement, which needs a second connection.
    const busy = port.query("SELECT pg_sleep(10)", [], PATIENCE_MS);
    await t.throwsAsync(port.query("SELECT 1", [], 100));
    await busy;
    t.is(await pidOf(port), pid);
  });

  test(`${name}: the outcome of a statement is unknown if the server ended its connection`, async (t) => {
    const port = opened(t, server.url, 1);
    const error = await t.throwsAsync(ask(port, "SELECT pg_terminate_backend(pg_backend_pid())"));
    t.false(error instanceof StatementError);
    t.is(await ask(port, "SELECT 1"), 1);
  });

  test(`${name}: an idle connection that the server ended is replaced`, async (t) => {
    const [port, other] = [opened(t, server.url, 1), opened(t)];
    const pid = await pidOf(port);
    await ask(other, "SELECT pg_terminate_backend($1::integer)", pid);
    await until(
      async () => (await ask(other, "SELECT 1 FROM pg_stat_activity WHERE pid = $1::integer", pid)) !== 1,
    );
    // The news may arrive just after the statement was sent.
    await until(() =>
      pidOf(port).then(
        (now) => now !== pid,
        () => false,
      ),
    );
    t.pass();
  });

  test(`${name}: a commit whose wait for a standby was canceled counts as no reply`, async (t) => {
    const [port, other] = [opened(t, server.url, 1), opened(t)];
    const table = `confirmed_${channel}`;
    await ask(port, `CREATE TABLE ${table} (id integer)`);
    const pid = await pidOf(port);
    await ask(other, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    await ask(other, "SELECT pg_reload_conf()");
    await until(async () => (await ask(port, "SHOW synchronous_standby_names")) === "nobody");
    const written = port.query(
      `INSERT INTO ${table} SELECT 1 FROM (SELECT set_config('synchronous_commit', 'on', true)) AS setting`,
      [],
      PATIENCE_MS,
    );
    const waiting = "SELECT wait_event FROM pg_stat_activity WHERE pid = $1::integer";
    await until(async () => (await ask(other, waiting, pid)) === "SyncRep");
    await ask(other, "SELECT pg_cancel_backend($1::integer)", pid);
    const error = await t.throwsAsync(written, { message: /canceling wait for synchronous replication/ });
    t.false(error instanceof StatementError);
    t.is(await ask(other, `SELECT count(*) FROM ${table}`), "1");
    t.is(await pidOf(port), pid);
  });

  test(`${name}: notifications arrive, even after the server ended the connection`, async (t) => {
    const port = opened(t);
    const { seen, saw } = listenTo(port, channel);
    await saw("subscribed");
    await ask(port, "SELECT pg_notify($1::text, $2::text)", channel, "first");
    await saw("message first");
    await ask(port, "SELECT pg_terminate_backend($1::integer)", await listenerPid(port, channel));
    await saw("subscribed", 2);
    await ask(port, "SELECT pg_notify($1::text, $2::text)", channel, "second");
    await saw("message second");
    t.deepEqual(seen, ["subscribed", "message first", "failed", "subscribed", "message second"]);
  });

  test(`${name}: a ping shows whether the listening connection is alive, and a dead one is replaced`, async (t) => {
    const port = opened(t);
    const silent = `${channel.slice(0, 50)}_silent`;
    const { saw, ping, replace } = listenTo(port, silent);
    t.is(ping(), undefined);
    await saw("subscribed");
    const pid = await listenerPid(port, silent);
    await t.notThrowsAsync(async () => ping());
    process.kill(pid, "SIGSTOP");
    t.teardown(() => process.kill(pid, "SIGCONT"));
    const pinged = deferred<"answered" | "lost">();
    ping()?.then(
      () => pinged.resolve("answered"),
      () => pinged.resolve("lost"),
    );
    replace();
    t.is(await pinged.promise, "lost");
    await saw("subscribed", 2);
    await t.notThrowsAsync(async () => ping());
  });

  test(`${name}: close() ends all connections, including those that do not answer`, async (t) => {
    const port = open(server.url, 1);
    const { saw, ping } = listenTo(port, `${channel.slice(0, 50)}_closing`);
    await saw("subscribed");
    const sleeping = t.throwsAsync(port.query("SELECT pg_sleep(600)", [], PATIENCE_MS));
    const waiting = t.throwsAsync(pidOf(port));
    await port.close();
    t.is((await sleeping)?.message, "the store is closed");
    t.is((await waiting)?.message, "the store is closed");
    t.is(ping(), undefined);
    await t.throwsAsync(pidOf(port), { message: "the store is closed" });
    await port.close();
  });

  test(`${name}: close() ends a connection that is still opening after its statement has timed out`, async (t) => {
    const role = `closing_${channel}`.slice(0, 63);
    const admin = opened(t, slow.url);
    await ask(admin, `CREATE ROLE "${role}" LOGIN SUPERUSER`);
    const port = open(slow.urlOf({ user: role }), 1);
    await t.throwsAsync(port.query("SELECT 1", [], 100));
    await t.throwsAsync(port.query("SELECT 1", [], 100));
    await port.close();
    await ask(opened(t, slow.urlOf({ user: role }), 1), "SELECT 1"); // This connection began to open after all others.
    const sessions = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1::text";
    await until(async () => (await ask(admin, sessions, role)) === "1");
    t.pass();
  });

  test(`${name}: nothing runs in the async context of a caller`, async (t) => {
    const context = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const mine = `${channel.slice(0, 50)}_context`;
    const port = opened(t);
    const note = (): void => void seen.push(context.getStore());
    await context.run("a caller", async () => {
      t.is(await ask(port, "SELECT 1"), 1);
      port.listen(mine, { subscribed: note, message: note, failed: note });
      t.is(context.getStore(), "a caller");
    });
    await until(() => seen.length === 1);
    await context.run("another caller", () => ask(port, "SELECT pg_notify($1::text, '')", mine));
    await until(() => seen.length === 2);
    t.deepEqual(seen, [undefined, undefined]);
  });

  test(`${name}: LISTEN through PgBouncer in transaction mode receives nothing, and does no harm`, async (t) => {
    const port = opened(t, pooler.url);
    const { seen, saw } = listenTo(port, channel);
    await saw("subscribed");
    t.is(await ask(port, "SELECT 1"), 1);
    t.deepEqual(seen, ["subscribed"]);
  });
}
