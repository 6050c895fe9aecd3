import test, { type ExecutionContext } from "ava";
import { Client } from "pg";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { WholeStore } from "../../../runtime/stores/port";
import { deferred } from "../../support/deferred";
import { FleetProcess } from "../../support/fleet";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { retire } from "../../support/retire";
import { until } from "../../support/until";
import {
  acquire,
  batchOf,
  newId,
  newKey,
  placing,
  renewal,
  request,
  TIMEOUT_MS,
} from "../../store-contract/subject";
import { portOf } from "./kinds";

// Another program keeps the number of one of our advisory locks for long. Only callers of that key may notice.

let server: PostgresServer;
let store: WholeStore;

test.before(async () => {
  server = await startPostgres();
  const port = portOf(server.url);
  await port.query(migrationSql(), [], TIMEOUT_MS);
  store = postgresStore(port);
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

/** The time that a batch gets. It waits for a part of it, and must not wait for the rest. */
const BATCH_MS = 1_000;

/** Takes the advisory lock of the key in another program, until the returned function is called. */
async function keepBusy(t: ExecutionContext, key: string): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  t.teardown(() => client.end());
  const id = "hashtextextended($1::text COLLATE \"C\", 'lockweave.hold'::regclass::oid::bigint)";
  await client.query(`SELECT pg_advisory_lock(${id})`, [key]);
  return async () => void (await client.query(`SELECT pg_advisory_unlock(${id})`, [key]));
}

/** Returns whether each reply is an error about a busy key. */
function busyIn(replies: readonly unknown[]): readonly boolean[] {
  return replies.map(
    (reply) =>
      reply instanceof Error && /holds the advisory lock of the key.*\. Fix: find /.test(reply.message),
  );
}

test("a batch serves all keys except those whose advisory locks another program holds", async (t) => {
  const keys = [newKey(), newKey(), newKey(), newKey()];
  const [first = "", second = "", third = "", fourth = ""] = keys;
  const id = newId();
  const free = [await keepBusy(t, second), await keepBusy(t, third)];
  const expected = [false, true, true, false];
  const batch = batchOf(store);

  t.deepEqual(
    busyIn(
      await batch.acquireMany(
        keys.map((key) => request(key, id)),
        BATCH_MS,
      ),
    ),
    expected,
  );
  t.deepEqual(await store.peek(keys, TIMEOUT_MS), [id, undefined, undefined, id]);
  t.deepEqual(
    busyIn(
      await store.renew(
        keys.map((key) => renewal(key, id)),
        BATCH_MS,
      ),
    ),
    expected,
  );
  const released = await batch.releaseMany(
    keys.map((key) => ({ key, requestId: id })),
    BATCH_MS,
  );
  t.deepEqual(busyIn(released), expected);
  t.deepEqual(released[0], { released: true });
  t.deepEqual(released[3], { released: true });
  const places = keys.map((key) => placing(key, newId(), {}, id));
  const enqueued = (await batch.enqueueMany?.(places, BATCH_MS)) ?? [];
  t.deepEqual(busyIn(enqueued), expected);
  t.deepEqual(await store.peek(keys, TIMEOUT_MS), [id, undefined, undefined, id]);

  for (const end of free) await end();
  const renewed = await store.renew(
    [first, fourth].map((key) => renewal(key, id)),
    TIMEOUT_MS,
  );
  t.deepEqual(renewed, [{ renewed: true }, { renewed: true }]);
  t.true((await acquire(store, second, id)).acquired);
});

test("a caller whose command shared a statement with others learns that its key is busy, not that it lost its hold", async (t) => {
  const own = postgresStore(portOf({ url: server.url, connections: 1 }), { connections: 1 });
  t.teardown(() => own.close());
  const [key, id] = [newKey(), newId()];
  t.true((await acquire(own, key, id)).acquired);
  const free = await keepBusy(t, key);
  // The first one of each command has the connection, and the other two gather.
  const requests = [newKey(), key, newKey()].map((one) => ({
    key: one,
    requestId: one === key ? id : newId(),
  }));
  const others = requests.map((one) => request(one.key, newId(), { fencing: true }));
  const [, acquired] = await Promise.allSettled(others.map((one) => own.acquire(one, BATCH_MS)));
  const [, released] = await Promise.allSettled(requests.map((one) => own.release(one, BATCH_MS)));
  const reasons = [acquired, released].map((one) => (one?.status === "rejected" ? one.reason : undefined));
  t.deepEqual(busyIn(reasons), [true, true]);
  await free();
  t.deepEqual(await own.release({ key, requestId: id }, TIMEOUT_MS), { released: true });
});

test("if callers share a statement, only the one with a busy key fails", async (t) => {
  const own = postgresStore(portOf(server.url), { connections: 1 });
  t.teardown(() => own.close());
  const busy = newKey();
  await keepBusy(t, busy);
  // While the first statement runs, the other two requests gather.
  const replies = await Promise.allSettled(
    [newKey(), busy, newKey()].map((key) => own.acquire(request(key, newId()), BATCH_MS)),
  );
  t.deepEqual(busyIn(replies.map((reply) => (reply.status === "rejected" ? reply.reason : reply.value))), [
    false,
    true,
    false,
  ]);
  t.deepEqual(
    replies.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
});

test("callers of busy keys leave the connections to other callers before their own timeouts", async (t) => {
  const own = postgresStore(portOf({ url: server.url, connections: 2 }), { connections: 2 });
  t.teardown(() => own.close());
  const busy = [newKey(), newKey()];
  for (const key of busy) await keepBusy(t, key);
  const waiting = Promise.allSettled(busy.map((key) => own.acquire(request(key, newId()), 6_000)));
  t.true((await own.acquire(request(newKey(), newId()), 4_500)).acquired);
  const reasons = (await waiting).map((one) => (one.status === "rejected" ? one.reason : undefined));
  t.deepEqual(busyIn(reasons), [true, true]);
});

test("a batch waits for a key that is busy only for a moment", async (t) => {
  const keys = [newKey(), newKey()];
  const id = newId();
  const free = await keepBusy(t, keys[0] ?? "");
  const replies = batchOf(store).acquireMany(
    keys.map((key) => request(key, id)),
    TIMEOUT_MS,
  );
  await isWaiting();
  await free();
  t.deepEqual(await replies, [{ acquired: true }, { acquired: true }]);
});

/** Resolves once a command waits for an advisory lock. */
async function isWaiting(): Promise<void> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  const text = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
  while ((await client.query(text)).rowCount === 0);
  await client.end();
}

test("a process keeps all its locks except the one whose advisory lock another program holds", async (t) => {
  const own = new FleetProcess({
    store: postgresStore(portOf(server.url)),
    commandTimeout: "1500ms",
    logger: { warn: () => {} },
  });
  t.teardown(() => retire(own));
  const keys = [newKey(), newKey(), newKey()];
  const [busy = ""] = keys;
  const mayEnd = deferred();
  const isHeld = keys.map(() => deferred());
  const isLost = deferred();
  const calls = keys.map((key, index) =>
    own
      .call(key, { lockTime: "6s" }, async ({ signal }) => {
        signal.addEventListener("abort", () => isLost.resolve());
        isHeld[index]?.resolve();
        await mayEnd.promise;
        return signal.aborted ? "lost" : "kept";
      })
      .catch((error: Error & { readonly code?: string }) => error.code),
  );
  await Promise.all(isHeld.map(({ promise }) => promise));
  const free = await keepBusy(t, busy);
  await isLost.promise;
  await until(async () => (await store.peek([busy], TIMEOUT_MS))[0] === undefined); // It has also expired on the server.
  await free();
  mayEnd.resolve();
  t.deepEqual(await Promise.all(calls), ["LOCK_LOST", "kept", "kept"]);
});
