import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { hostname } from "node:os";
import test from "ava";
import { Client } from "pg";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import type { Deployment } from "../../transformer/console/port/deployment";
import { openDeployment } from "../../transformer/console/open-deployment";
import { LockScanner } from "../../transformer/console/lock-scanner";
import { Releases } from "../../transformer/console/ui/releases";
import type { Question, State } from "../../transformer/console/ui/state";
import type { Snapshot } from "../../transformer/console/snapshot";
import { UsageError } from "../../transformer/terminal/usage-error";
import { startPostgres, type PostgresServer } from "../support/postgres-server";
import { until } from "../support/until";
import { Programs } from "./programs";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";

// `top`, `tail`, `inspect`, `release`, and `ui` with locks in PostgreSQL.

let server: PostgresServer;
let admin: Client;
let deployment: Deployment;
let programs: Programs;

test.before(async () => {
  server = await startPostgres("max_prepared_transactions=5");
  admin = await connect();
  await admin.query(migrationSql());
  deployment = await openDeployment(targetOf(server.url));
  programs = new Programs(server.url);
});
test.afterEach.always(async () => {
  await programs.end();
  await admin.query("TRUNCATE lockweave.hold, lockweave.waiter, lockweave.process");
});
test.after.always(async () => {
  deployment.close();
  await admin.end();
  await server.stop();
});

const targetOf = (postgres: string, match = "LOCK_*", schema = "lockweave") => ({ postgres, match, schema });

async function connect(url = server.url): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {}); // The server stops.
  await client.connect();
  return client;
}

const id = (digit: string): string => digit.repeat(32);

/** Inserts a hold. */
async function hold(
  key: string,
  holder: string,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const row: Readonly<Record<string, unknown>> = {
    key,
    holder,
    expires_at: new Date(Date.now() + 600_000),
    ...fields,
  };
  const names = Object.keys(row);
  await admin.query(
    `INSERT INTO lockweave.hold (${names.join()}) VALUES (${names.map((_, index) => `$${index + 1}`).join()})`,
    Object.values(row),
  );
}

const look = (): Promise<Snapshot> => new LockScanner(deployment).look();

/** Locks the row of a hold as a guard does, in a transaction that stays open. */
async function guard(
  key: string,
  holder: string,
): Promise<{ readonly pid: number; readonly client: Client }> {
  const client = await connect();
  await client.query("BEGIN");
  const { rows: about } = await client.query<{ id: string }>("SELECT id FROM lockweave.about");
  const wanted = { database: about[0]?.id, holds: [{ key, request_id: holder }] };
  const request = Buffer.from(JSON.stringify(wanted)).toString("hex");
  await client.query(`SELECT lockweave.guard_v1('${request}')`);
  const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  return { pid: rows[0]?.pid ?? NaN, client };
}

test.serial("the console shows holds, reservations, closed keys, and waiters", async (t) => {
  await hold("LOCK_held", id("a"));
  await hold("LOCK_revoked", id("b"), { is_revoked: true });
  await hold("LOCK_over", id("b"), { expires_at: new Date(0) });
  await hold("LOCK_released", id("b"), { is_released: true });
  await hold("LOCK_closed", `closed:${id("c")}`);
  await hold("LOCK_next", `reserved:${id("d")}`);
  await hold("LOCK_read", id("1"), { permit_limit: 0 });
  await hold("LOCK_read", id("2"), { permit_limit: 0 });
  for (const turn of [2, 1])
    await admin.query(
      "INSERT INTO lockweave.waiter VALUES ('mutex', $1, $2, '', false, now() + interval '1 min')",
      [turn, id(String(turn))],
    );
  const { locks, ...cost } = await look();
  t.deepEqual(
    locks
      .toSorted((one, other) => (one.key < other.key ? -1 : 1))
      .map(({ key, state, waiting, holders }) => [key, state, waiting, holders.length]),
    [
      ["LOCK_closed", "closed", 0, 0],
      ["LOCK_held", "held", 0, 1],
      ["LOCK_next", "next", 0, 0],
      ["LOCK_read", "held", 0, 2],
      ["LOCK_revoked", "held", 0, 1],
      ["mutex", "free", 2, 0],
    ],
  );
  t.like(cost, { keys: 6, leftOut: 0, isWhole: true, masters: 1, unanswered: 0, commands: 2 });
  t.like(locks[0], { key: "mutex", waiters: [{ number: "1".repeat(12) }, { number: "2".repeat(12) }] });
  const held = locks.find(({ key }) => key === "LOCK_held");
  t.true((held?.holders[0]?.leftMs ?? 0) > 500_000 && (held?.holders[0]?.leftMs ?? 0) <= 600_000);
  const revoked = locks.find(({ key }) => key === "LOCK_revoked");
  t.like(revoked?.holders[0], {
    isRevoked: true,
    storeValue: `revoked:${id("b").slice(8)}`,
    process: undefined,
  });
});

