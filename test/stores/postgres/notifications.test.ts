import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import { Client } from "pg";
import type { PostgresPort, PostgresRow } from "../../../runtime/stores/postgres/client-port";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { WholeStore } from "../../../runtime/stores/port";
import {
  acquire,
  batchOf,
  enqueue,
  LONG_MS,
  newId,
  newKey,
  placing,
  release,
  renewal,
  TIMEOUT_MS,
  untilListening,
} from "../../store-contract/subject";
import { deferred } from "../../support/deferred";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { until } from "../../support/until";
import { portOf } from "./kinds";
import { poolPort } from "./pool-port";

// A commit that notifies keeps a lock of the whole server. If it also waits for a standby, so do the notifying commits of all databases. So no
// command notifies. A transaction of its own does, without durability, and only if somebody waits.

let server: PostgresServer;
let client: Client;
let listener: Client;

test.before(async () => {
  // Without a standby of that name, a commit that has to be confirmed waits forever.
  const standbys = ["wal_level=replica", "max_wal_senders=2", "synchronous_standby_names=nobody"];
  server = await startPostgres(...standbys, "synchronous_commit=local");
  const port = poolPort(server.url);
  await port.query(migrationSql(), [], TIMEOUT_MS);
  await port.close();
  [client, listener] = [new Client(server.url), new Client(server.url)];
  await client.connect();
  await listener.connect();
  await listener.query("LISTEN last_one");
  await client.query("CREATE DATABASE other");
});

test.after.always(async () => {
  await client.end();
  await listener.end();
  await server.stop();
});

/** What a statement has done. */
interface Ran {
  readonly command: string;
  /** The tickets that its commit notified. */
  readonly notified: readonly string[];
  /** Its `synchronous_commit`. */
  readonly durability: string | undefined;
}

/** Opens a store whose statements run one after another on one connection. Returns it with a function that resolves to what these have done. */
async function observed(): Promise<readonly [store: WholeStore, ran: () => Promise<readonly Ran[]>]> {
  const inbox = deferred<string>();
  const all: Ran[] = [];
  let turn: Promise<unknown> = Promise.resolve();
  const port: PostgresPort = {
    query(text, values) {
      const reply = turn.then(async () => {
        const { rows, ...ran } = await run(text, values);
        all.push(ran);
        return rows;
      });
      turn = reply.catch(() => {});
      return reply;
    },
    listen(channel) {
      inbox.resolve(channel);
      return { ping: () => undefined, replace() {}, close() {} };
    },
    close: async () => {},
  };
  const store = postgresStore(port);
  await enqueue(store, newKey(), newId()); // Now the store listens.
  await listener.query(`LISTEN "${await inbox.promise}"`);
  const ran = async (): Promise<readonly Ran[]> => {
    await store.close(); // Waits for the notifications that it sends.
    return all.slice(1);
  };
  return [store, ran];
}

/** Runs a statement in a transaction, and reads the setting before the commit. */
async function run(
  text: string,
  values: readonly unknown[],
): Promise<Ran & { readonly rows: readonly PostgresRow[] }> {
  const payloads: string[] = [];
  const isLast = deferred();
  const onNotification = ({
    channel,
    payload = "",
  }: {
    channel: string;
    payload?: string | undefined;
  }): void => {
    if (channel === "last_one") isLast.resolve();
    else payloads.push(payload);
  };
  listener.on("notification", onNotification);
  await client.query("BEGIN");
  const { rows } = await client.query<PostgresRow>(text, [...values]);
  const setting = await client.query<{ readonly s: string }>(
    "SELECT current_setting('synchronous_commit') AS s",
  );
  await client.query("COMMIT");
  await client.query("NOTIFY last_one"); // It arrives after all earlier notifications.
  await isLast.promise;
  listener.off("notification", onNotification);
  const command = /\w+_v1|pg_notify/.exec(text)?.[0] ?? text;
  return { command, notified: payloads, durability: setting.rows[0]?.s, rows };
}

/** Long enough for another command, even on a busy machine. */
const BRIEF_MS = 2_000;

const PERMITS = { permits: 4 } as const;

