import test from "ava";
import { Client, Pool } from "pg";
import postgres from "postgres";
import { configure, shutdown } from "../../runtime/config/configure";
import type { Configuration } from "../../runtime/config/configuration";
import { health } from "../../runtime/diagnostics/health";
import { ready } from "../../runtime/diagnostics/ready";
import { LockMisconfiguredError, LockOptionError } from "../../runtime/base/errors";
import { memoryStore } from "../../runtime/stores/memory";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import type { PostgresTarget } from "../../runtime/stores/postgres/target";
import { inspect } from "../../runtime/admin/inspect";
import { withLock } from "../../runtime/with-lock";
import { startPostgres, type PostgresServer } from "../support/postgres-server";
import { until } from "../support/until";

// `configure({ postgres })`. A process has one configuration, so these tests run serially.

let server: PostgresServer;
let admin: Client;

test.before(async () => {
  server = await startPostgres();
  admin = new Client(server.url);
  await admin.connect();
  await admin.query(migrationSql("lockweave"));
  await admin.query(migrationSql("locks"));
});
test.afterEach.always(() => shutdown({ patience: "0ms" }));
test.after.always(async () => {
  await admin.end();
  await server.stop();
});

const warnings: string[] = [];
function configureHere(configuration: Configuration): void {
  configure({ ...configuration, logger: { warn: (line) => void warnings.push(line) }, woven: false });
}

/** The number of connections to the server, without this file's own. */
async function connections(): Promise<number> {
  const { rows } = await admin.query<{ count: number }>(
    "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
  );
  return rows[0]?.count ?? NaN;
}

/** Two callers take turns, and the second one waits. */
async function takeTurns(key: string): Promise<readonly string[]> {
  const order: string[] = [];
  await withLock(key, {}, () => order.push("first"));
  await Promise.all(
    ["a", "b", "c"].map((name) =>
      withLock(key, { waitTime: "1m", lockTime: "1m" }, async () => {
        order.push(`${name} begins`);
        await admin.query("SELECT 1");
        order.push(`${name} ends`);
      }),
    ),
  );
  return order;
}

