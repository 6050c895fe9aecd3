import test, { type ExecutionContext } from "ava";
import { Client } from "pg";
import { configure, forceRelease, inspect, obtain, shutdown, tryObtain } from "../../../runtime";
import { applyMigration } from "../../../runtime/stores/postgres/apply-migration";
import type { HeldLock } from "../../../runtime/lock/held-lock";
import { guardIdOf } from "../../../runtime/stores/postgres/schema/guard";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { until } from "../../support/until";

// `forceRelease(key, { now: true })` never takes a key from a transaction that guards its lock.

const KEY = "LOCK_guarded";

let server: PostgresServer;

test.before(async () => {
  server = await startPostgres("max_prepared_transactions=5");
  await applyMigration(server.url, "lockweave", "url");
});
test.beforeEach(() => {
  configure({ postgres: server.url, woven: false, logger: { warn() {} } });
});
test.afterEach.always(() => shutdown({ patience: "0s" }));
test.after.always(() => server.stop());

interface Guard {
  readonly client: Client;
  readonly pid: number;
}

/** Guards the lock in a transaction that stays open. */
async function guard(t: ExecutionContext, lock: HeldLock, ...before: readonly string[]): Promise<Guard> {
  const client = new Client(server.url);
  await client.connect();
  t.teardown(() => client.end());
  for (const sql of ["BEGIN", ...before]) await client.query(sql);
  await lock.guard((sql) => client.query(sql));
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return { client, pid: rows[0]?.pid ?? NaN };
}

/** Asserts that the key cannot be freed, and that the error names what keeps it. */
async function assertGuarded(t: ExecutionContext, ...by: readonly string[]): Promise<void> {
  const error = await t.throwsAsync(forceRelease(KEY, { now: true }), {
    code: "LOCK_BAD_OPTION",
    message:
      /^LOCK_guarded is guarded by a transaction \((.*)\), so .* Fix: revoke the lock without `now`, or end/,
  });
  for (const one of by) t.true(error.message.includes(one), `${one} in ${error.message}`);
  t.is(await tryObtain(KEY), undefined);
}

async function assertFree(t: ExecutionContext): Promise<void> {
  const lock = await tryObtain(KEY);
  t.truthy(lock);
  await lock?.release();
}

test.serial("the key of a guarded lock cannot be freed, and the error names the backend", async (t) => {
  const lock = await obtain(KEY);
  const { client, pid } = await guard(t, lock);
  await assertGuarded(t, `(backend ${pid})`);
  t.true(lock.remaining() > 0, "the holder has lost nothing");
  await client.query("COMMIT");
  t.is((await forceRelease(KEY, { now: true })).length, 1);
  await assertFree(t);
});

test.serial("a renewal and a revocation do not hide the guard", async (t) => {
  const lock = await obtain(KEY);
  const { client, pid } = await guard(t, lock);
  await lock.extend("1m");
  await assertGuarded(t, `backend ${pid}`);
  t.is((await forceRelease(KEY)).length, 1);
  await assertGuarded(t, `backend ${pid}`);
  await client.query("ROLLBACK");
  t.is((await forceRelease(KEY, { now: true })).length, 1);
  await assertFree(t);
});

test.serial("a guard in a savepoint counts, and several transactions are all named", async (t) => {
  const lock = await obtain(KEY);
  const first = await guard(t, lock, "SELECT pg_current_xact_id()", "SAVEPOINT one");
  const second = await guard(t, lock);
  await assertGuarded(t, `backend ${first.pid}`, `backend ${second.pid}`);
  await first.client.query("ROLLBACK");
  await assertGuarded(t, `(backend ${second.pid})`);
  await second.client.query("ROLLBACK");
  t.is((await forceRelease(KEY, { now: true })).length, 1);
  await assertFree(t);
});

test.serial(
  "the backend is named after the savepoint of the guard was released, and while the key is free but guarded",
  async (t) => {
    const lock = await obtain(KEY);
    const { client, pid } = await guard(t, lock, "SELECT pg_current_xact_id()", "SAVEPOINT one");
    await client.query("RELEASE SAVEPOINT one");
    await assertGuarded(t, `(backend ${pid})`);
    await lock.release();
    t.like(await inspect(KEY), { state: "guarded", holders: [] });
    await assertGuarded(t, `(backend ${pid})`);
    await client.query("ROLLBACK");
    await until(async () => (await inspect(KEY)).state === "free");
    await assertFree(t);
  },
);

