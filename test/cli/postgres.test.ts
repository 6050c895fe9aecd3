import test, { type ExecutionContext } from "ava";
import { Client } from "pg";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { parseCommand } from "../../transformer/cli/arguments";
import { postgres } from "../../transformer/cli/postgres";
import { UsageError } from "../../transformer/terminal/usage-error";
import { startPostgres, type PostgresServer } from "../support/postgres-server";

// `lockweave postgres`. It writes to stdout, so these tests run serially.

let server: PostgresServer;
test.before(async () => {
  server = await startPostgres();
});
test.after.always(() => server.stop());

/** Runs the command of a command line, and returns what it prints. */
async function run(t: ExecutionContext, ...args: readonly string[]): Promise<string> {
  const command = parseCommand(["postgres", ...args]);
  if (command.name !== "postgres") throw new Error("another command");
  const { write } = process.stdout;
  let printed = "";
  process.stdout.write = (text: string | Uint8Array) => {
    printed += String(text);
    return true;
  };
  try {
    t.is(await postgres(command.url, command.schema), 0);
  } finally {
    process.stdout.write = write;
  }
  return printed;
}

async function tablesIn(schema: string): Promise<number> {
  const client = new Client(server.url);
  await client.connect();
  const { rowCount } = await client.query("SELECT FROM pg_tables WHERE schemaname = $1", [schema]);
  await client.end();
  return rowCount ?? 0;
}

test.serial("`lockweave postgres` prints SQL that can be applied any number of times", async (t) => {
  const printed = await run(t, "--schema", "printed");
  const client = new Client(server.url);
  await client.connect();
  await client.query(printed);
  await client.query(printed);
  await client.end();
  t.true((await tablesIn("printed")) > 0);
});

test.serial("`lockweave postgres --apply` creates the tables, and can run again", async (t) => {
  for (const time of ["first", "second"]) {
    t.is(await run(t, "--apply", server.url), "The schema lockweave is up to date.\n", time);
  }
  t.true((await tablesIn("lockweave")) > 0);
});

test.serial(
  "`lockweave postgres --apply` of an older version leaves a later schema unchanged, and says so",
  async (t) => {
    await run(t, "--schema", "later", "--apply", server.url);
    const client = new Client(server.url);
    await client.connect();
    await client.query(migrationSql("later", ["PERFORM 1;"]));
    await client.end();
    t.is(
      await run(t, "--schema", "later", "--apply", server.url),
      "The schema later has version 2, which is from a later version of Lockweave. This version needs version 1, and works with it. Nothing was changed.\n",
    );
  },
);

test.serial(
  "`lockweave postgres --apply` says what to do if a transaction uses the tables that it changes",
  async (t) => {
    await run(t, "--schema", "used", "--apply", server.url);
    const client = new Client(server.url);
    await client.connect();
    await client.query("BEGIN; LOCK TABLE used.about IN ACCESS EXCLUSIVE MODE");
    await t.throwsAsync(run(t, "--schema", "used", "--apply", server.url), {
      instanceOf: UsageError,
      message: /a transaction uses the tables of the schema.*Fix: end it, and run this command again/,
    });
    await client.end();
  },
);

for (const [what, args, message] of [
  [
    "an invalid schema name",
    ["--schema", "a b"],
    /Expected `--schema` to be the name of a PostgreSQL schema/,
  ],
  ["a URL of Redis", ["--apply", "redis://h"], /Expected `--apply` to be a postgres:\/\/ URL, such as \S+$/],
  ["a server that is down", ["--apply", "postgres://u:secret@127.0.0.1:1/db"], /ECONNREFUSED/],
] as const) {
  test.serial(`\`lockweave postgres\` reports ${what}, and no password`, async (t) => {
    const error = await t.throwsAsync(run(t, ...args), { instanceOf: UsageError, message });
    t.notRegex(error?.message ?? "", /secret/);
  });
}

test.serial("`lockweave postgres` says what to do if the database rejects it", async (t) => {
  const client = new Client(server.url);
  await client.connect();
  await client.query("CREATE ROLE reader LOGIN");
  await client.end();
  await t.throwsAsync(run(t, "--schema", "other", "--apply", server.urlOf({ user: "reader" })), {
    instanceOf: UsageError,
    message: /permission denied for database postgres\. Fix: use the URL of a role that may create schemas/,
  });
  await t.throwsAsync(run(t, "--apply", server.urlOf({ database: "absent" })), {
    instanceOf: UsageError,
    message: /database "absent" does not exist\)\. Fix: create it, or correct the URL\.$/,
  });
});
