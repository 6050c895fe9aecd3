import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { Client, Pool } from "pg";
import postgres from "postgres";
import { LockOptionError } from "../../../runtime/base/errors";
import type { PostgresTarget } from "../../../runtime/stores/postgres/target";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { portOf } from "./kinds";

// Lockweave opens its own connections with the options of the application's client.

let server: PostgresServer;
let ca: string;
const PASSWORD = "p@ss/wörd";

test.before(async () => {
  server = await startPostgres();
  await acceptPasswordsAndTls();
});
test.after.always(() => server.stop());

async function acceptPasswordsAndTls(): Promise<void> {
  const [data, key, certificate] = ["data", "data/server.key", "data/server.crt"].map((name) =>
    join(server.dir, name),
  );
  if (data === undefined || key === undefined || certificate === undefined) throw new Error("no paths");
  const kind = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"];
  const names = ["-addext", "subjectAltName=DNS:localhost"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...names, "-keyout", key, "-out", certificate], {
    stdio: "ignore",
  });
  execFileSync("chown", [`--reference=${data}`, key, certificate]);
  execFileSync("chmod", ["600", key]);
  ca = await readFile(certificate, "utf8");
  const rules = join(data, "pg_hba.conf");
  const before = await readFile(rules, "utf8");
  await writeFile(
    rules,
    `host all guarded all scram-sha-256\nhostssl all encrypted all trust\nhost all encrypted all reject\n${before}`,
  );
  const client = new Client(server.url);
  await client.connect();
  await client.query(`CREATE ROLE guarded LOGIN PASSWORD '${PASSWORD}'`);
  await client.query("CREATE ROLE encrypted LOGIN");
  await client.query("ALTER SYSTEM SET ssl = on");
  await client.end();
  await server.crash(); // Reads all settings again.
}

interface Application {
  readonly client: Pool | postgres.Sql;
  /** Takes every connection that the client may have. */
  holdAll(): Promise<unknown>;
}

interface ClientOptions {
  readonly max?: number;
  readonly host?: string;
  readonly port?: number;
  readonly user?: string;
  readonly password?: string | (() => Promise<string>);
  readonly ssl?: { readonly ca?: string; readonly rejectUnauthorized?: boolean };
  readonly statement_timeout?: number;
  readonly query_timeout?: number;
  readonly idle_timeout?: number;
  readonly transform?: typeof postgres.camel;
}

/** A client of each library, with the same options. */
const LIBRARIES: Readonly<Record<string, (t: ExecutionContext, options: ClientOptions) => Application>> = {
  pg(t, options) {
    const client = new Pool({
      port: server.port,
      host: "localhost",
      user: "postgres",
      database: "postgres",
      ...options,
    });
    const held: { release(): void }[] = [];
    t.teardown(async () => {
      for (const one of held) one.release();
      await client.end();
    });
    return { client, holdAll: async () => held.push(await client.connect()) };
  },
  "postgres.js"(t, options) {
    const client = postgres({
      port: server.port,
      host: "localhost",
      user: "postgres",
      database: "postgres",
      ...options,
    });
    const held: { release(): void }[] = [];
    t.teardown(async () => {
      for (const one of held) one.release();
      await client.end();
    });
    return { client, holdAll: async () => held.push(await client.reserve()) };
  },
};

async function ask(t: ExecutionContext, target: PostgresTarget, text: string): Promise<unknown> {
  const port = portOf(target);
  t.teardown(() => port.close());
  const [row = {}] = await port.query(text, [], 60_000);
  return Object.values(row)[0];
}

for (const [name, create] of Object.entries(LIBRARIES)) {
  test(`${name}: a body that holds every connection of the application does not keep the store from working`, async (t) => {
    const { client, holdAll } = create(t, { max: 1 });
    await holdAll();
    t.is(await ask(t, client, "SELECT 1"), 1);
  });

  test(`${name}: a password works, and so does a function that returns it`, async (t) => {
    let calls = 0;
    const password = async (): Promise<string> => {
      calls += 1;
      return PASSWORD;
    };
    for (const given of [PASSWORD, password]) {
      const { client } = create(t, { user: "guarded", password: given });
      t.is(await ask(t, client, "SELECT current_user::text"), "guarded");
    }
    t.is(calls, 1);
    const { client } = create(t, { user: "guarded", password: "wrong" });
    const error = await t.throwsAsync<Error & { code?: string }>(ask(t, client, "SELECT 1"));
    t.is(error?.code, "28P01");
  });

  test(`${name}: the directory of a Unix socket works`, async (t) => {
    const { client } = create(t, { host: server.dir });
    t.is(await ask(t, client, "SELECT inet_client_addr() IS NULL"), true);
  });

  test(`${name}: TLS options apply, and the certificate is checked`, async (t) => {
    const used = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    const { client } = create(t, { user: "encrypted", ssl: { ca } });
    t.is(await ask(t, client, used), true);
    const { client: distrustful } = create(t, { user: "encrypted", ssl: { rejectUnauthorized: true } });
    await t.throwsAsync(ask(t, distrustful, used), { message: /self-signed certificate/ });
    const { client: plain } = create(t, { user: "encrypted" });
    await t.throwsAsync(ask(t, plain, used), { message: /encrypted/ });
  });

  test(`${name}: settings of the application's sessions do not apply to the store`, async (t) => {
    const options =
      name === "pg"
        ? { statement_timeout: 1, query_timeout: 1 }
        : { transform: postgres.camel, idle_timeout: 1 };
    const { client } = create(t, options);
    const port = portOf(client);
    t.teardown(() => port.close());
    const [row] = await port.query("SELECT pg_sleep(0.05)::text IS NULL AS is_null", [], 60_000);
    t.deepEqual({ ...row }, { is_null: false });
  });

  test(`${name}: the connection for wake-ups uses listenUrl`, async (t) => {
    const { client } = create(t, { port: 1 });
    const port = portOf({ client, listenUrl: server.url });
    t.teardown(() => port.close());
    await new Promise<void>((resolve) => {
      port.listen("direct", { subscribed: resolve, message() {}, failed: (error) => t.fail(error.message) });
    });
    await t.throwsAsync(port.query("SELECT 1", [], 60_000), { message: /ECONNREFUSED/ });
  });
}

