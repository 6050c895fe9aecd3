import test, { type ExecutionContext } from "ava";
import { Pool } from "pg";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import { FEWEST_TOGETHER } from "../../../runtime/stores/postgres/renewal-groups";
import type { RenewReply, RenewRequest, WholeStore } from "../../../runtime/stores/port";
import { revokedFrom } from "../../../runtime/stores/value";
import {
  acquire,
  batchOf,
  enqueue,
  freeIn,
  LONG_MS,
  newId,
  newKey,
  release,
  renewal,
  TIMEOUT_MS,
  timeLeft,
} from "../../store-contract/subject";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { until } from "../../support/until";
import { KINDS, portOf } from "./kinds";

// Holds that a process renews together share a row on the server, which is all that a renewal changes.

const RENEWED: RenewReply = { renewed: true };

let server: PostgresServer;
let admin: Pool;

test.before(async () => {
  server = await startPostgres();
  admin = new Pool({ connectionString: server.url });
  await admin.query(migrationSql());
});

test.after.always(async () => {
  await admin.end();
  await server.stop();
});

/** A process with locks that it renews together. */
class Process {
  readonly store: WholeStore;
  readonly holds: readonly RenewRequest[];
  /** Called instead of a query, with a function that runs it. */
  intercept:
    ((text: string, run: () => Promise<readonly unknown[]>) => Promise<readonly unknown[]>) | undefined;
  /** The functions that the store has called. */
  calls: string[] = [];

