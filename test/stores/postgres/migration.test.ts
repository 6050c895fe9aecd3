import test from "ava";
import { Client } from "pg";
import { applyMigration } from "../../../runtime/stores/postgres/apply-migration";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { acquire, newId, newKey, peek, release, renew, LONG_MS } from "../../store-contract/subject";
import { poolPort } from "./pool-port";

let server: PostgresServer;

test.before(async () => {
  server = await startPostgres();
});

test.after.always(() => server.stop());

/** Runs statements on connections of their own, all at the same time. */
async function atOnce(statements: readonly string[], user?: string): Promise<void> {
  const connectionString = user === undefined ? server.url : server.urlOf({ user });
  const clients = statements.map(() => new Client({ connectionString }));
  await Promise.all(clients.map((client) => client.connect()));
  try {
    await Promise.all(clients.map((client, index) => client.query(statements[index] ?? "")));
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

const run = (statement: string, user?: string): Promise<void> => atOnce([statement], user);

test("twenty connections can create the schema at the same time", async (t) => {
  await atOnce(Array.from({ length: 20 }, () => migrationSql("twenty")));
  const store = postgresStore(poolPort(server.url), { schema: "twenty" });
  t.true((await acquire(store, newKey(), newId())).acquired);
  await store.close();
});

test("many processes can apply the migration at the same time, whatever the default transaction settings of their role are", async (t) => {
  const SETTINGS = {
    repeatable: "default_transaction_isolation = 'repeatable read'",
    serializable: "default_transaction_isolation = 'serializable'",
    reading: "default_transaction_read_only = on",
  };
  for (const [name, setting] of Object.entries(SETTINGS)) {
    await run(`CREATE ROLE ${name} LOGIN SUPERUSER; ALTER ROLE ${name} SET ${setting};`);
    const url = server.urlOf({ user: name });
    const apply = (): Promise<number> => applyMigration(url, `of_${name}`, "url");
    await t.notThrowsAsync(Promise.all(Array.from({ length: 10 }, apply)), name);
    const store = postgresStore(poolPort(url), { schema: `of_${name}` });
    t.true((await acquire(store, newKey(), newId())).acquired);
    await store.close();
  }
});

test("the migration runs in a schema that already exists", async (t) => {
  await run("CREATE SCHEMA prepared");
  await run(migrationSql("prepared"));
  const store = postgresStore(poolPort(server.url), { schema: "prepared" });
  t.true((await acquire(store, newKey(), newId())).acquired);
  await store.close();
});

test("a migration that has nothing to do keeps held locks", async (t) => {
  await run(migrationSql("again"));
  const store = postgresStore(poolPort(server.url), { schema: "again" });
  const [key, id] = [newKey(), newId()];
  await acquire(store, key, id);
  await run(migrationSql("again"));
  t.deepEqual(await renew(store, key, id, LONG_MS), { renewed: true });
  await store.close();
});

test("a role needs no CREATE privilege if another role has applied the migration", async (t) => {
  await run(`${migrationSql("granted")}
    CREATE ROLE app LOGIN;
    GRANT USAGE ON SCHEMA granted TO app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA granted TO app;`);
  await run(migrationSql("granted"), "app");
  const store = postgresStore(poolPort(server.urlOf({ user: "app" })), { schema: "granted" });
  const [key, id] = [newKey(), newId()];
  t.true((await acquire(store, key, id, { fencing: true })).acquired);
  t.true((await release(store, key, id)).released);
  await store.close();
});

test("a role without the grants gets an error that says what to do", async (t) => {
  await run(`${migrationSql("secret")} CREATE ROLE stranger LOGIN;`);
  const store = postgresStore(poolPort(server.urlOf({ user: "stranger" })), { schema: "secret" });
  const error = await t.throwsAsync(acquire(store, newKey(), newId()), { name: "LockMisconfiguredError" });
  t.regex(error.message, /lacks a permission in the schema secret .* Fix: run the GRANT statements/);
  await store.close();
});

for (const [schema, tables] of [
  ["of_others", ["about"]],
  ["of_an_os", ["about", "process"]],
  ["of_a_bank", ["hold", "waiter"]],
] as const) {
  test(`the migration names tables of another program: ${tables.join(" and ")}`, async (t) => {
    const columns = "(id uuid, title text)";
    await run(
      `CREATE SCHEMA ${schema}; ${tables.map((table) => `CREATE TABLE ${schema}.${table} ${columns};`).join(" ")}`,
    );
    await t.throwsAsync(run(migrationSql(schema)), {
      message: `the schema ${schema} has tables of another program with the names of our tables: ${tables.join(", ")}. Fix: choose another schema with --schema <name>`,
    });
    await run(`SELECT title FROM ${schema}.${tables[0]}`); // They are still there.
  });
}

test("a missing schema is an error with the command that creates it", async (t) => {
  const store = postgresStore(poolPort(server.url), { schema: "nowhere" });
  const expected = { name: "LockMisconfiguredError", message: /Fix: npx lockweave postgres --apply <url>/ };
  await t.throwsAsync(acquire(store, newKey(), newId()), expected);
  await t.throwsAsync(peek(store, newKey()) as Promise<unknown>, expected);
  await store.close();
});

for (const schema of ["pg_mine", "pg_catalog", "information_schema", "Information_Schema"]) {
  test(`the name ${schema} of PostgreSQL's own schemas is rejected`, (t) => {
    const message = `Expected \`schema\` to be the name of a schema of your own, got '${schema}', which belongs to PostgreSQL. Fix: use another name, such as "lockweave"`;
    t.throws(() => migrationSql(schema), { name: "LockOptionError", message });
  });
}

for (const schema of ["", "a b", 'x"; DROP SCHEMA y; --', "$migration$", "x".repeat(64)]) {
  test(`the name ${JSON.stringify(schema)} for a schema is rejected before any statement is sent`, (t) => {
    const expected = { name: "LockOptionError", message: /^Expected `schema` to be the name/ };
    t.throws(() => migrationSql(schema), expected);
    t.throws(() => postgresStore(poolPort(server.url), { schema }), expected);
  });
}
