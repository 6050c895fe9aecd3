import { execFileSync, spawnSync } from "node:child_process";
import { rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { Pool } from "pg";
import { LockError, LockMisconfiguredError, LockUnreachableError } from "../../runtime/base/errors";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import { portOf } from "../stores/postgres/kinds";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startMovingAddress, type MovingAddress } from "../support/moving-address";
import { ownedDirectory, startPostgres, startPrimary, type PostgresServer } from "../support/postgres-server";
import { retire } from "../support/retire";
import { until } from "../support/until";
import { inMatrix, inMatrixSerially, isMatrix } from "../support/suites";

// Each state in which PostgreSQL rejects locks. The caller gets the error and the message for it, and the next call works when the state
// is over.

let server: PostgresServer;
let standby: PostgresServer;
let address: MovingAddress;
let admin: Pool;

/** Creates the schema, and the role of the application. */
const SET_UP = `${migrationSql()}
  CREATE ROLE app LOGIN;
  GRANT USAGE ON SCHEMA lockweave TO app;
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA lockweave TO app;`;

test.before(async () => {
  if (!isMatrix) return;
  server = await startPrimary();
  admin = new Pool({ connectionString: server.url, max: 2 });
  await admin.query(SET_UP);
  standby = await server.startStandby("standby");
  address = await startMovingAddress(server.port);
  await until(async () => (await admin.query("SELECT FROM pg_stat_replication")).rowCount === 1);
});

test.after.always(async () => {
  if (!isMatrix) return;
  await admin.end();
  await address.stop();
  await Promise.all([server.stop(), standby.stop()]);
});

interface State {
  begin(): Promise<unknown>;
  end(): Promise<unknown>;
  readonly error: typeof LockUnreachableError | typeof LockMisconfiguredError;
  /** What the message must say. */
  readonly words: RegExp;
}

const KEY = "LOCK_state";
const TAKE_KEY_LOCK = `SELECT pg_advisory_xact_lock(hashtextextended('${KEY}' COLLATE "C", 'lockweave.hold'::regclass::oid::bigint))`;

/** Changes the role, and ends its connections, which have the settings of before. */
async function alterRole(how: string): Promise<void> {
  await admin.query(`ALTER ROLE app ${how}`);
  await endConnections();
}

async function endConnections(): Promise<void> {
  await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
}

/** Keeps a transaction open. Returns a function that ends it. */
async function keepOpen(statement: string): Promise<() => Promise<void>> {
  const client = await admin.connect();
  await client.query(`BEGIN; ${statement}`);
  return async () => {
    await client.query("ROLLBACK");
    client.release();
  };
}

/** Ends the state that has begun last. */
let undo: () => Promise<unknown> = async () => {};

const STATES: Record<string, State> = {
  "the address of PostgreSQL leads to a read-only standby": {
    async begin() {
      address.moveTo(standby.port);
      address.cut();
    },
    async end() {
      address.moveTo(server.port);
      address.cut();
    },
    error: LockUnreachableError,
    words: /did not grant the lock .*PostgreSQL is a read-only standby .*Fix: use the address of its primary/,
  },
  "PostgreSQL has too many connections": {
    begin: () => alterRole("CONNECTION LIMIT 0"),
    end: () => alterRole("CONNECTION LIMIT -1"),
    error: LockUnreachableError,
    words: /did not grant the lock .*too many connections .*Fix: raise max_connections, or use a pooler/,
  },
  "a statement timeout cancels each command": {
    async begin() {
      await alterRole("SET statement_timeout = 20");
      undo = await keepOpen(TAKE_KEY_LOCK);
    },
    async end() {
      await undo();
      await alterRole("RESET statement_timeout");
    },
    error: LockUnreachableError,
    words: /did not grant the lock .*canceling statement due to statement timeout/,
  },
  "another program holds the advisory lock of the key": {
    begin: async () => void (undo = await keepOpen(TAKE_KEY_LOCK)),
    end: () => undo(),
    error: LockUnreachableError,
    words: /did not grant the lock .*holds the advisory lock of the key .*Fix: find its pid/,
  },
  "another program locks a table": {
    begin: async () => void (undo = await keepOpen("LOCK TABLE lockweave.hold IN ACCESS EXCLUSIVE MODE")),
    end: () => undo(),
    error: LockUnreachableError,
    words:
      /did not grant the lock .*another transaction in PostgreSQL blocks the command .*Fix: find its pid/,
  },
  "the role has lost its permissions": {
    begin: () => admin.query("REVOKE INSERT ON lockweave.hold FROM app"),
    end: () => admin.query("GRANT INSERT ON lockweave.hold TO app"),
    error: LockMisconfiguredError,
    words: /lacks a permission in the schema lockweave .*Fix: run the GRANT statements/,
  },
  "the role may not log in": {
    begin: () => alterRole("NOLOGIN"),
    end: () => alterRole("LOGIN"),
    error: LockMisconfiguredError,
    words: /PostgreSQL rejected the role .*Fix: correct the user in the URL/,
  },
  "the schema is gone": {
    begin: () => admin.query("ALTER SCHEMA lockweave RENAME TO away"),
    end: () => admin.query("ALTER SCHEMA away RENAME TO lockweave"),
    error: LockMisconfiguredError,
    words: /the schema lockweave of Lockweave is missing .*Fix: npx lockweave postgres --apply/,
  },
};

