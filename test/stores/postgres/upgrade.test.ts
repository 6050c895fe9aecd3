import test, { type ExecutionContext } from "ava";
import { Client, Pool } from "pg";
import type { PostgresPort } from "../../../runtime/stores/postgres/client-port";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import { SCHEMA_VERSION } from "../../../runtime/stores/postgres/schema/version";
import type { WholeStore } from "../../../runtime/stores/port";
import { Crowd } from "../../support/crowd";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { judge } from "../../support/sections";
import {
  acquire,
  newId,
  newKey,
  release,
  renew,
  request,
  LONG_MS,
  TIMEOUT_MS,
} from "../../store-contract/subject";
import { portOf } from "./kinds";

// An upgrade to a later version of the schema, which the tests make up, while processes of the version before go on.

let server: PostgresServer;
let admin: Pool;
let schemas = 0;

test.before(async () => {
  server = await startPostgres();
  admin = new Pool({ connectionString: server.url });
});

test.after.always(async () => {
  await admin.end();
  await server.stop();
});

const COMMANDS = [
  "acquire",
  "enqueue",
  "dequeue",
  "renew",
  "release",
  "release_and_enqueue",
  "peek",
  "inspect",
  "revoke",
];

/** The functions for one simple request, with their parameters. */
const PLAIN = {
  acquire: "lock_key text, request_id text, lock_ms double precision, timeout_ms integer",
  release: "lock_key text, request_id text, timeout_ms integer",
};

/** Returns the SQL text of a function that notes its call, and calls the one of the version before. */
function nextFunction(command: string, name: string, parameters: string): string {
  const values = parameters.replaceAll(/ (?:text|double precision|integer)/g, "");
  return `
CREATE FUNCTION lockweave.${name}_v2(${parameters}) RETURNS text
  LANGUAGE plpgsql VOLATILE
AS $function$
DECLARE
  reply text := lockweave.${name}_v1(${values});
BEGIN
  INSERT INTO lockweave.call VALUES ('${command}');
  RETURN reply;
END
$function$;
`;
}

/** A later version: it has a new column, a new table, and a new version of each function. */
const NEXT_VERSION = `
ALTER TABLE lockweave.hold ADD COLUMN note text COLLATE "C" NOT NULL DEFAULT '';
CREATE TABLE lockweave.call (command text NOT NULL);
${COMMANDS.map((name) => nextFunction(name, name, "requests text, timeout_ms integer")).join("")}
${Object.entries(PLAIN)
  .map(([name, parameters]) => nextFunction(name, `${name}_plain`, parameters))
  .join("")}`;

const upgradeSql = (schema: string): string => migrationSql(schema, [NEXT_VERSION]);

async function versionOf(schema: string): Promise<number> {
  const { rows } = await admin.query<{ readonly version: number }>(`SELECT version FROM "${schema}".about`);
  return rows[0]?.version ?? NaN;
}

/** Creates a schema of the version before. */
async function newSchema(): Promise<string> {
  schemas += 1;
  const schema = `upgraded_${schemas}`;
  await admin.query(migrationSql(schema));
  return schema;
}

/** Opens the store of a process of the version before. */
function oldStore(t: ExecutionContext, schema: string, url = server.url): WholeStore {
  return closing(t, postgresStore(portOf(url), { schema }));
}

/** Opens the store of a process of the later version, which calls the new functions. */
function newStore(t: ExecutionContext, schema: string, url = server.url): WholeStore {
  const port = portOf(url);
  const later: PostgresPort = {
    query: (text, ...rest) => port.query(text.replaceAll("_v1(", "_v2("), ...rest),
    listen: (channel, listeners) => port.listen(channel, listeners),
    close: () => port.close(),
  };
  return closing(t, postgresStore(later, { schema }));
}

function closing(t: ExecutionContext, store: WholeStore): WholeStore {
  t.teardown(() => store.close());
  return store;
}

/** Runs a statement on connections of their own, all at the same time. */
async function atOnce(times: number, statement: string): Promise<readonly PromiseSettledResult<unknown>[]> {
  const clients = Array.from({ length: times }, () => new Client(server.url));
  await Promise.all(clients.map((client) => client.connect()));
  const results = await Promise.allSettled(clients.map((client) => client.query(statement)));
  await Promise.all(clients.map((client) => client.end()));
  return results;
}

test("an upgrade keeps held locks, and processes of both versions exclude each other", async (t) => {
  const schema = await newSchema();
  const before = oldStore(t, schema);
  const [key, id, other] = [newKey(), newId(), newId()];
  await acquire(before, key, id, { fencing: true });
  await admin.query(upgradeSql(schema));
  t.is(await versionOf(schema), SCHEMA_VERSION + 1);
  const after = newStore(t, schema);
  t.like(await acquire(after, key, other), { acquired: false, holder: id });
  t.deepEqual(await renew(before, key, id, LONG_MS), { renewed: true });
  t.deepEqual(await renew(after, key, id, LONG_MS), { renewed: true });
  t.deepEqual(await release(before, key, id), { released: true });
  t.true((await acquire(after, key, other)).acquired);
  t.like(await acquire(before, key, id), { acquired: false, holder: other });
  t.deepEqual(await release(after, key, other), { released: true });
});