test("postgres.js: parsers and serializers that another package replaced in the client do not apply to the store", async (t) => {
  const client = postgres(server.url);
  t.teardown(() => client.end());
  // drizzle() does this to the client that it gets, for dates and JSON.
  for (const type of [16, 23, 25, 114, 1184]) {
    client.options.parsers[type] = () => "replaced";
    client.options.serializers[type] = () => "replaced";
  }
  const port = portOf(client);
  t.teardown(() => port.close());
  const text = "SELECT $1::integer AS i, $2::boolean AS b, $3::text AS s, $3::json AS j";
  const [row] = await port.query(text, [5, true, '{"a":[1]}'], 60_000);
  t.deepEqual({ ...row }, { i: 5, b: true, s: '{"a":[1]}', j: { a: [1] } });
});

test("postgres.js: the store uses the first host of several that answers", async (t) => {
  const client = postgres(`postgres://postgres@127.0.0.1:1,127.0.0.1:${server.port}/postgres`);
  t.teardown(() => client.end());
  t.is(await ask(t, client, "SELECT 1"), 1);
  const unreachable = postgres("postgres://postgres@127.0.0.1:1,127.0.0.1:2/postgres");
  await t.throwsAsync(ask(t, unreachable, "SELECT 1"), { message: /ECONNREFUSED/ });
});

// ---- what is rejected -----------------------------------------------------------------------------------

function refusal(target: unknown, what = "postgres"): string {
  try {
    portOf(target as PostgresTarget);
  } catch (error) {
    return error instanceof LockOptionError ? error.message : String(error);
  }
  return `\`${what}\` is accepted`;
}

test("a client with one connection is rejected, and the error says what to pass", async (t) => {
  const pool = new Pool({ connectionString: server.url });
  const pooled = await pool.connect();
  t.regex(refusal(pooled), /got a client of a Pool of pg\. Fix: pass the Pool itself/);
  pooled.release();
  await pool.end();
  t.regex(refusal(new Client(server.url)), /got a Client of pg.*Fix: pass a Pool/);
  const sql = postgres(server.url);
  t.teardown(() => sql.end());
  const reserved = await sql.reserve();
  t.regex(
    refusal(reserved),
    /got a reserved connection of postgres\.js\. Fix: pass the client that postgres\(\)/,
  );
  reserved.release();
  await sql.begin((transaction) =>
    t.regex(refusal({ client: transaction }), /got a transaction of postgres\.js\. Fix/),
  );
});

test("an invalid address is rejected, and the error does not contain its password", (t) => {
  t.regex(refusal("redis://user:secret@host"), /got a redis:\/\/ URL\. Fix: give it to the option `redis`/);
  t.regex(refusal({ connectionString: server.url }), /got options of a Pool\. Fix: pass a client with these/);
  t.regex(refusal({ host: "localhost", password: "secret" }), /got options of a client\. Fix: pass a client/);
  t.regex(refusal("mysql://user:secret@host"), /Expected `postgres` to be a postgres:\/\/ URL/);
  t.regex(refusal("postgres://user:se/cr#et@host:1:2/db"), /Fix: encode `@`/);
  for (const url of [
    "redis://u:secret@h",
    "mysql://u:secret@h",
    "user:secret@h",
    "postgres://u:secret/x@h:y:z",
  ]) {
    t.notRegex(refusal(url), /secret/);
  }
  t.regex(
    refusal({ url: server.url, listenUrl: "host" }),
    /Expected `postgres\.listenUrl` to be a postgres:\/\/ URL/,
  );
});

test("invalid options are rejected", (t) => {
  const { url } = server;
  t.regex(refusal({ url, connections: 0 }), /Expected `postgres\.connections` to be a whole number from 1/);
  t.regex(
    refusal({ url, schema: 'a"b' }),
    /Expected `postgres\.schema` to be the name of a PostgreSQL schema/,
  );
  t.regex(refusal({ url, Schema: "x" }), /Fix: correct `Schema`/);
  t.regex(refusal({ schema: "x" }), /Fix: correct `url`/);
  t.regex(refusal({ url, client: new Pool() }), /Fix: correct `client`/);
  t.regex(
    refusal(undefined),
    /Expected `postgres` to be a Pool of pg, a client of postgres\.js, or a postgres:\/\/ URL, got undefined/,
  );
  t.regex(refusal({ $queryRawUnsafe() {} }), /got a client of Prisma\. Fix: pass the URL/);
  const pglite = { query() {}, listen() {}, execProtocol() {}, waitReady: Promise.resolve() };
  const noServer =
    /got PGlite, which is no server: all callers share one session.* Fix: use a PostgreSQL server, or/;
  t.regex(refusal(pglite), noServer);
  t.regex(refusal({ client: pglite }), noServer);
});