const KEYS = [
  "LOCK_a",
  "LOCK_b1",
  "LOCK_b22",
  "LOCK_(x)+.$",
  "LOCK_ü",
  "LOCK_ba\\ck",
  "LOCK_nul\0",
  "LOCK_[x]",
  "LOCK_a\nb",
  "other",
];

for (const [match, fits] of [
  ["*", KEYS],
  ["LOCK_*", KEYS.filter((key) => key !== "other")],
  ["LOCK_b?", ["LOCK_b1"]],
  ["LOCK_?", ["LOCK_a", "LOCK_ü"]],
  ["LOCK_[ab]*", ["LOCK_a", "LOCK_b1", "LOCK_b22", "LOCK_ba\\ck", "LOCK_a\nb"]],
  ["LOCK_[^a-b]", ["LOCK_ü"]],
  ["LOCK_(x)+.$", ["LOCK_(x)+.$"]],
  ["LOCK_(x).", []],
  ["LOCK_ba\\\\ck", ["LOCK_ba\\ck"]],
  ["LOCK_ba?ck", ["LOCK_ba\\ck"]],
  ["LOCK_nul?", ["LOCK_nul\0"]],
  ["LOCK_\\[x\\]", ["LOCK_[x]"]],
  ["LOCK_[]*", []],
  ["lock_*", []],
] as const) {
  test.serial(`--match ${JSON.stringify(match)} selects the keys that SCAN would select`, async (t) => {
    for (const key of KEYS) await hold(key.replaceAll("\\", "\\\\").replaceAll("\0", "\\0"), id("a"));
    const other = await openDeployment(targetOf(server.url, match));
    const { locks } = await new LockScanner(other).look();
    other.close();
    t.deepEqual(locks.map(({ key }) => key).toSorted(), [...fits].toSorted());
  });
}

