import test from "ava";
import { Client } from "pg";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { WholeStore } from "../../../runtime/stores/port";
import { newId, newKey, placing, release, renewal, request, TIMEOUT_MS } from "../../store-contract/subject";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { until } from "../../support/until";
import { CONNECTIONS } from "../../../runtime/stores/postgres/target";
import { portOf } from "./kinds";
import { poolPort } from "./pool-port";

// The requirements of `replicas` on the server. The tests have no standby: a name that nobody has makes a commit wait forever.

let server: PostgresServer;
let port: PostgresPort;
let store: WholeStore;
let client: Client;

test.before(async () => {
  server = await startPostgres("wal_level=replica", "max_wal_senders=2");
  port = poolPort(server.url, { connections: 4 });
  await port.query(migrationSql(), [], TIMEOUT_MS);
  store = postgresStore(port);
  client = new Client({ connectionString: server.url });
  await client.connect();
});

test.after.always(async () => {
  await client.end();
  await server.stop();
  await store.close();
});

const IMPATIENT_MS = 500;

/** @param names a value for `synchronous_standby_names` */
async function waitingFor<T>(names: string, run: () => Promise<T>): Promise<T> {
  await setNames(names);
  try {
    return await run();
  } finally {
    await setNames("");
  }
}

/** Changes the setting, and waits until new commands see it. */
async function setNames(names: string): Promise<void> {
  await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
  await client.query("SELECT pg_reload_conf()");
  const current = async (): Promise<unknown> => {
    const rows = await port.query(
      "SELECT current_setting('synchronous_standby_names') AS now",
      [],
      TIMEOUT_MS,
    );
    return rows[0]?.["now"];
  };
  for (let same = 0; same < 20; same += 1) if ((await current()) !== names) same = 0;
}

test.serial("a lock with replicas is rejected if a commit waits for fewer standbys", async (t) => {
  const one = { ...request(newKey(), newId()), replicas: 1 };
  const two = { ...one, replicas: 2 };
  const expected = {
    name: "LockMisconfiguredError",
    message: /replicas.* Fix: set synchronous_standby_names/,
  };
  const isRejected = async (wanted: typeof one): Promise<void> => {
    await t.throwsAsync(store.acquire(wanted, TIMEOUT_MS), expected);
    await t.throwsAsync(
      store.queue.enqueue({ ...placing(wanted.key, newId()), replicas: wanted.replicas }, TIMEOUT_MS),
      expected,
    );
    await t.throwsAsync(
      store.renew([{ ...renewal(wanted.key, newId()), replicas: wanted.replicas }], TIMEOUT_MS),
      expected,
    );
  };
  await isRejected(one);
  for (const names of [
    "nobody",
    "*",
    "FIRST 1 (nobody, somebody)",
    " any 1 ( nobody, somebody )",
    "1 (nobody)",
  ])
    await waitingFor(names, () => isRejected(two));
});

test.serial("a lock with replicas is not granted before a standby has confirmed it", async (t) => {
  const [key, id] = [newKey(), newId()];
  await waitingFor("ANY 1 (nobody)", async () => {
    const granted = store.acquire({ ...request(key, id), replicas: 1 }, IMPATIENT_MS);
    await t.throwsAsync(granted, undefined, "the outcome is unknown");
    t.deepEqual(await store.peek([key], TIMEOUT_MS), [undefined], "nobody sees it");
  });
  // The commit stops waiting when the list is empty. So the hold that nobody confirmed may appear, and can be released.
  let released = await release(store, key, id);
  for (let n = 0; n < 100 && !released.released; n += 1) released = await release(store, key, id);
  t.true(released.released);
});

test.serial(
  "a commit that no standby confirmed because the list became empty counts as no reply",
  async (t) => {
    const [key, id] = [newKey(), newId()];
    const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    await waitingFor("nobody", async () => {
      const granted = store.acquire({ ...request(key, id), replicas: 1 }, 60_000);
      const rejected = t.throwsAsync(granted, { message: /synchronous_standby_names changed/ });
      await until(async () => (await client.query(waiting)).rowCount === 1);
      await setNames("");
      await rejected;
    });
    t.true((await release(store, key, id)).released);
  },
);

test.serial("a renewal with replicas waits for a standby, even if the role turned that off", async (t) => {
  const local = poolPort(server.url, { options: "-c synchronous_commit=local" });
  const over = postgresStore(local);
  const [plain, replicated, id] = [newKey(), newKey(), newId()];
  await over.acquire(request(plain, id), TIMEOUT_MS);
  await over.acquire(request(replicated, id), TIMEOUT_MS);
  await waitingFor("nobody", async () => {
    t.deepEqual(await over.renew([renewal(plain, id)], TIMEOUT_MS), [{ renewed: true }]);
    await t.throwsAsync(over.renew([{ ...renewal(replicated, id), replicas: 1 }], IMPATIENT_MS));
  });
  await over.close();
});

test.serial(
  "while callers that wait for a standby use all connections, holders renew and release other locks",
  async (t) => {
    const over = postgresStore(portOf(`${server.url}?options=-c%20synchronous_commit%3Dlocal`));
    const [key, other, id] = [newKey(), newKey(), newId()];
    await over.acquire(request(key, id), TIMEOUT_MS);
    await over.acquire(request(other, id), TIMEOUT_MS);
    await waitingFor("nobody", async () => {
      const granted = Array.from({ length: CONNECTIONS + 2 }, () =>
        over.acquire({ ...request(newKey(), newId()), replicas: 1 }, TIMEOUT_MS),
      );
      const settled = Promise.allSettled(granted);
      const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
      await until(async () => (await client.query(waiting)).rowCount === CONNECTIONS);
      t.deepEqual(await over.renew([renewal(key, id)], TIMEOUT_MS / 3), [{ renewed: true }]);
      t.deepEqual(await over.release({ key: other, requestId: id }, TIMEOUT_MS / 3), { released: true });
      t.is((await client.query(waiting)).rowCount, CONNECTIONS);
      await over.close();
      await settled;
    });
  },
);
