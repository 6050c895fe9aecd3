import test from "ava";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { WholeStore } from "../../../runtime/stores/port";
import {
  acquire,
  batchOf,
  LONG_MS,
  newId,
  newKey,
  renewal,
  request,
  TAKEN,
  timeLeft,
  TIMEOUT_MS,
} from "../../store-contract/subject";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { portOf } from "./kinds";

// A batch carries out its simplest requests in one statement, and the others one by one.

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

test("a batch that uses one request ID for several keys gets the reply of each key", async (t) => {
  const keys = [newKey(), newKey(), newKey()];
  const [, second = ""] = keys;
  const [other, id] = [newId(), newId()];
  await acquire(store, second, other);
  const batch = batchOf(store);
  const acquired = await batch.acquireMany(
    keys.map((key) => request(key, id)),
    TIMEOUT_MS,
  );
  t.deepEqual(acquired, [TAKEN, { acquired: false, holder: other, freeInMs: undefined }, TAKEN]);
  const [renewed, notHeld] = [{ renewed: true }, { renewed: false, holder: other }];
  const renewals = keys.map((key) => renewal(key, id));
  t.deepEqual(await store.renew(renewals, TIMEOUT_MS), [renewed, notHeld, renewed]);
  const released = await batch.releaseMany(
    keys.map((key) => ({ key, requestId: id })),
    TIMEOUT_MS,
  );
  t.deepEqual(released, [{ released: true }, { released: false, holder: other }, { released: true }]);
});

test("a batch that renews a hold twice renews it for the longer of the two lock times", async (t) => {
  for (const times of [
    [1_000, LONG_MS],
    [LONG_MS, 1_000],
  ]) {
    const [key, id] = [newKey(), newId()];
    await acquire(store, key, id, { lockTimeMs: 1_000 });
    const renewals = times.map((lockTimeMs) => renewal(key, id, lockTimeMs));
    t.deepEqual(await store.renew(renewals, TIMEOUT_MS), [{ renewed: true }, { renewed: true }]);
    t.true((await timeLeft(store, key)) > LONG_MS / 2);
  }
});