test.serial(
  "the console finds a long key by the whole key, and does not release it by a prefix",
  async (t) => {
    const long = `LOCK_${"x".repeat(5_000)}`;
    await programs.program(`await obtain(wholeKey\`${long}\${1}\`);`);
    const { locks } = await look();
    const [shown] = locks;
    t.regex(shown?.key ?? "", /^\\#[0-9a-f]{64} LOCK_x{95}$/);
    t.is((await new LockScanner(deployment).lookAtOne(`${long}1`))?.row.state, "held");
    const refused = await new Releases(deployment).ask(shown?.key ?? "", true);
    t.regex(
      typeof refused === "string" ? refused : "a question",
      /only the beginning of a long key\. Fix: use the whole key\.$/,
    );
  },
);

test.serial("a guarded hold names its backend, and can be revoked but not freed", async (t) => {
  await hold("LOCK_pay", id("a"));
  const { pid, client } = await guard("LOCK_pay", id("a"));
  const releases = new Releases(deployment);
  t.like((await look()).locks[0], {
    state: "held",
    holders: [{ guardedBy: `backend ${pid}`, process: { number: "a".repeat(12) } }],
  });
  t.regex(
    textOf(await releases.ask("LOCK_pay", true)),
    new RegExp(
      String.raw`^A transaction guards LOCK_pay \(backend ${pid}\), .* Fix: revoke the lock without \`--now\``,
    ),
  );
  const question = await releases.ask("LOCK_pay", false);
  t.regex(
    textOf(question),
    new RegExp(String.raw`when the transaction that guards it ends \(backend ${pid}\)\.$`),
  );
  // The package that releases is the built one, so this test does not answer the question.
  await admin.query("UPDATE lockweave.hold SET is_released = true");
  t.like((await look()).locks[0], {
    state: "held",
    holders: [{ guardedBy: `backend ${pid}`, leftMs: -1 }],
  });
  for (const now of [true, false]) {
    t.regex(
      textOf(await releases.ask("LOCK_pay", now)),
      new RegExp(
        String.raw`^The lock of LOCK_pay has ended, but a transaction still guards it \(backend ${pid}\)`,
      ),
    );
  }
  await client.end();
  await until(async () => (await look()).locks.length === 0);
  t.is(textOf(await releases.ask("LOCK_pay", true)), "LOCK_pay is free: there is nothing to release.");
});

function textOf(answer: string | { readonly question: string }): string {
  return typeof answer === "string" ? answer : answer.question;
}

test.serial("a hold whose transaction has ended is not shown as guarded", async (t) => {
  await hold("LOCK_pay", id("a"));
  const { client } = await guard("LOCK_pay", id("a"));
  await client.query("COMMIT");
  await client.end();
  const { locks } = await look();
  t.is(locks[0]?.state, "held");
  t.is(locks[0]?.holders[0]?.guardedBy, undefined);
});

test.serial("the console reads an announcement, and ignores an invalid one", async (t) => {
  await hold("LOCK_pay", id("a"));
  const holder = async (about: string): Promise<object> => {
    await admin.query("DELETE FROM lockweave.process");
    await admin.query("INSERT INTO lockweave.process VALUES ($1, $2, now() + interval '50 s')", [
      "a".repeat(12),
      about,
    ]);
    const { process, site, forMs } = (await look()).locks[0]?.holders[0] ?? {};
    return { process, site, forMs };
  };
  const number = "a".repeat(12);
  const announced = { host: "vm", pid: 7, holds: [{ key: "LOCK_pay", site: "Order.pay", forMs: 5_000 }] };
  t.like(await holder(JSON.stringify(announced)), {
    process: { number, host: "vm", pid: 7 },
    site: "Order.pay",
  });
  for (const about of ["no JSON", "null", '{"host":7}', JSON.stringify({ host: "x".repeat(400_000) })])
    t.deepEqual(
      await holder(about),
      { process: { number }, site: undefined, forMs: undefined },
      about.slice(0, 9),
    );
  await admin.query("UPDATE lockweave.process SET about = $1, expires_at = now()", [
    JSON.stringify(announced),
  ]);
  t.deepEqual((await look()).locks[0]?.holders[0]?.process, { number });
});

test.serial("the console works with a read-only role, and without announcements", async (t) => {
  await hold("LOCK_pay", id("a"));
  await admin.query(
    "INSERT INTO lockweave.process VALUES ($1, '{\"host\":\"vm\"}', now() + interval '50 s')",
    ["a".repeat(12)],
  );
  await admin.query(`CREATE ROLE watcher LOGIN; GRANT USAGE ON SCHEMA lockweave TO watcher;
    GRANT SELECT ON lockweave.hold, lockweave.renewal_group, lockweave.waiter TO watcher;
    ALTER ROLE watcher SET default_transaction_read_only = on`);
  const watching = await openDeployment(targetOf(server.urlOf({ user: "watcher" })));
  t.teardown(() => watching.close());
  const holders = async () => (await new LockScanner(watching).look()).locks.flatMap((lock) => lock.holders);
  t.like(await holders(), [{ process: { number: "a".repeat(12), host: undefined } }]);
  await admin.query("GRANT SELECT ON lockweave.process TO watcher");
  t.like(await holders(), [{ process: { host: "vm" } }]);
});

test.serial("the console shows the most contended of many locks, and counts the others", async (t) => {
  await admin.query(`INSERT INTO lockweave.hold (key, holder, expires_at)
    SELECT 'LOCK_' || n, lpad(n::text, 32, '0'), now() + interval '1 min' FROM generate_series(1, 30000) n`);
  await admin.query(`INSERT INTO lockweave.waiter
    SELECT 'LOCK_30000', n, lpad(n::text, 32, '0'), '', false, now() + interval '1 min' FROM generate_series(1, 500) n`);
  const { locks, keys, leftOut, tookMs } = await look();
  t.is(keys, 30_000);
  t.true(locks.length === 10_000 || locks.length === 10_001, String(locks.length));
  t.is(leftOut, keys - locks.length);
  t.like(locks[0], { key: "LOCK_30000", waiting: 500 });
  t.like(locks[0]?.waiters, [{ calls: 20 }]); // All are tickets of one process.
  t.log(`${Math.round(tookMs)} ms`);
});

/** Errors of the commands, each with what to do. */
const ERRORS: Readonly<Record<string, readonly [url: () => string, message: RegExp, schema?: string]>> = {
  "a URL of Redis": [
    () => "redis://localhost",
    /^Expected `--postgres` to be a postgres:\/\/ URL, got a URL of Redis\. Fix: use `--redis <url>`\.$/,
  ],
  "another text": [() => "localhost/shop", /^Expected `--postgres` to be a postgres:\/\/ URL, such as /],
  "a URL that cannot be read": [
    () => "postgres://app:secret@localhost:port/shop",
    /^Expected `--postgres` to be a valid URL, .* Fix: encode /,
  ],
  "a server that does not run": [
    () => "postgres://app:secret@127.0.0.1:1/shop",
    /^Cannot read postgres:\/\/127\.0\.0\.1:1\/shop: .*ECONNREFUSED.*Fix: check /,
  ],
  "a missing database": [
    () => server.urlOf({ database: "absent" }),
    /the PostgreSQL database does not exist .*Fix: create it, or correct the URL\.$/,
  ],
  "a missing role": [
    () => server.urlOf({ user: "absent", password: "secret" }),
    /PostgreSQL rejected the role .*Fix: correct the user in the URL/,
  ],
  "a missing schema": [
    () => server.urlOf({ password: "postgres" }),
    /the schema nowhere of Lockweave is missing .*Fix: npx lockweave postgres --apply <url> --schema nowhere\.$/,
    "nowhere",
  ],
  "a schema of an older version": [
    () => server.url,
    /the schema old has version 0, and this version of Lockweave needs 1 .*Fix: npx lockweave postgres --apply <url> --schema old\.$/,
    "old",
  ],
  "an invalid schema name": [
    () => server.url,
    /^Expected `--schema` to be the name of a PostgreSQL schema/,
    "a b",
  ],
  "a role without permissions": [
    () => server.urlOf({ user: "stranger" }),
    /the PostgreSQL role lacks a permission in the schema lockweave .*Fix: run the GRANT statements/,
  ],
};

for (const [what, [url, message, schema]] of Object.entries(ERRORS)) {
  test.serial(`the console reports ${what}, what to do, and no password`, async (t) => {
    await admin.query("DROP SCHEMA IF EXISTS old CASCADE; CREATE SCHEMA old");
    await admin.query("CREATE TABLE old.about AS SELECT gen_random_uuid() AS id, 0 AS version");
    await admin.query("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN");
    const error = await t.throwsAsync(openDeployment(targetOf(url(), "LOCK_*", schema)), {
      instanceOf: UsageError,
      message,
    });
    t.notRegex(error.message, /sec%?ret/);
  });
}

inMatrixSerially("the console reports a server that does not answer", async (t) => {
  const silent = createServer();
  t.teardown(() => silent.close());
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  await t.throwsAsync(openDeployment(targetOf(`postgres://app@127.0.0.1:${port}/shop`)), {
    instanceOf: UsageError,
    message: /PostgreSQL did not answer within 5000 ms\. Fix: check that the server runs/,
  });
});

// ---- the commands ---------------------------------------------------------------------------------------

const isWaitedFor = async (key: string): Promise<boolean> =>
  (await admin.query("SELECT FROM lockweave.waiter WHERE key = $1", [key])).rowCount === 1;

outsideMatrixSerially("top shows holders and waiters in PostgreSQL, with what they announced", async (t) => {
  const holder = await programs.program('await obtain(lockKey("pay", 1));');
  const waiter = await programs.program('void withLock(lockKey("pay", 1), { waitTime: "60s" }, never);');
  await until(() => isWaitedFor("LOCK_pay_1"));
  const { stdout, stderr, code } = await programs.lockweave(["top"]);
  t.is(code, 0, stderr);
  t.regex(stdout, /^1 held, 1 waiting, of 1 locks\. 2 commands in \d+ ms, up to 1 keys scanned\.\n/);
  const host = hostname();
  t.regex(stdout, new RegExp(`LOCK_pay_1 +${host}/${holder.pid} +${host}/${waiter.pid}\\n`));
  const json = await programs.lockweave(["top", "--json", "--postgres", server.url]);
  t.like(JSON.parse(json.stdout), { locks: [{ key: "LOCK_pay_1", waiters: [{ host, pid: waiter.pid }] }] });
});

inMatrixSerially("release revokes a lock in PostgreSQL, and frees it only with --now", async (t) => {
  await programs.program('await obtain(lockKey("pay", 1));');
  const lockweave = (...args: readonly string[]) => programs.lockweave([...args, "LOCK_pay_1"]);
  t.regex((await lockweave("inspect")).stdout, /held .*LOCK_pay_1/);
  t.is((await lockweave("release")).code, 3);
  const { rows } = await admin.query<{ holder: string }>("SELECT holder FROM lockweave.hold");
  const { pid, client } = await guard("LOCK_pay_1", rows[0]?.holder ?? "");
  const refused = await lockweave("release", "--now", "--yes");
  t.is(refused.code, 1);
  t.true(
    refused.stdout.startsWith(
      `A transaction guards LOCK_pay_1 (backend ${pid}), so its key becomes free when`,
    ),
  );
  const revoked = await lockweave("release", "--yes");
  t.is(revoked.code, 0);
  t.true(
    revoked.stdout.endsWith(
      ` Its key becomes free when the transaction that guards it ends (backend ${pid}).\n`,
    ),
    revoked.stdout,
  );
  t.regex(
    (await lockweave("inspect")).stdout,
    new RegExp(String.raw`\(revoked, guarded by backend ${pid}\)`),
  );
  await client.end();
  await until(async () => (await look()).locks[0]?.holders[0]?.guardedBy === undefined);
  const freed = await lockweave("release", "--now", "--yes");
  t.is(freed.code, 0);
  t.regex(freed.stdout, /\nFreed: it was held by revoked:.*\n$/);
  t.is((await lockweave("inspect")).stdout, "LOCK_pay_1 is free, and nobody waits for it.\n");
});

outsideMatrixSerially(
  "tail prints the changes of locks in PostgreSQL, even after a restart of the server",
  async (t) => {
    const child = programs.start(["tail"]);
    let [output, errors] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text: string) => void (output += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => void (errors += text));
    await hold("LOCK_one", id("a"));
    await until(() => output.includes("LOCK_one acquired by aaaaaaaaaaaa\n"));
    await admin.query("DELETE FROM lockweave.hold");
    await until(() => output.includes("LOCK_one no longer held by aaaaaaaaaaaa\n"));
    await admin.end();
    await server.halt();
    await until(() => errors.includes("The locks cannot be read: "));
    await server.resume();
    admin = await connect();
    await hold("LOCK_two", id("b"));
    await until(() => output.includes("LOCK_two acquired by bbbbbbbbbbbb\n"));
    t.is(child.exitCode, null);
  },
);