const WAIT = { retryTimes: 2, waitTime: "200ms" } as const;
/** A permanent error comes immediately. A call that waited for its whole budget would outlast its test. */
const PATIENT = { retryTimes: 1, waitTime: "10m" } as const;

for (const [name, state] of Object.entries(STATES)) {
  inMatrixSerially(`a call fails with an explanation while ${name}, and works afterwards`, (t) =>
    failsDuring(t, state),
  );
}

async function failsDuring(
  t: ExecutionContext,
  { begin, end, error: expected, words }: State,
  port = address.port,
): Promise<void> {
  const own = await connected(t, port);
  await begin();
  try {
    const options = expected === LockMisconfiguredError ? PATIENT : WAIT;
    let error: LockError;
    do {
      error = await t.throwsAsync<LockError>(
        own.call(KEY, options, () => t.fail()),
        { instanceOf: LockError },
      );
      // The machine is too busy for the last try, or the connection has just ended.
    } while (
      !words.test(error.message) &&
      /no reply from|no time left|closed the connection|were busy for|failed/.test(error.message)
    );
    t.true(error instanceof expected, error.message);
    t.regex(error.message, words);
  } finally {
    await end();
  }
  t.is(await own.call(KEY, { retryTimes: 600, waitTime: "1s" }, () => "in"), "in");
}

/** Creates a process that has held a lock, so it is connected. */
async function connected(t: ExecutionContext, port: number): Promise<FleetProcess> {
  const store = postgresStore(portOf(`postgres://app@127.0.0.1:${port}/postgres`));
  const own = new FleetProcess({ store, commandTimeout: "500ms", logger: { warn: () => {} } });
  t.teardown(() => retire(own));
  await own.call("LOCK_other", { retryTimes: 600, waitTime: "1s" }, () => {});
  return own;
}

// ---- a server alone -------------------------------------------------------------------------------------

/** Starts a server without a standby, and connects to it as its administrator. */
async function startAlone(
  t: ExecutionContext,
  ...settings: readonly string[]
): Promise<{ readonly alone: PostgresServer; readonly owner: Pool }> {
  const alone = await startPostgres(...settings);
  const owner = new Pool({ connectionString: alone.url, max: 2 });
  owner.on("error", () => {}); // The server restarts.
  t.teardown(async () => {
    await owner.end();
    await alone.stop();
  });
  await owner.query(SET_UP);
  return { alone, owner };
}

const IS_ROOT = process.platform === "linux" && process.getuid?.() === 0;

