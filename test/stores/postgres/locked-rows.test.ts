import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { Client } from "pg";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { WholeStore } from "../../../runtime/stores/port";
import { closedAfter, guardedAfter } from "../../../runtime/stores/value";
import {
  acquire,
  batchOf,
  close,
  enqueue,
  freeIn,
  isForgotten,
  LONG_MS,
  newId,
  newKey,
  placing,
  queued,
  release,
  renew,
  request,
  SHORT_MS,
  acquiredInTurn,
  TIMEOUT_MS,
} from "../../store-contract/subject";
import { until } from "../../support/until";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { poolPort } from "./pool-port";

// A transaction of the application locks the row of a hold, as the guard does. Until it ends, the key stays held, and nobody waits for it.

let server: PostgresServer;
let store: WholeStore;

test.before(async () => {
  server = await startPostgres();
  const port = poolPort(server.url);
  await port.query(migrationSql(), [], TIMEOUT_MS);
  store = postgresStore(port);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

/** Runs a statement in a transaction. Returns a function that commits it. */
async function inTransaction(run: (client: Client) => Promise<void>): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  await client.query("BEGIN");
  await run(client);
  return async () => {
    await client.query("COMMIT");
    await client.end();
  };
}

/** Locks the row of a hold in a transaction. Returns a function that commits it. */
function lockRow(key: string, id: string): Promise<() => Promise<void>> {
  return inTransaction(async (client) => {
    const locked = await client.query(
      "SELECT FROM lockweave.hold WHERE key = $1 AND holder = $2 FOR KEY SHARE",
      [key, id],
    );
    if (locked.rowCount !== 1) throw new Error("there is no such hold");
  });
}

/** Guards a hold in a transaction. Returns a function that commits it. */
function guardRow(key: string, requestId: string): Promise<() => Promise<void>> {
  return inTransaction(async (client) => {
    await store.transactions?.guard([{ key, requestId }], (sql) => client.query(sql));
  });
}

test("the holder renews and releases a hold whose row is locked, without waiting", async (t) => {
  const [key, id] = [newKey(), newId()];
  await acquire(store, key, id);
  const commit = await lockRow(key, id);
  t.deepEqual(await renew(store, key, id, 2 * LONG_MS), { renewed: true });
  t.deepEqual(await release(store, key, id), { released: true });
  t.deepEqual(await release(store, key, id), { released: false, holder: guardedAfter(id) });
  t.deepEqual(await renew(store, key, id, LONG_MS), { renewed: false, holder: guardedAfter(id) });
  t.false((await acquire(store, key, newId())).acquired);
  await commit();
  t.true(await isForgotten(store, key));
});

test("a batch renews and releases a hold whose row is locked, without waiting", async (t) => {
  const [locked, other] = [request(newKey(), newId()), request(newKey(), newId())];
  await batchOf(store).acquireMany([locked, other], TIMEOUT_MS);
  const commit = await lockRow(locked.key, locked.requestId);
  const released = { released: true } as const;
  t.deepEqual(await store.renew([locked, other], TIMEOUT_MS), [{ renewed: true }, { renewed: true }]);
  t.deepEqual(await batchOf(store).releaseMany([locked, other], TIMEOUT_MS), [released, released]);
  t.false((await acquire(store, locked.key, newId())).acquired);
  t.true(await isForgotten(store, other.key));
  await commit();
  t.true(await isForgotten(store, locked.key));
});

test("an expired hold whose row is locked keeps all other callers out", async (t) => {
  const [key, id, waiter] = [newKey(), newId(), newId()];
  await acquire(store, key, id, { lockTimeMs: SHORT_MS });
  const commit = await lockRow(key, id);
  await pause(SHORT_MS + 5);
  t.false((await acquire(store, key, newId())).acquired);
  t.false((await acquire(store, key, newId(), { permits: Infinity })).acquired);
  const askAgainMs = freeIn(await enqueue(store, key, waiter)) ?? NaN;
  t.true(askAgainMs >= 50 && askAgainMs <= 250, `${askAgainMs} ms`);
  t.deepEqual(await renew(store, key, id, LONG_MS), { renewed: false, holder: guardedAfter(id) });
  await commit();
  await release(store, key, await acquiredInTurn(store, key, waiter));
  t.true(await isForgotten(store, key));
});

test("waiters keep their order until the transaction that locks the row has ended", async (t) => {
  const [key, id, first, second] = [newKey(), newId(), newId(), newId()];
  await acquire(store, key, id);
  const commit = await lockRow(key, id);
  await queued(store, key, first);
  await queued(store, key, second);
  t.deepEqual(await release(store, key, id), { released: true });
  await queued(store, key, second);
  await queued(store, key, first);
  await commit();
  await queued(store, key, second);
  await release(store, key, await acquiredInTurn(store, key, first));
  await acquiredInTurn(store, key, second);
});

test("releaseAndEnqueue() hands off no hold whose row is locked", async (t) => {
  const [key, requestId] = [newKey(), newId()];
  await acquire(store, key, requestId);
  const commit = await lockRow(key, requestId);
  const next = placing(key, newId());
  t.deepEqual(await store.queue.releaseAndEnqueue({ key, requestId }, next, TIMEOUT_MS), {
    released: true,
    next: "enqueued",
  });
  await queued(store, key, next.ticket);
  await commit();
  await acquiredInTurn(store, key, next.ticket);
});

test("inspect() reports a hold that has ended only while a transaction guards it", async (t) => {
  const [released, expired, unlocked] = [newKey(), newKey(), newKey()];
  const [one, other, third] = [newId(), newId(), newId()];
  await acquire(store, released, one);
  await acquire(store, expired, other, { lockTimeMs: SHORT_MS });
  await acquire(store, unlocked, third, { lockTimeMs: SHORT_MS });
  const commits = [await guardRow(released, one), await guardRow(expired, other)];
  await release(store, released, one);
  await pause(SHORT_MS + 5);
  const valuesOf = async (key: string): Promise<readonly string[]> =>
    (await store.admin.inspect(key, TIMEOUT_MS)).holds.map(({ value }) => value);
  t.deepEqual(await valuesOf(released), [guardedAfter(one)]);
  t.deepEqual(await valuesOf(expired), [guardedAfter(other)]);
  t.deepEqual(await valuesOf(unlocked), []);
  for (const commit of commits) await commit();
  t.deepEqual(await valuesOf(released), []);
  t.deepEqual(await valuesOf(expired), []);
});

test("a command that runs twice gets no second hold, even if a transaction locks the row of its ended hold", async (t) => {
  for (const permits of [1, 2, Infinity]) {
    const [key, id, ticket, requestId] = [newKey(), newId(), newId(), newId()];
    const refused = { acquired: false, holder: guardedAfter(id), freeInMs: undefined };
    await acquire(store, key, id, { permits });
    const commit = await lockRow(key, id);
    await release(store, key, id);
    t.deepEqual(await acquire(store, key, id, { permits }), refused, `${permits} permits`);
    await commit();

    await store.queue.enqueue(placing(key, ticket, { permits }, requestId), TIMEOUT_MS);
    const end = await lockRow(key, requestId);
    await release(store, key, requestId);
    const again = await store.queue.enqueue(placing(key, ticket, { permits }, requestId), TIMEOUT_MS);
    t.like(again, { acquired: false, holder: guardedAfter(requestId) }, `${permits} permits`);
    await end();
    await release(store, key, await acquiredInTurn(store, key, ticket, { permits }));
    t.true(await isForgotten(store, key));
  }
});

test("a cooldown begins while the row is locked, and outlasts the transaction", async (t) => {
  const [key, id] = [newKey(), newId()];
  await acquire(store, key, id);
  const commit = await lockRow(key, id);
  t.deepEqual(await close(store, key, id, LONG_MS), { released: true });
  t.deepEqual(await close(store, key, id, LONG_MS), { released: true });
  t.false((await acquire(store, key, newId())).acquired);
  await commit();
  t.deepEqual(await acquire(store, key, newId()), {
    acquired: false,
    holder: closedAfter(id),
    freeInMs: undefined,
  });
});

test("a locked row of a reader excludes only writers, and a locked permit still counts", async (t) => {
  const [shared, permitted, reader, one] = [newKey(), newKey(), newId(), newId()];
  await acquire(store, shared, reader, { permits: Infinity });
  await acquire(store, permitted, one, { permits: 2 });
  const commits = [await lockRow(shared, reader), await lockRow(permitted, one)];
  t.deepEqual(await release(store, shared, reader), { released: true });
  t.deepEqual(await release(store, permitted, one), { released: true });
  const [another, other] = [newId(), newId()];
  t.true((await acquire(store, shared, another, { permits: Infinity })).acquired);
  t.true((await acquire(store, permitted, other, { permits: 2 })).acquired);
  t.false((await acquire(store, permitted, newId(), { permits: 2 })).acquired);
  await release(store, shared, another);
  t.false((await acquire(store, shared, newId())).acquired);
  for (const commit of commits) await commit();
  t.true((await acquire(store, shared, newId())).acquired);
  t.true((await acquire(store, permitted, newId(), { permits: 2 })).acquired);
});

test("a sweep leaves rows that are locked", async (t) => {
  const [key, id] = [newKey(), newId()];
  await acquire(store, key, id);
  const client = new Client({ connectionString: server.url });
  await client.connect();
  const commit = await lockRow(key, id);
  // Only now, because the commands of other tests sweep, too.
  await client.query(
    "UPDATE lockweave.hold SET expires_at = clock_timestamp() - interval '1 hour' WHERE key = $1",
    [key],
  );
  const count = async (): Promise<unknown> => {
    await client.query("SELECT lockweave.sweep_v1(1000)");
    return (
      await client.query<Record<string, unknown>>("SELECT count(*) AS n FROM lockweave.hold WHERE key = $1", [
        key,
      ])
    ).rows[0]?.["n"];
  };
  // Each sweep begins at a random block, so it may miss the row.
  for (let sweep = 0; sweep < 30; sweep += 1) t.is(await count(), "1");
  await commit();
  await until(async () => (await count()) === "0");
  await client.end();
});