const TURNS = ["first", ...["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`])];

const TARGETS: Readonly<Record<string, (pool: Pool, sql: postgres.Sql) => PostgresTarget>> = {
  "a URL": () => server.url,
  "a Pool of pg": (pool) => pool,
  "a client of postgres.js": (_pool, sql) => sql,
  "a URL and options": () => ({ url: server.url, schema: "locks", listenUrl: server.url, connections: 1 }),
  "a Pool and options": (pool) => ({ client: pool, schema: "locks" }),
};

for (const [what, target] of Object.entries(TARGETS)) {
  test.serial(
    `configure() accepts ${what}, and shutdown() closes the connections that it opened`,
    async (t) => {
      const [pool, sql] = [new Pool({ connectionString: server.url }), postgres(server.url)];
      configureHere({ postgres: target(pool, sql) });
      t.deepEqual(await takeTurns(`turns ${what}`), TURNS);
      t.true((await connections()) > 0);
      await shutdown();
      await until(async () => (await connections()) === 0);
      await Promise.all([pool.end(), sql.end()]);
      t.deepEqual(warnings.splice(0), []);
    },
  );
}

test.serial(
  "a body that holds the only connection of the pool keeps its lock, and the release needs none",
  async (t) => {
    const pool = new Pool({ connectionString: server.url, max: 1 });
    configureHere({ postgres: pool });
    const lockTime = "1s";
    const value = await withLock("held", { lockTime }, async (lock) => {
      const client = await pool.connect();
      await client.query("SELECT pg_sleep(2.5)");
      const isHeld = !lock.signal.aborted;
      client.release();
      return isHeld;
    });
    t.true(value);
    await shutdown();
    await pool.end();
  },
);

test.serial("an entry of `stores` may use PostgreSQL", async (t) => {
  configureHere({
    store: memoryStore(),
    stores: { ledger: { postgres: { url: server.url, schema: "locks" } } },
  });
  await withLock("in the ledger", { store: "ledger" }, async () => {
    const { rows } = await admin.query("SELECT 1 FROM locks.hold");
    t.is(rows.length, 1);
  });
});

test.serial("ready() resolves with the schema and its grants, and rejects without them", async (t) => {
  configureHere({ postgres: server.url });
  await ready({ timeout: "1m" });
  t.is(health().status, "up");
  const { rows } = await admin.query("SELECT 1 FROM lockweave.hold UNION ALL SELECT 1 FROM lockweave.waiter");
  t.is(rows.length, 0);
  await shutdown();
  await admin.query("CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA lockweave TO guest");
  for (const [target, words] of [
    [{ url: server.url, schema: "absent" }, /the schema absent of Lockweave is missing/],
    [server.urlOf({ user: "guest" }), /the PostgreSQL role lacks a permission/],
  ] as const) {
    configureHere({ postgres: target });
    const error = await t.throwsAsync(ready({ timeout: "1m" }), { instanceOf: LockMisconfiguredError });
    t.regex(error?.message ?? "", words);
    await shutdown();
  }
  warnings.length = 0;
});

/** Resolves to the warning that `configure()` logs at startup, before any lock. */
async function warningAtStartup(configuration: Configuration): Promise<string> {
  configureHere(configuration);
  await until(() => warnings.length > 0);
  return warnings.splice(0).join("\n");
}

test.serial(
  "configure() warns about a missing schema before the first lock, and names the command",
  async (t) => {
    const expected =
      /^configure\(\{ postgres \}\): the schema absent of Lockweave is missing .* Fix: npx lockweave postgres --apply <url> --schema absent$/;
    t.regex(await warningAtStartup({ postgres: { url: server.url, schema: "absent" } }), expected);
    const pool = new Pool({ connectionString: server.url });
    t.teardown(() => pool.end());
    const stores = { ledger: { postgres: { client: pool, schema: "absent" } } };
    await shutdown();
    t.regex(
      await warningAtStartup({ store: memoryStore(), stores }),
      /^configure\(\{ stores\.ledger\.postgres \}\): the schema absent/,
    );
  },
);

test.serial("the error about a missing schema names the command to run", async (t) => {
  await warningAtStartup({ postgres: { url: server.url, schema: "absent" } });
  await t.throwsAsync(
    withLock("k", {}, () => {}),
    {
      instanceOf: LockMisconfiguredError,
      message: /schema absent .*Fix: npx lockweave postgres --apply <url> --schema absent$/,
    },
  );
});

test.serial("configure() warns about a schema that is too old", async (t) => {
  await admin.query(`${migrationSql("old")} UPDATE old.about SET version = 0;`);
  t.regex(
    await warningAtStartup({ postgres: { url: server.url, schema: "old" } }),
    /has version 0, and this version of Lockweave needs 1 \(it is outdated\)\. Fix: npx lockweave postgres/,
  );
});

test.serial("configure() warns about a table `about` of another program", async (t) => {
  await admin.query("CREATE SCHEMA foreign_about; CREATE TABLE foreign_about.about (title text);");
  t.regex(
    await warningAtStartup({ postgres: { url: server.url, schema: "foreign_about" } }),
    /the schema foreign_about of Lockweave is missing .* Fix: npx lockweave postgres/,
  );
});

for (const [name, grants, lacking] of [
  ["stranger", "", /lacks a permission in the schema lockweave \(permission denied for schema lockweave\)/],
  ["reader", "GRANT SELECT ON ALL TABLES IN SCHEMA lockweave TO reader", /\(INSERT on hold, .* on process\)/],
  [
    "caller",
    `REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA lockweave FROM PUBLIC;
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lockweave TO caller`,
    /\(EXECUTE on the functions\)/,
  ],
] as const) {
  test.serial(`configure() warns about the permissions that the role ${name} lacks`, async (t) => {
    await admin.query(`CREATE ROLE ${name} LOGIN; ${grants};`);
    if (grants !== "") await admin.query(`GRANT USAGE ON SCHEMA lockweave TO ${name}`);
    t.teardown(() => admin.query("GRANT EXECUTE ON ALL ROUTINES IN SCHEMA lockweave TO PUBLIC"));
    const warning = await warningAtStartup({ postgres: server.urlOf({ user: name }) });
    t.regex(warning, lacking);
    t.regex(warning, / Fix: run the GRANT statements of \S+postgres\.md as the owner of the schema$/);
  });
}

test.serial("configure() does not warn about a server that does not answer yet", async (t) => {
  configureHere({ postgres: "postgres://u@127.0.0.1:1/db" });
  await t.throwsAsync(
    withLock("k", { retryTimes: 0 }, () => {}),
    { name: "LockUnreachableError" },
  );
  t.deepEqual(warnings.splice(0), []);
});

for (const [what, configuration, message] of [
  [
    "redis and postgres",
    { redis: "redis://h", postgres: "postgres://h" },
    /one of `redis`, `postgres`, and `store`, got `redis` and `postgres`$/,
  ],
  ["a postgres that is undefined", { postgres: undefined }, /got none \(`postgres` is undefined\)$/],
  [
    "a PostgreSQL URL as redis",
    { redis: "postgres://u:secret@h/db" },
    /^Expected `redis` to be a Redis client or URL, got a postgres:\/\/ URL\. Fix: give it to the option `postgres`$/,
  ],
  [
    "a PostgreSQL URL in options as redis",
    { redis: { url: "postgresql://u:secret@h/db" } },
    /got a postgres:\/\/ URL\. Fix: give it to the option `postgres`$/,
  ],
  ["a Pool as redis", { redis: new Pool() }, /got a Pool of pg\. Fix: give it to the option `postgres`$/],
  [
    "a PostgreSQL URL in stores",
    { store: memoryStore(), stores: { ledger: "postgres://h" } },
    /^Expected `stores\.ledger` to be a Redis client or URL, got a postgres:\/\/ URL\. Fix: give it to `stores\.ledger` as \{ postgres: \.\.\. \}$/,
  ],
  [
    "a Redis URL as postgres",
    { postgres: "rediss://u:secret@h" },
    /got a redis:\/\/ URL\. Fix: give it to the option `redis`$/,
  ],
  [
    "a Redis URL as the PostgreSQL of stores",
    { store: memoryStore(), stores: { ledger: { postgres: "redis://h" } } },
    /^Expected `stores\.ledger\.postgres` to be a postgres:\/\/ URL/,
  ],
  [
    "options in the wrong place",
    { store: memoryStore(), stores: { ledger: { postgres: "postgres://h", schema: "x" } } },
    /the option `schema` next to it\. Fix: put the options into `postgres`/,
  ],
] as const) {
  test.serial(`configure() rejects ${what}`, (t) => {
    const error = t.throws(() => configureHere(configuration as unknown as Configuration), {
      instanceOf: LockOptionError,
      message,
    });
    t.notRegex(error?.message ?? "", /secret/);
  });
}

test.serial(
  "inspect() reports the state `guarded` until the transaction that guards a released lock ends",
  async (t) => {
    configureHere({ postgres: server.url });
    const tx = new Client(server.url);
    await tx.connect();
    t.teardown(() => tx.end());
    await tx.query("BEGIN");
    await withLock("LOCK_guarded", {}, (lock) => lock.guard((sql) => tx.query(sql)));
    t.like(await inspect("LOCK_guarded"), { state: "guarded", holders: [] });
    await tx.query("COMMIT");
    t.like(await inspect("LOCK_guarded"), { state: "free", holders: [] });
  },
);