/** What makes waiters ask again. Each resolves to their tickets. */
const SCENARIOS: Record<string, (store: WholeStore) => Promise<readonly string[]>> = {
  async "a release"(store) {
    const [key, id, ticket] = [newKey(), newId(), newId()];
    await acquire(store, key, id);
    await enqueue(store, key, ticket);
    await release(store, key, id);
    return [ticket];
  },
  async "a grant of a permit that leaves others"(store) {
    const [key, id, first, second] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, id);
    await enqueue(store, key, first, PERMITS);
    await enqueue(store, key, second, PERMITS);
    await release(store, key, id);
    await enqueue(store, key, first, PERMITS);
    return [first, second];
  },
  async "a renewal that keeps fewer permits"(store) {
    const [key, id, ticket] = [newKey(), newId(), newId()];
    await acquire(store, key, id, { ...PERMITS, count: 4 });
    await enqueue(store, key, ticket, PERMITS);
    await store.renew([{ ...renewal(key, id), ...PERMITS, count: 1 }], TIMEOUT_MS);
    return [ticket];
  },
  async "a batch that finds an expired key, and is granted another one"(store) {
    const [key, ticket] = [newKey(), newId()];
    await acquire(store, key, newId(), { lockTimeMs: BRIEF_MS });
    await enqueue(store, key, ticket);
    await pause(BRIEF_MS + 5);
    const batch = [placing(key, newId()), placing(newKey(), newId())];
    await batchOf(store).enqueueMany?.(batch, TIMEOUT_MS);
    return [ticket];
  },
  async "a batch of releases, one with a cooldown"(store) {
    const [closed, key, requestId, ticket] = [newKey(), newKey(), newId(), newId()];
    await acquire(store, closed, requestId);
    await acquire(store, key, requestId);
    await enqueue(store, key, ticket);
    const batch = [
      { key: closed, requestId, cooldownMs: LONG_MS },
      { key, requestId },
    ];
    await batchOf(store).releaseMany(batch, TIMEOUT_MS);
    return [ticket];
  },
  async "a waiter that leaves a reserved key"(store) {
    const [key, id, first, second] = [newKey(), newId(), newId(), newId()];
    await acquire(store, key, id);
    await enqueue(store, key, first);
    await enqueue(store, key, second);
    await release(store, key, id);
    await store.queue.dequeue(key, first, TIMEOUT_MS);
    return [first, second];
  },
  async "a forced release"(store) {
    const [key, requestId, ticket] = [newKey(), newId(), newId()];
    await acquire(store, key, requestId);
    await enqueue(store, key, ticket);
    await store.release({ key, requestId, isForced: true }, TIMEOUT_MS);
    return [ticket];
  },
};

for (const [name, scenario] of Object.entries(SCENARIOS)) {
  test.serial(`${name} wakes waiters in a transaction of its own, which waits for nothing`, async (t) => {
    const [store, ran] = await observed();
    const tickets = await scenario(store);
    const notifying = (await ran()).filter(({ notified }) => notified.length > 0);
    t.deepEqual(
      notifying,
      tickets.map((ticket) => ({ command: "pg_notify", notified: [ticket], durability: "off" })),
    );
  });
}

test.serial("the notification of a store to itself waits for nothing", async (t) => {
  const texts: string[] = [];
  const port = poolPort(server.url);
  const query: PostgresPort["query"] = (text, values, timeoutMs) => {
    texts.push(text);
    return port.query(text, values, timeoutMs);
  };
  const store = postgresStore({ ...port, query });
  await untilListening(store);
  const notifying = texts.filter((text) => text.includes("pg_notify"));
  t.true(notifying.length > 0);
  t.true(notifying.every((text) => text.includes("set_config('synchronous_commit', 'off', true)")));
  await store.close();
});

test.serial("commands that wake nobody send no notification", async (t) => {
  const [store, ran] = await observed();
  const [key, id] = [newKey(), newId()];
  await acquire(store, key, id);
  await acquire(store, key, newId());
  await store.renew([renewal(key, id)], TIMEOUT_MS);
  await release(store, key, id);
  await enqueue(store, key, newId(), PERMITS);
  const all = await ran();
  t.is(all.length, 5);
  t.true(all.every(({ command, notified }) => command !== "pg_notify" && notified.length === 0));
});

test.serial("while the grant of a permit waits for a standby, other databases can notify", async (t) => {
  const store = postgresStore(portOf(server.url));
  const other = new Client(server.urlOf({ database: "other" }));
  await other.connect();
  const [key, id, first, second] = [newKey(), newId(), newId(), newId()];
  await acquire(store, key, id);
  await enqueue(store, key, first, PERMITS);
  await enqueue(store, key, second, PERMITS);
  await release(store, key, id);
  const granted = store.queue.enqueue({ ...placing(key, first, PERMITS), replicas: 1 }, TIMEOUT_MS);
  const rejected = t.throwsAsync(granted, { message: "the store is closed" });
  const waiting = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
  await until(async () => (await client.query(waiting)).rowCount === 1);
  await other.query("SET lock_timeout = '10s'");
  await t.notThrowsAsync(other.query("NOTIFY anything"));
  await store.close();
  await rejected;
  await other.end();
});