/** Mounts a small file system, and returns its folder. Only root can, and not in every container. */
async function mountSmall(t: ExecutionContext, megabytes: number): Promise<string | undefined> {
  const disk = await ownedDirectory("lockweave-disk-");
  t.teardown(() => rm(disk, { recursive: true }));
  const options = `size=${megabytes}m,mode=777`;
  if (spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", disk]).status !== 0) return undefined;
  t.teardown(() => execFileSync("umount", ["--lazy", disk]));
  return disk;
}

/** Writes a file that fills a disk of this size. */
async function fill(t: ExecutionContext, filling: string, megabytes: number): Promise<void> {
  await t.throwsAsync(writeFile(filling, Buffer.alloc(megabytes * 2 ** 20 + 1)), { code: "ENOSPC" });
}

(IS_ROOT ? inMatrix : test.skip)(
  "a call fails with an explanation while the disk of PostgreSQL is full, and works afterwards",
  async (t) => {
    const disk = await mountSmall(t, 1);
    if (disk === undefined) {
      t.pass("this container may mount nothing");
      return;
    }
    const { alone, owner } = await startAlone(t);
    const data = join(disk, "data");
    execFileSync("install", ["-d", "-o", "postgres", "-g", "postgres", "-m", "700", data]);
    await owner.query(`CREATE TABLESPACE small LOCATION '${data}'`);
    await owner.query("ALTER TABLE lockweave.hold SET TABLESPACE small");
    const filling = join(disk, "filling");
    await failsDuring(
      t,
      {
        async begin() {
          await owner.query("TRUNCATE lockweave.hold"); // The next hold needs a new page.
          await fill(t, filling, 1);
        },
        end: () => rm(filling),
        error: LockUnreachableError,
        words: /did not grant the lock .*the disk of PostgreSQL is full .*Fix: free space on it/,
      },
      alone.port,
    );
  },
);

/** The log of the server has segments of 16 MB, and keeps two of them. */
const LOG_DISK_MB = 64;
const SMALL_LOG = ["min_wal_size=32MB", "max_wal_size=32MB", "autovacuum=off"];

(IS_ROOT ? inMatrix : test.skip)(
  "a full disk of the write-ahead log stops the server, which grants nothing and keeps held locks until a restart",
  async (t) => {
    const disk = await mountSmall(t, LOG_DISK_MB);
    if (disk === undefined) {
      t.pass("this container may mount nothing");
      return;
    }
    const { alone, owner } = await startAlone(t, ...SMALL_LOG);
    await alone.halt();
    const [log, moved] = [join(alone.dir, "data/pg_wal"), join(disk, "pg_wal")];
    execFileSync("cp", ["-a", log, moved]);
    await rm(log, { recursive: true });
    await symlink(moved, log);
    await alone.resume();

    const [holder, other] = [await connected(t, alone.port), await connected(t, alone.port)];
    const held = await hold(holder);
    const waited = other.call(KEY, { retryTimes: 600, waitTime: "1s" }, held.isInside);
    await until(async () => (await owner.query(QUEUE, [KEY])).rowCount === 1);
    const filling = join(disk, "filling");
    await fill(t, filling, LOG_DISK_MB);
    let error: Error | undefined;
    while (error === undefined) {
      await owner.query("SELECT pg_switch_wal()"); // The next lock may need a new segment.
      const call = other.call("LOCK_other", { retryTimes: 0 }, () => undefined);
      error = await call.catch((thrown: Error) => thrown);
    }
    t.true(error instanceof LockUnreachableError, error.message);
    t.regex(error.message, /the disk of PostgreSQL is full .*No space left on device.*Fix: free space on it/);
    await t.throwsAsync(
      other.call("LOCK_other", WAIT, () => t.fail()),
      {
        instanceOf: LockUnreachableError,
        message:
          /the connection to PostgreSQL failed|PostgreSQL closed the connection|PostgreSQL is starting/,
      },
    );

    await rm(filling);
    await alone.crash();
    t.is(await other.call("LOCK_other", { retryTimes: 600, waitTime: "1s" }, () => "in"), "in");
    t.true(held.isInside());
    t.false(await held.end(), "the lock was not lost");
    t.false(await waited, "the waiter entered after the holder had left");
  },
);

/** The waiters of a key. */
const QUEUE = "SELECT FROM lockweave.waiter WHERE key = $1";

/** Holds the lock {@link KEY} until `end` is called, which returns whether the lock was lost. */
async function hold(
  own: FleetProcess,
): Promise<{ readonly isInside: () => boolean; readonly end: () => Promise<boolean | undefined> }> {
  const [isHeld, mayEnd] = [deferred(), deferred()];
  let isInside = false;
  const held = own.call(KEY, { lockTime: "2m" }, async ({ signal }) => {
    isInside = true;
    isHeld.resolve();
    await mayEnd.promise;
    isInside = false;
    return signal.aborted;
  });
  await isHeld.promise;
  return {
    isInside: () => isInside,
    end() {
      mayEnd.resolve();
      return held;
    },
  };
}

inMatrix(
  "a held lock outlasts an immediate restart of the server, and then its waiter gets it",
  async (t) => {
    const { alone, owner } = await startAlone(t);
    const [holder, waiter] = [await connected(t, alone.port), await connected(t, alone.port)];
    const held = await hold(holder);
    const waited = waiter.call(KEY, { retryTimes: 600, waitTime: "1s" }, held.isInside);
    await until(async () => (await owner.query(QUEUE, [KEY])).rowCount === 1);
    await alone.crash();
    t.false(await held.end(), "the lock was not lost");
    t.false(await waited, "the waiter entered after the holder had left");
  },
);