test.serial("a guard that a rollback to a savepoint has undone is not named", async (t) => {
  const lock = await obtain(KEY);
  const { client } = await guard(t, lock, "SAVEPOINT one");
  await client.query("ROLLBACK TO SAVEPOINT one");
  t.is((await forceRelease(KEY, { now: true })).length, 1);
  await t.throwsAsync(lock.release(), { code: "LOCK_LOST" });
  await assertFree(t);
});

test.serial("an application that uses the number of a guard only hides the backend", async (t) => {
  const lock = await obtain(KEY);
  const client = new Client(server.url);
  await client.connect();
  t.teardown(() => client.end());
  await client.query(
    `SELECT pg_advisory_lock((g.id >> 32)::integer, (g.id << 32 >> 32)::integer)
    FROM (SELECT ${guardIdOf("h")} AS id FROM lockweave.hold h) g`,
  );
  const { client: guarding } = await guard(t, lock);
  await assertGuarded(t, "(unknown backend)");
  await guarding.query("COMMIT");
  t.is((await forceRelease(KEY, { now: true })).length, 1);
  await assertFree(t);
});

test.serial("a prepared transaction is named", async (t) => {
  const lock = await obtain(KEY);
  const { client } = await guard(t, lock);
  await client.query("PREPARE TRANSACTION 'pay 1'");
  await assertGuarded(t, "(prepared transaction pay 1)");
  await client.query("ROLLBACK PREPARED 'pay 1'");
  t.is((await forceRelease(KEY, { now: true })).length, 1);
  await assertFree(t);
});

test.serial(
  "after a crash of the server, a prepared transaction still guards the lock, and is named",
  async (t) => {
    const lock = await obtain(KEY);
    const { client } = await guard(t, lock);
    client.on("error", () => {}); // The server crashes.
    await client.query("PREPARE TRANSACTION 'pay 2'");
    await server.crash();
    await until(() =>
      inspect(KEY).then(
        () => true,
        () => false,
      ),
    );
    await assertGuarded(t, "(prepared transaction pay 2)");
    const after = new Client(server.url);
    await after.connect();
    t.teardown(() => after.end());
    await after.query("COMMIT PREPARED 'pay 2'");
    t.is((await forceRelease(KEY, { now: true })).length, 1);
    await assertFree(t);
  },
);

test.serial(
  "inspect() shows a key as guarded while a transaction guards a lock that has ended",
  async (t) => {
    const lock = await obtain(KEY);
    const { client, pid } = await guard(t, lock);
    await lock.release();
    t.like(await inspect(KEY), { state: "guarded", holders: [] });
    t.deepEqual(await forceRelease(KEY), []);
    await assertGuarded(t, `(backend ${pid})`);
    await client.query("COMMIT");
    await until(async () => (await inspect(KEY)).state === "free");
    t.deepEqual(await forceRelease(KEY, { now: true }), []);
    await assertFree(t);
  },
);

test.serial("a reserved key goes to the next waiter", async (t) => {
  const lock = await obtain(KEY);
  const client = new Client(server.url);
  await client.connect();
  t.teardown(() => client.end());
  const [first, second] = ["1", "2"].map((digit) => digit.repeat(32));
  await client.query(
    `INSERT INTO lockweave.waiter VALUES ($1, 1, $2, '', false, now() + interval '1 min'), ($1, 2, $3, '', false, now() + interval '1 min')`,
    [KEY, first, second],
  );
  await lock.release();
  const holders = async (): Promise<unknown> =>
    (await client.query({ text: "SELECT holder FROM lockweave.hold", rowMode: "array" })).rows.flat();
  t.deepEqual(await holders(), [`reserved:${first}`]);
  t.deepEqual(await forceRelease(KEY, { now: true }), [], "nobody held it");
  t.deepEqual(await holders(), [`reserved:${second}`]);
  t.deepEqual(await forceRelease(KEY, { now: true }), []);
  await assertFree(t);
});