inMatrixSerially("ui shows locks in PostgreSQL, and revokes one", async (t) => {
  await programs.program('await obtain(lockKey("pay", 1));');
  const child = programs.start(["ui"]);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (output += text));
  await until(() => output.includes("Ctrl-C"));
  const [, address = "", token = ""] = /^Open (\S+)\/#token=(\S+)/.exec(output) ?? [];
  const headers = { authorization: `Bearer ${token}` };
  const stateOf = async (): Promise<State> =>
    (await (await fetch(`${address}/state`, { headers })).json()) as State;
  const post = async <Reply>(path: string, body: object): Promise<Reply> =>
    (await (
      await fetch(address + path, { method: "POST", headers, body: JSON.stringify(body) })
    ).json()) as Reply;
  await until(async () => (await stateOf()).locks.length === 1);
  t.like(await stateOf(), {
    servers: [`postgres://127.0.0.1:${server.port}/postgres`],
    locks: [{ key: "LOCK_pay_1", state: "held", holders: [{ process: { host: hostname() } }] }],
  });
  const { confirmation } = await post<Question>("/release", { key: "LOCK_pay_1", now: false });
  t.regex((await post<{ result: string }>("/confirm", { confirmation })).result, /^Revoked: it was held by /);
  t.true((await look()).locks[0]?.holders[0]?.isRevoked);
});