test("processes of the previous version keep working while many processes upgrade the schema at the same time", async (t) => {
  const schema = await newSchema();
  const crowd = new Crowd(
    () => postgresStore(portOf(server.url), { schema }),
    ["LOCK_one", "LOCK_other"],
    true,
  );
  t.teardown(() => crowd.end());
  await crowd.progresses();
  const results = await atOnce(10, upgradeSql(schema));
  t.true(results.every(({ status }) => status === "fulfilled"));
  t.is(await versionOf(schema), SCHEMA_VERSION + 1);
  await crowd.progresses();
  await crowd.end();
  for (const sections of crowd.sections.values()) {
    t.deepEqual(judge(sections).unannounced, []);
    t.deepEqual(judge(sections).fallenTokens, []);
  }
  t.deepEqual([...crowd.failures], []);
});

test("an upgrade that waits for a guard gives up soon, and then no command waits", async (t) => {
  const schema = await newSchema();
  const store = oldStore(t, schema);
  const [key, id] = [newKey(), newId()];
  await acquire(store, key, id);
  const guarding = new Client(server.url);
  await guarding.connect();
  t.teardown(() => guarding.end());
  await guarding.query(`BEGIN; SELECT FROM "${schema}".hold FOR KEY SHARE`);
  const [result] = await atOnce(1, upgradeSql(schema));
  t.like(result, { status: "rejected", reason: { code: "55P03" } });
  t.is(await versionOf(schema), SCHEMA_VERSION);
  t.deepEqual(await renew(store, key, id, LONG_MS), { renewed: true });
  await guarding.query("COMMIT");
  await admin.query(upgradeSql(schema));
  t.is(await versionOf(schema), SCHEMA_VERSION + 1);
  t.deepEqual(await renew(store, key, id, LONG_MS), { renewed: true });
});

test("an upgrade that fails changes nothing", async (t) => {
  const schema = await newSchema();
  const store = oldStore(t, schema);
  await t.throwsAsync(admin.query(migrationSql(schema, [`${NEXT_VERSION} PERFORM 1 / 0;`])), {
    message: /division by zero/,
  });
  t.is(await versionOf(schema), SCHEMA_VERSION);
  t.true((await acquire(store, newKey(), newId())).acquired);
  await admin.query(upgradeSql(schema));
  t.true((await acquire(newStore(t, schema), newKey(), newId())).acquired);
});

test("an upgrade grants new tables and functions to the roles that have the old ones", async (t) => {
  const schema = await newSchema();
  await admin.query(`CREATE ROLE "An app" LOGIN; CREATE ROLE stranger LOGIN;
    GRANT USAGE ON SCHEMA "${schema}" TO "An app", stranger;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "${schema}" TO "An app";
    ALTER DEFAULT PRIVILEGES IN SCHEMA "${schema}" REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
    ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;`);
  await admin.query(upgradeSql(schema));
  await admin.query("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC");
  const app = newStore(t, schema, server.urlOf({ user: "An%20app" }));
  t.true((await acquire(app, newKey(), newId())).acquired);
  const stranger = newStore(t, schema, server.urlOf({ user: "stranger" }));
  await t.throwsAsync(acquire(stranger, newKey(), newId()), { name: "LockMisconfiguredError" });
});

test("a migration of the previous version leaves a later schema unchanged", async (t) => {
  const schema = await newSchema();
  await admin.query(upgradeSql(schema));
  await admin.query(migrationSql(schema));
  t.is(await versionOf(schema), SCHEMA_VERSION + 1);
  t.true((await acquire(newStore(t, schema), newKey(), newId())).acquired);
});

test("an error about missing functions says which side is too old", async (t) => {
  const schema = await newSchema();
  const store = oldStore(t, schema);
  await admin.query(`DROP FUNCTION "${schema}".acquire_plain_v1`);
  for (const [version, message] of [
    [
      SCHEMA_VERSION - 1,
      /has version 0, and this version of Lockweave needs 1 .*Fix: npx lockweave postgres --apply/,
    ],
    [
      SCHEMA_VERSION + 1,
      /has version 2, and this version of Lockweave needs 1 .*Fix: upgrade the package lockweave/,
    ],
    [SCHEMA_VERSION, /a part of the schema \w+ is missing .*Fix: drop the schema/],
  ] as const) {
    await admin.query(`UPDATE "${schema}".about SET version = ${version}`);
    await t.throwsAsync(store.acquire(request(newKey(), newId()), TIMEOUT_MS), {
      name: "LockMisconfiguredError",
      message,
    });
  }
});