  constructor(port: PostgresPort) {
    const query: PostgresPort["query"] = (...sent) => {
      this.calls.push(/lockweave"\.(\w+)/.exec(sent[0])?.[1] ?? "");
      const run = (): ReturnType<PostgresPort["query"]> => port.query(...sent);
      return (this.intercept?.(sent[0], run) ?? run()) as ReturnType<PostgresPort["query"]>;
    };
    this.store = postgresStore({
      query,
      listen: (...subscription) => port.listen(...subscription),
      close: () => port.close(),
    });
    this.holds = Array.from({ length: FEWEST_TOGETHER + 1 }, () => renewal(newKey(), newId()));
  }

  /** The first of its holds, of which the tests lose one. */
  get first(): RenewRequest {
    const [first] = this.holds;
    if (first === undefined) throw new Error("there are no holds");
    return first;
  }

  get others(): readonly RenewRequest[] {
    return this.holds.slice(1);
  }

  async renew(holds = this.holds): Promise<readonly RenewReply[]> {
    this.calls = [];
    return this.store.renew(holds, TIMEOUT_MS);
  }
}

/** Returns a process with a group: it has acquired its locks, and renewed them once. */
async function grouped(t: ExecutionContext, port = portOf(server.url)): Promise<Process> {
  const process = new Process(port);
  t.teardown(() => process.store.close());
  await batchOf(process.store).acquireMany(process.holds, TIMEOUT_MS);
  t.deepEqual(await process.renew(), renewed(process.holds));
  t.is((await groupsOf(process)).length, 1);
  return process;
}

/** Returns the IDs of the groups on the server in which the holds are. */
async function groupsOf({ holds }: Process): Promise<readonly string[]> {
  const { rows } = await admin.query<{ id: string }>(
    `SELECT DISTINCT g.id FROM lockweave.hold h JOIN lockweave.renewal_group g ON g.id = h.group_id WHERE h.key = ANY ($1)`,
    [holds.map(({ key }) => key)],
  );
  return rows.map(({ id }) => id);
}

/** Returns the places of the rows of the holds, which change with each update. */
async function placesOf(holds: readonly RenewRequest[]): Promise<readonly unknown[]> {
  const { rows } = await admin.query(
    "SELECT key, ctid::text FROM lockweave.hold WHERE key = ANY ($1) ORDER BY key",
    [holds.map(({ key }) => key)],
  );
  return rows;
}

/** Lets the own time of the holds pass, so that only their group keeps them. */
async function endOwnTime(holds: readonly RenewRequest[], agoS = 1): Promise<void> {
  await admin.query(
    "UPDATE lockweave.hold SET expires_at = clock_timestamp() - make_interval(secs => $2) WHERE key = ANY ($1)",
    [holds.map(({ key }) => key), agoS],
  );
}

async function endGroup(process: Process, agoS = 1): Promise<void> {
  const ids = await groupsOf(process);
  await admin.query(
    "UPDATE lockweave.renewal_group SET expires_at = clock_timestamp() - make_interval(secs => $2) WHERE id = ANY ($1)",
    [ids, agoS],
  );
}

/** Returns when a hold ends, as text. */
async function endOf({ key }: RenewRequest): Promise<unknown> {
  const { rows } = await admin.query<Readonly<Record<string, unknown>>>(
    `SELECT greatest(h.expires_at, g.expires_at)::text AS ends
    FROM lockweave.hold h LEFT JOIN lockweave.renewal_group g ON g.id = h.group_id WHERE h.key = $1`,
    [key],
  );
  return rows[0]?.["ends"];
}

/** Begins a transaction of another process. Returns a function that commits it. */
async function begin(
  t: ExecutionContext,
  text: string,
  values: readonly unknown[],
): Promise<() => Promise<void>> {
  const client = await admin.connect();
  t.teardown(() => client.release(true));
  await client.query("BEGIN");
  await client.query(text, [...values]);
  return async () => void (await client.query("COMMIT"));
}

/** Resolves when a call of the function waits for another transaction. */
async function untilWaiting(name: string): Promise<void> {
  await until(async () => {
    const { rowCount } = await admin.query(
      "SELECT FROM pg_stat_activity WHERE query LIKE $1 AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'",
      [`%${name}(%`],
    );
    return (rowCount ?? 0) > 0;
  });
}

const renewed = (holds: readonly RenewRequest[]): readonly RenewReply[] => holds.map(() => RENEWED);

for (const kind of KINDS) {
  test(`${kind.name}: holds that are renewed together share a row, which is all that a renewal changes`, async (t) => {
    const process = await grouped(t, kind.open(server.url));
    const { store, first, others } = process;
    await endOwnTime(others);
    const places = await placesOf(others);
    t.deepEqual(await release(store, first.key, first.requestId), { released: true });
    for (let time = 0; time < 2; time += 1) {
      t.deepEqual(await process.renew(others), renewed(others));
      t.deepEqual(process.calls, ["renew_groups_v1"]);
    }
    t.deepEqual(await placesOf(others), places);
    const [one = first] = others;
    t.true((await timeLeft(store, one.key)) > LONG_MS / 2);
    t.true((await acquire(store, first.key, newId())).acquired);
    t.deepEqual(await release(store, one.key, one.requestId), { released: true });
  });
}

test("a hold that is no longer renewed ends in time, and the others stay held", async (t) => {
  const process = await grouped(t);
  const { store, first, others } = process;
  process.intercept = () => Promise.reject(new Error("the connection broke"));
  await t.throwsAsync(release(store, first.key, first.requestId));
  process.intercept = undefined;
  const end = await endOf(first);
  t.deepEqual(await process.renew(others), renewed(others));
  t.deepEqual(await process.renew(others), renewed(others));
  t.deepEqual(process.calls, ["renew_groups_v1"]);
  t.is(await endOf(first), end);
  t.is((await groupsOf(process)).length, 2);
});

test("a hold that is revoked or freed is not renewed with its group, and the others are", async (t) => {
  for (const isForced of [false, true]) {
    const process = await grouped(t);
    const { store, first, others } = process;
    if (isForced) await store.release({ ...first, isForced }, TIMEOUT_MS);
    else t.true(await store.admin.revoke(first, TIMEOUT_MS));
    const holder = isForced ? undefined : revokedFrom(first.requestId);
    t.deepEqual(await process.renew(), [{ renewed: false, holder }, ...renewed(others)]);
    t.deepEqual(process.calls, ["renew_groups_v1", "renew_v1"]);
    t.deepEqual(await process.renew(others), renewed(others));
    t.deepEqual(process.calls, ["renew_groups_v1"]);
  }
});

test("a revocation waits for a renewal that has begun, and the hold keeps the renewed time", async (t) => {
  const process = await grouped(t);
  const { store, first, others } = process;
  const [id] = await groupsOf(process);
  const renewals = JSON.stringify([{ id, renewals: 0, lock_ms: 2 * LONG_MS, ended: [] }]);
  const commit = await begin(t, "SELECT lockweave.renew_groups_v1($1, 1000)", [renewals]);
  const revoking = store.admin.revoke(first, TIMEOUT_MS);
  await untilWaiting("revoke_v1");
  await commit();
  t.true(await revoking);
  const [one = first] = others;
  t.is(await endOf(first), await endOf(one));
});

test("a forced release waits for a renewal that has begun, and the holder learns of the release", async (t) => {
  const process = await grouped(t);
  const { store, first, others } = process;
  const ids = await groupsOf(process);
  await endOwnTime(process.holds);
  await endGroup(process);
  // The renewal began before the group expired.
  const renewing =
    "UPDATE lockweave.renewal_group SET expires_at = clock_timestamp() + interval '1 hour' WHERE id = ANY ($1)";
  const commit = await begin(t, renewing, [ids]);
  const freeing = store.release({ ...first, isForced: true }, TIMEOUT_MS);
  await untilWaiting("free_v1");
  await commit();
  t.deepEqual(await freeing, { released: true });
  t.deepEqual(await process.renew(), [{ renewed: false, holder: undefined }, ...renewed(others)]);
});

test("nobody acquires the key of a hold while a renewal has locked its group", async (t) => {
  const process = await grouped(t);
  const { store, first } = process;
  await endOwnTime(process.holds);
  await endGroup(process);
  const commit = await begin(t, "SELECT FROM lockweave.renewal_group WHERE id = ANY ($1) FOR NO KEY UPDATE", [
    await groupsOf(process),
  ]);
  t.false((await acquire(store, first.key, newId())).acquired);
  const freeInMs = freeIn(await enqueue(store, first.key, newId()));
  t.true(freeInMs !== undefined && freeInMs < 1_000);
  await commit();
  t.true((await acquire(store, newKey(), newId())).acquired);
});

test("a renewal that waits for an acquisition renews no hold that it took over", async (t) => {
  const process = await grouped(t);
  const { first } = process;
  const next = newId();
  await endOwnTime(process.holds);
  await endGroup(process);
  const taking = JSON.stringify([{ key: first.key, request_id: next, lock_ms: LONG_MS, fencing: false }]);
  const commit = await begin(t, "SELECT lockweave.acquire_v1($1, 1000)", [taking]);
  const renewing = process.renew();
  await untilWaiting("renew_groups_v1");
  await commit();
  const replies = await renewing;
  t.deepEqual(replies[0], { renewed: false, holder: next });
  t.true(replies.every((reply) => "renewed" in reply && !reply.renewed));
  t.deepEqual(await groupsOf(process), []);
});

test("a group whose renewal got no reply is never renewed again", async (t) => {
  const process = await grouped(t);
  const { first, holds } = process;
  const [group] = await groupsOf(process);
  process.intercept = async (_, run) => {
    await run();
    throw new Error("the connection broke");
  };
  t.true((await process.renew()).every((reply) => reply instanceof Error));
  process.intercept = undefined;
  t.deepEqual(await process.renew(), renewed(holds));
  t.deepEqual(process.calls, ["renew_v1"]);
  const groups = await groupsOf(process);
  t.is(groups.length, 1);
  t.not(groups[0], group);
  await endOwnTime(holds);
  t.deepEqual(await process.renew(), renewed(holds));
  t.true((await timeLeft(process.store, first.key)) > LONG_MS / 2);
});

test("a late command moves no hold back to an earlier group", async (t) => {
  const process = new Process(portOf(server.url));
  const { store, holds } = process;
  t.teardown(() => store.close());
  await batchOf(store).acquireMany(holds, TIMEOUT_MS);
  const late: (() => Promise<unknown>)[] = [];
  process.intercept = (_, run) => {
    late.push(run);
    return Promise.reject(new Error("the connection broke"));
  };
  await process.renew();
  process.intercept = undefined;
  t.deepEqual(await process.renew(), renewed(holds));
  const groups = await groupsOf(process);
  for (const run of late) await run();
  t.deepEqual(await groupsOf(process), groups);
});

test("a release that a crash or a failover loses keeps no hold alive", async (t) => {
  for (const isFailover of [false, true]) {
    const process = await grouped(t);
    const { store, first, others } = process;
    const { rows } = await admin.query<{ copy: string }>(
      "SELECT to_json(h)::text AS copy FROM lockweave.hold h WHERE key = $1",
      [first.key],
    );
    await release(store, first.key, first.requestId);
    if (isFailover) await process.renew(others);
    await admin.query(
      "INSERT INTO lockweave.hold SELECT * FROM json_populate_record(NULL::lockweave.hold, $1)",
      [rows[0]?.copy],
    );
    if (isFailover)
      await admin.query("UPDATE lockweave.renewal_group SET renewals = 0 WHERE id = ANY ($1)", [
        await groupsOf(process),
      ]);
    const end = await endOf(first);
    t.deepEqual(await process.renew(others), renewed(others));
    t.deepEqual(process.calls, ["renew_groups_v1", "renew_v1"]);
    t.deepEqual(await process.renew(others), renewed(others));
    t.is(await endOf(first), end);
  }
});

// A sweep also deletes rows of other tests.
test.serial("a sweep spares the holds of a living group, and removes those of an expired one", async (t) => {
  const process = await grouped(t);
  const { length } = process.holds;
  await endOwnTime(process.holds, 60);
  const count = async (): Promise<number> => {
    await admin.query("SELECT lockweave.sweep_v1(1000)");
    return (await placesOf(process.holds)).length;
  };
  // Each sweep begins at a random block, so it may miss a row.
  for (let sweep = 0; sweep < 10; sweep += 1) t.is(await count(), length);
  t.deepEqual(await process.renew(), renewed(process.holds));
  t.deepEqual(process.calls, ["renew_groups_v1"]);
  await endGroup(process, 60);
  await until(async () => (await count()) === 0);
  t.deepEqual(await groupsOf(process), []);
});

test.serial("groups that were given up are deleted, even if nobody acquires a lock", async (t) => {
  const process = await grouped(t);
  const { first } = process;
  const givenUp = await groupsOf(process);
  await process.renew([first]);
  await process.renew();
  await admin.query(
    "UPDATE lockweave.renewal_group SET expires_at = clock_timestamp() - interval '1 minute' WHERE id = ANY ($1)",
    [givenUp],
  );
  await until(async () => {
    await process.renew([first]);
    await process.renew();
    const { rowCount } = await admin.query("SELECT FROM lockweave.renewal_group WHERE id = ANY ($1)", [
      givenUp,
    ]);
    return rowCount === 0;
  });
  t.pass();
});

test("a transaction that locks the row of a hold keeps its key, even when the group has expired", async (t) => {
  const process = await grouped(t);
  const { store, first } = process;
  const commit = await begin(t, "SELECT FROM lockweave.hold WHERE key = $1 FOR KEY SHARE", [first.key]);
  t.deepEqual(await process.renew(), renewed(process.holds));
  await endOwnTime(process.holds);
  await endGroup(process);
  t.false((await acquire(store, first.key, newId())).acquired);
  await commit();
  t.true((await acquire(store, first.key, newId())).acquired);
});
