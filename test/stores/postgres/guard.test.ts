import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { Client, Pool } from "pg";
import postgres from "postgres";
import { memoryStore } from "../../../runtime";
import type { HeldLock } from "../../../runtime/lock/held-lock";
import type { LockOptions } from "../../../runtime/lock/settings";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { RunSql, WholeStore } from "../../../runtime/stores/port";
import { guardedAfter } from "../../../runtime/stores/value";
import { deferred } from "../../support/deferred";
import { FleetProcess } from "../../support/fleet";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { retire } from "../../support/retire";
import { until } from "../../support/until";
import { portOf } from "./kinds";

// A transaction that guards its lock can commit only while nobody else has acquired the key.

/** The page whose statements for fencing tokens run in a test. */
const page =
  readFileSync(join(__dirname, "../../../docs/postgres.md"), "utf8").split(
    "\n## Data in another database\n",
  )[1] ?? "";

let server: PostgresServer;
let watcher: Pool;
let asking: WholeStore;
let keys = 0;

test.before(async () => {
  server = await startPostgres("max_prepared_transactions=5", "max_connections=200");
  watcher = new Pool({ connectionString: server.url, max: 2 });
  watcher.on("error", () => {}); // The server stops.
  await watcher.query(migrationSql());
  asking = postgresStore(portOf(server.url));
});

test.after.always(async () => {
  await asking.close();
  await watcher.end();
  await server.stop();
});

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {}); // The server stops.
  await client.connect();
  return client;
}

/** Connects and begins a transaction. */
async function begin(t: ExecutionContext, text = "BEGIN"): Promise<Client> {
  const client = await connect(server.url);
  t.teardown(() => client.end());
  await client.query(text);
  return client;
}

function newProcess(
  t: ExecutionContext,
  store: WholeStore = postgresStore(portOf(server.url)),
): FleetProcess {
  const own = new FleetProcess({ store, logger: { warn: () => {} } });
  t.teardown(() => retire(own));
  return own;
}

function newKey(): string {
  keys += 1;
  return `LOCK_guarded_${keys}`;
}

/** The holder of such a lock does not learn of a revocation before its release, which a watchdog might. */
const UNRENEWED = { watchdog: false, lockTime: "10m" } as const;

/** Holds a lock until `end` is called. */
async function hold(
  process: FleetProcess,
  key: string,
  options: LockOptions = {},
): Promise<{ readonly lock: HeldLock; end(): Promise<void> }> {
  const [isHeld, mayEnd] = [deferred<HeldLock>(), deferred()];
  const held = process.call(key, options, async (lock) => {
    isHeld.resolve(lock);
    await mayEnd.promise;
  });
  held.catch(() => {});
  return {
    lock: await isHeld.promise,
    async end() {
      mayEnd.resolve();
      await held;
    },
  };
}

/** Like a process that is paused for longer than its lock time. */
async function expire(key: string): Promise<void> {
  await watcher.query(
    "UPDATE lockweave.hold SET expires_at = clock_timestamp() - interval '1 min' WHERE key = $1",
    [key],
  );
}

const over =
  (client: Client): RunSql =>
  (sql, values) =>
    client.query(sql, values);

/** Asks the store for the key, and asserts that it is closed. */
async function assertClosed(t: ExecutionContext, key: string, permits?: number): Promise<void> {
  const requestId = randomUUID().replaceAll("-", "");
  const shared = permits === undefined ? {} : { permits };
  const request = { key, requestId, lockTimeMs: 60_000, fencing: false, ...shared };
  t.like(await asking.acquire(request, 60_000), { acquired: false });
}

for (const level of ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]) {
  test.serial(
    `${level}: nobody acquires an expired lock until the transaction that guards it has ended`,
    async (t) => {
      const key = newKey();
      const [holder, other] = [newProcess(t), newProcess(t)];
      const { lock, end } = await hold(holder, key, { watchdog: false });
      const tx = await begin(t, `BEGIN ISOLATION LEVEL ${level}`);
      await lock.guard(over(tx));
      await expire(key);
      await assertClosed(t, key);
      const next = other.call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered");
      await tx.query("COMMIT");
      t.is(await next, "entered");
      await t.throwsAsync(end(), { code: "LOCK_LOST" });
    },
  );

  test.serial(`${level}: a transaction cannot guard a lock that another caller has acquired`, async (t) => {
    const key = newKey();
    const [holder, other] = [newProcess(t), newProcess(t)];
    const { lock, end } = await hold(holder, key, { watchdog: false });
    const tx = await begin(t, `BEGIN ISOLATION LEVEL ${level}`);
    await tx.query("SELECT 1 FROM lockweave.hold"); // A snapshot in which the lock is ours.
    await expire(key);
    await other.call(key, {}, () => {});
    // In a snapshot of before, the server itself refuses with the error 40001.
    await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_LOST", message: /acquired by another caller/ });
    await t.throwsAsync(end(), { code: "LOCK_LOST" });
  });
}

for (const level of ["REPEATABLE READ", "SERIALIZABLE"]) {
  test.serial(`${level}: a transaction that began before the lock was revoked cannot guard it`, async (t) => {
    const key = newKey();
    const store = postgresStore(portOf(server.url));
    const { lock, end } = await hold(newProcess(t, store), key, UNRENEWED);
    const tx = await begin(t, `BEGIN ISOLATION LEVEL ${level}`);
    await tx.query("SELECT 1 FROM lockweave.hold"); // A snapshot in which the lock is not revoked.
    t.true(await store.admin.revoke({ key, requestId: lock.storeValue ?? "" }, 5_000));
    await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_LOST" });
    await tx.query("ROLLBACK");
    await assertClosed(t, key);
    await t.throwsAsync(end(), { code: "LOCK_LOST" });
  });

  test.serial(`${level}: a transaction cannot guard a lock that is newer than its first query`, async (t) => {
    const tx = await begin(t, `BEGIN ISOLATION LEVEL ${level}`);
    await tx.query("SELECT 1 FROM lockweave.hold");
    const { lock, end } = await hold(newProcess(t), newKey());
    await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_LOST" });
    await tx.query("ROLLBACK");
    await tx.query(`BEGIN ISOLATION LEVEL ${level}`);
    await lock.guard(over(tx));
    await tx.query("COMMIT");
    await end();
  });
}

test.serial(
  "a serialization failure of a guard stays one while the lock is held, and the repeated transaction commits",
  async (t) => {
    await watcher.query("CREATE TABLE duty AS SELECT * FROM (VALUES ('a', true), ('b', true)) d(who, is_on)");
    const { lock, end } = await hold(newProcess(t), newKey());
    const [tx, other] = [
      await begin(t, "BEGIN ISOLATION LEVEL SERIALIZABLE"),
      await begin(t, "BEGIN ISOLATION LEVEL SERIALIZABLE"),
    ];
    for (const one of [tx, other]) await one.query("SELECT count(*) FROM duty WHERE is_on");
    await tx.query("UPDATE duty SET is_on = false WHERE who = 'a'");
    await other.query("UPDATE duty SET is_on = false WHERE who = 'b'");
    await other.query("COMMIT");
    await t.throwsAsync(lock.guard(over(tx)), { code: "40001" });
    await tx.query("ROLLBACK");
    await tx.query("BEGIN ISOLATION LEVEL SERIALIZABLE");
    await lock.guard(over(tx));
    await tx.query("COMMIT");
    await end();
  },
);

test.serial(
  "a transaction whose guard found that the lock is lost stores nothing, even if its body catches the error",
  async (t) => {
    const key = newKey();
    const [holder, other] = [newProcess(t), newProcess(t)];
    await watcher.query("CREATE TABLE written (by text)");
    const { lock, end } = await hold(holder, key, { watchdog: false });
    await expire(key);
    await other.call(key, {}, () => {});
    const tx = await begin(t);
    await tx.query("INSERT INTO written VALUES ('a stale holder')");
    const error = await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_LOST" });
    t.notRegex(error.message, /[0-9a-f]{32}/);
    await t.throwsAsync(tx.query("INSERT INTO written VALUES ('a stale holder')"), { code: "25P02" });
    await tx.query("COMMIT"); // Resolves, although the server rolls back.
    t.deepEqual((await watcher.query("SELECT * FROM written")).rows, []);
    await t.throwsAsync(end(), { code: "LOCK_LOST" });
  },
);

test.serial(
  "a call whose guard failed ends with an error, even if its body catches the error and the lock is held",
  async (t) => {
    const tx = await begin(t, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    await tx.query("SELECT 1 FROM lockweave.hold"); // A snapshot in which nobody holds the lock.
    const key = newKey();
    const process = newProcess(t);
    const call = process.call(key, {}, async (lock) => {
      await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_LOST" });
      await tx.query("COMMIT");
    });
    await t.throwsAsync(call, {
      code: "LOCK_LOST",
      message: /its last guard\(\) failed, .* is not held any more/,
    });
    const warned = process.call(key, { onLost: "warn" }, async (lock) => {
      const late = await begin(t, "BEGIN ISOLATION LEVEL REPEATABLE READ");
      await late.query("SELECT 1 FROM lockweave.hold");
      await lock.guard(over(late));
      await late.query("COMMIT");
      return "done";
    });
    t.is(await warned, "done");
  },
);

test.serial(
  "a transaction cannot commit if this process knows that its lock is lost, although the guard is caught",
  async (t) => {
    await watcher.query("CREATE TABLE late (by text)");
    const writes = async (lock: HeldLock, name: string): Promise<void> => {
      const tx = await begin(t);
      await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_LOST" });
      await t.throwsAsync(tx.query("INSERT INTO late VALUES ($1)", [name]), { code: "25P02" });
      await tx.query("COMMIT");
    };
    const released = newProcess(t).call(newKey(), {}, async (lock) => {
      await lock.release();
      await writes(lock, "after the release");
    });
    await released;
    const locks = newProcess(t).locks([newKey(), newKey()]);
    while (!(await locks.acquire())) t.true(await locks.retryCheck());
    await locks.release();
    await writes(locks, "after the release of several keys");
    const key = newKey();
    const limited = newProcess(t).call(
      key,
      { mode: "read", lockTime: "1s", holdAtMost: "1s", onLost: "warn" },
      async (lock) => {
        await until(() => lock.remaining() === 0);
        await writes(lock, "after holdAtMost");
      },
    );
    await limited;
    t.deepEqual((await watcher.query("SELECT * FROM late")).rows, []);
  },
);

test.serial("with autoUnlock=onError, a lock whose guard failed is released", async (t) => {
  const tx = await begin(t, "BEGIN ISOLATION LEVEL REPEATABLE READ");
  await tx.query("SELECT 1 FROM lockweave.hold"); // A snapshot in which nobody holds the lock.
  const key = newKey();
  const call = newProcess(t).call(key, { autoUnlock: "onError", lockTime: "1h" }, async (lock) => {
    await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_LOST" });
  });
  await t.throwsAsync(call, { code: "LOCK_LOST", message: /its last guard\(\) failed/ });
  t.is(await newProcess(t).call(key, {}, () => "entered"), "entered");
});

test.serial(
  "a call whose guard failed in any way ends with an error, unless a guard of the same hold succeeds later",
  async (t) => {
    const process = newProcess(t);
    const refusing = (): Promise<never> => Promise.reject(new Error("the connection broke"));
    const failed = process.call(newKey(), {}, async (lock) => {
      await t.throwsAsync(lock.guard(refusing), { message: "the connection broke" });
    });
    await t.throwsAsync(failed, {
      code: "LOCK_LOST",
      message: /its last guard\(\) failed.*: the connection broke$/,
    });
    const key = newKey();
    const repeated = process.call(key, { reentrant: true }, async (outer) => {
      await t.throwsAsync(outer.guard(refusing), { message: "the connection broke" });
      await process.call(key, { reentrant: true }, async (inner) => {
        const tx = await begin(t);
        await inner.guard(over(tx));
        await tx.query("COMMIT");
      });
      return "done";
    });
    t.is(await repeated, "done");
  },
);

for (const [library, hide] of [
  [
    "in `errno`",
    (error: Error) => Object.assign(new Error("failed"), { errno: "LW001" }, { cause: undefined, e: error }),
  ],
  ["nowhere", (error: Error) => new Error(`query failed: ${error.message}`)],
  [
    "in the cause of a cause",
    (error: Error) => new Error("failed", { cause: new Error("failed", { cause: error }) }),
  ],
] as const) {
  test.serial(
    `guard() recognizes that the lock is lost if the client library has the code of the server ${library}`,
    async (t) => {
      const key = newKey();
      const [holder, other] = [newProcess(t), newProcess(t)];
      const { lock, end } = await hold(holder, key, { watchdog: false });
      await expire(key);
      await other.call(key, {}, () => {});
      const tx = await begin(t);
      const run: RunSql = (sql) => tx.query(sql).catch((error: Error) => Promise.reject(hide(error)));
      await t.throwsAsync(lock.guard(run), { code: "LOCK_LOST" });
      await t.throwsAsync(end(), { code: "LOCK_LOST" });
    },
  );
}

test.serial(
  "renewals, extensions, and the release do not wait for the transaction that guards the lock",
  async (t) => {
    const key = newKey();
    const holder = newProcess(t);
    const { lock, end } = await hold(holder, key);
    const tx = await begin(t);
    await lock.guard(over(tx));
    await lock.extend("1m");
    t.true(lock.remaining() > 50_000);
    await end();
    await assertClosed(t, key);
    await tx.query("ROLLBACK");
    t.is(await holder.call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
  },
);

test.serial("a guarded lock is not handed off inside the process while its transaction runs", async (t) => {
  const key = newKey();
  const holder = newProcess(t);
  const { lock, end } = await hold(holder, key);
  const entered: string[] = [];
  const next = holder.call(key, { waitTime: "1s", retryTimes: 20 }, () => void entered.push("next"));
  const tx = await begin(t);
  await lock.guard(over(tx));
  await end();
  await assertClosed(t, key);
  t.deepEqual(entered, []);
  await tx.query("COMMIT");
  await next;
  t.deepEqual(entered, ["next"]);
});

test.serial("a lock is not handed off even if its guard failed", async (t) => {
  const key = newKey();
  const holder = newProcess(t);
  const { lock, end } = await hold(holder, key);
  const next = hold(holder, key);
  await t.throwsAsync(
    lock.guard(() => Promise.reject(new Error("the connection broke"))),
    {
      message: "the connection broke",
    },
  );
  const { storeValue } = lock;
  await t.throwsAsync(end(), { code: "LOCK_LOST" });
  const second = await next;
  t.not(second.lock.storeValue, storeValue);
  await second.end();
});

test.serial(
  "a revoked lock cannot be guarded, and a guarded lock that is revoked stays closed until its transaction ends",
  async (t) => {
    const key = newKey();
    const store = postgresStore(portOf(server.url));
    const holder = newProcess(t, store);
    const { lock, end } = await hold(holder, key, UNRENEWED);
    const first = await begin(t);
    await lock.guard(over(first));
    const requestId = lock.storeValue ?? "";
    t.true(await store.admin.revoke({ key, requestId }, 5_000));
    const second = await begin(t);
    await t.throwsAsync(lock.guard(over(second)), {
      code: "LOCK_LOST",
      message: /roll the transaction back/,
    });
    await second.query("ROLLBACK");
    await assertClosed(t, key);
    await first.query("COMMIT");
    await t.throwsAsync(end(), { code: "LOCK_LOST" });
  },
);

for (const level of ["REPEATABLE READ", "SERIALIZABLE"]) {
  test.serial(
    `${level}: while a transaction guards a lock, one that began before its revocation can also guard it, and keeps others out`,
    async (t) => {
      const key = newKey();
      const store = postgresStore(portOf(server.url));
      const { lock, end } = await hold(newProcess(t, store), key, UNRENEWED);
      const requestId = lock.storeValue ?? "";
      const second = await begin(t, `BEGIN ISOLATION LEVEL ${level}`);
      await second.query("SELECT 1 FROM lockweave.hold"); // A snapshot in which the lock is not revoked.
      const first = await begin(t);
      await lock.guard(over(first));
      t.true(await store.admin.revoke({ key, requestId }, 5_000));
      // The revocation could not replace the row, so the server shows the second transaction the old one.
      await lock.guard(over(second));
      await first.query("COMMIT");
      await end();
      await expire(key);
      await assertClosed(t, key);
      await second.query("COMMIT");
      t.is(await newProcess(t).call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
    },
  );
}

test.serial("inspect() says that a transaction guards a lock that its holder has released", async (t) => {
  const key = newKey();
  const store = postgresStore(portOf(server.url));
  const { lock, end } = await hold(newProcess(t, store), key);
  const requestId = lock.storeValue ?? "";
  const tx = await begin(t);
  await lock.guard(over(tx));
  await end();
  const { holds } = await store.admin.inspect(key, 60_000);
  t.deepEqual(
    holds.map(({ value }) => value),
    [guardedAfter(requestId)],
  );
  const waiting = newProcess(t).call(key, { waitTime: "2s", retryTimes: 1 }, () => {});
  await t.throwsAsync(waiting, {
    code: "LOCK_WAIT_TIME_OUT",
    message:
      /is guarded by an open transaction of its last holder .* Fix: find the transaction with `npx lockweave inspect`/,
  });
  await tx.query("COMMIT");
});

test.serial(
  "the holder of an expired lock learns that a transaction guards it, and not that another caller holds it",
  async (t) => {
    const key = newKey();
    const { lock, end } = await hold(newProcess(t), key, { watchdog: false });
    const tx = await begin(t);
    await lock.guard(over(tx));
    await expire(key);
    await t.throwsAsync(end(), {
      code: "LOCK_LOST",
      message: /its lock time is over, and its key stays closed until the transaction that guards it ends/,
    });
    await tx.query("COMMIT");
  },
);

test.serial("a guard covers all keys of a lock", async (t) => {
  const both = [newKey(), newKey()];
  const locks = newProcess(t).locks(both, { watchdog: false });
  // The first command opens a connection, which may take longer than a command may on a busy machine.
  while (!(await locks.acquire())) t.true(await locks.retryCheck());
  const tx = await begin(t);
  await locks.guard(over(tx));
  for (const key of both) await expire(key);
  for (const key of both) {
    await assertClosed(t, key);
  }
  await tx.query("COMMIT");
  await t.throwsAsync(locks.release(), { code: "LOCK_LOST" });
});

for (const [how, hide] of [
  ["over pg", (error: Error) => error],
  ["if the library hides the message", () => Object.assign(new Error("failed"), { code: "LW001" })],
] as const) {
  test.serial(`a failed guard of several keys names those that are gone, and no other, ${how}`, async (t) => {
    const base = newKey();
    const all = ["a", "b", "c", "d"].map((end) => `${base}_${end}`);
    const lost = [`${base}_b`, `${base}_d`];
    const locks = newProcess(t).locks(all, { watchdog: false });
    while (!(await locks.acquire())) t.true(await locks.retryCheck());
    for (const key of lost) {
      await expire(key);
      await newProcess(t).call(key, {}, () => {});
    }
    const tx = await begin(t);
    const run: RunSql = (sql) => tx.query(sql).catch((error: Error) => Promise.reject(hide(error)));
    const why = `${lost.join(" ")} are not held any more: they were revoked, or acquired by another caller. Fix: roll the transaction back`;
    await t.throwsAsync(locks.guard(run), { code: "LOCK_LOST", message: why });
    await t.throwsAsync(locks.release(), {
      code: "LOCK_LOST",
      message: `${all.join(" ")}: its last guard() failed, so its transaction may have stored nothing: ${why}`,
    });
  });
}

// ---- a guard that the body does not await ---------------------------------------------------------------

test.serial(
  "a call whose body ends before its guard is sent ends with an error, and the transaction cannot commit",
  async (t) => {
    const tx = await begin(t);
    const maySend = deferred();
    let guarding = Promise.resolve();
    const call = newProcess(t).call(newKey(), {}, (lock) => {
      guarding = lock.guard((sql) => maySend.promise.then(() => tx.query(sql)));
    });
    await t.throwsAsync(call, {
      code: "LOCK_LOST",
      message: /its body ended before guard\(\) did, .* Fix: await guard\(\)/,
    });
    maySend.resolve();
    await t.throwsAsync(guarding, { code: "LOCK_LOST" });
    await t.throwsAsync(tx.query("SELECT 1"), { code: "25P02" });
  },
);

test.serial(
  "a call whose body ends while its guard runs ends with an error, and the key stays closed until the transaction ends",
  async (t) => {
    const key = newKey();
    const process = newProcess(t);
    const tx = await begin(t);
    const [hasRun, mayReply] = [deferred(), deferred()];
    let guarding = Promise.resolve();
    const call = process.call(key, {}, async (lock) => {
      guarding = lock.guard(async (sql) => {
        const result = await tx.query(sql);
        hasRun.resolve();
        await mayReply.promise;
        return result;
      });
      await hasRun.promise;
    });
    const next = process.call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered");
    await t.throwsAsync(call, { code: "LOCK_LOST", message: /its body ended before guard\(\) did/ });
    await assertClosed(t, key);
    mayReply.resolve();
    await guarding;
    await tx.query("COMMIT");
    t.is(await next, "entered");
  },
);

test.serial("a reader that guards its lock excludes only writers", async (t) => {
  const key = newKey();
  const [reader, other] = [newProcess(t), newProcess(t)];
  const { lock, end } = await hold(reader, key, { mode: "read" });
  const tx = await begin(t);
  await lock.guard(over(tx));
  await end();
  t.is(await reader.call(key, { mode: "read" }, () => "here"), "here");
  t.is(await other.call(key, { mode: "read" }, () => "elsewhere"), "elsewhere");
  await assertClosed(t, key);
  await tx.query("COMMIT");
  t.is(await other.call(key, { mode: "write", waitTime: "1s", retryTimes: 20 }, () => "wrote"), "wrote");
});

test.serial("a guarded permit stays in use until its transaction ends, here and elsewhere", async (t) => {
  const key = newKey();
  const [holder, other] = [newProcess(t), newProcess(t)];
  const options: LockOptions = { permits: 2 };
  const { lock, end } = await hold(holder, key, options);
  const second = await hold(other, key, options);
  const tx = await begin(t);
  await lock.guard(over(tx));
  await end();
  await assertClosed(t, key, 2);
  const here = holder.call(key, { ...options, waitTime: "2s", retryTimes: 1 }, () => {});
  await t.throwsAsync(here, { code: "LOCK_WAIT_TIME_OUT" });
  await tx.query("COMMIT");
  t.is(await holder.call(key, { ...options, waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
  await second.end();
});

test.serial(
  "a guarded permit stays in use while another caller of its process uses the other permit",
  async (t) => {
    const key = newKey();
    const process = newProcess(t);
    const options: LockOptions = { permits: 2 };
    const [first, second] = await Promise.all([hold(process, key, options), hold(process, key, options)]);
    const tx = await begin(t);
    await first.lock.guard(over(tx));
    await first.end();
    await second.lock.extend("1m"); // A renewal must not free the permit either.
    await assertClosed(t, key, 2);
    await tx.query("COMMIT");
    await second.end();
  },
);

test.serial("a rollback to an earlier savepoint undoes the guard", async (t) => {
  const key = newKey();
  const { lock, end } = await hold(newProcess(t), key, { watchdog: false });
  const tx = await begin(t);
  await tx.query("SAVEPOINT before");
  await lock.guard(over(tx));
  await tx.query("ROLLBACK TO SAVEPOINT before");
  await expire(key);
  t.is(await newProcess(t).call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
  await tx.query("ROLLBACK");
  await t.throwsAsync(end(), { code: "LOCK_LOST" });
});

test.serial(
  "a rollback to a savepoint that came after the guard keeps it, even if the lock was guarded again inside",
  async (t) => {
    const key = newKey();
    const { lock, end } = await hold(newProcess(t), key, { watchdog: false });
    const tx = await begin(t);
    await lock.guard(over(tx));
    await tx.query("SAVEPOINT after");
    await lock.guard(over(tx));
    await tx.query("ROLLBACK TO SAVEPOINT after");
    await expire(key);
    await assertClosed(t, key);
    await tx.query("COMMIT");
    await t.throwsAsync(end(), { code: "LOCK_LOST" });
  },
);

test.serial("a guard inside a reentrant lock outlasts both bodies", async (t) => {
  const key = newKey();
  const process = newProcess(t);
  const tx = await begin(t);
  await process.call(key, { reentrant: true }, async () => {
    await process.call(key, { reentrant: true }, (inner) => inner.guard(over(tx)));
  });
  await assertClosed(t, key);
  await tx.query("COMMIT");
  t.is(await process.call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
});

test.serial("a prepared transaction keeps the key closed until it ends", async (t) => {
  const key = newKey();
  const { lock, end } = await hold(newProcess(t), key);
  const tx = await begin(t);
  await lock.guard(over(tx));
  await tx.query("PREPARE TRANSACTION 'guarded'");
  await end();
  await assertClosed(t, key);
  await watcher.query("COMMIT PREPARED 'guarded'");
  t.is(await newProcess(t).call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
});

test.serial(
  "the server ends a forgotten transaction after idle_in_transaction_session_timeout, and then its guard",
  async (t) => {
    const key = newKey();
    const { lock, end } = await hold(newProcess(t), key);
    const tx = await begin(t);
    await lock.guard(over(tx));
    await end();
    await tx.query("SET LOCAL idle_in_transaction_session_timeout = '100ms'");
    t.is(await newProcess(t).call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
  },
);

// ---- fencing tokens -------------------------------------------------------------------------------------

test.serial(
  "once a holder has written its token to a row in another database, no earlier holder can write the row",
  async (t) => {
    const key = newKey();
    await watcher.query("CREATE DATABASE accounts");
    const accounts = await connect(server.urlOf({ database: "accounts" }));
    t.teardown(() => accounts.end());
    await accounts.query("CREATE TABLE account (id text PRIMARY KEY, balance integer NOT NULL)");
    await accounts.query("INSERT INTO account VALUES ('a', 10)");
    const [addFence = "", ...statements] = page.match(/(?:ALTER TABLE|UPDATE) account [^;"`]*/g) ?? [];
    await accounts.query(addFence);
    const [claim = "", write = "", both = ""] = statements;
    t.regex(both, /balance.*fence.*fence <=/);
    /** Returns the number of rows that the statement changed. */
    const change = async (statement: string, ...values: readonly unknown[]): Promise<number | null> =>
      (await accounts.query(statement, [...values])).rowCount;

    const paused = await hold(newProcess(t), key, { fencing: true, watchdog: false });
    const early = paused.lock.fencingToken;
    t.is(await change(claim, early, "a"), 1);
    await expire(key);
    await newProcess(t).call(key, { fencing: true }, async ({ fencingToken: late }) => {
      t.is(await change(claim, late, "a"), 1);
      t.is(await change(write, early, "a", 0), 0);
      t.is(await change(both, early, "a", 5), 0);
      t.is(await change(write, late, "a", 9), 1);
      t.is(await change(both, late, "a", 1), 1);
    });
    t.deepEqual((await accounts.query("SELECT balance FROM account")).rows, [{ balance: 8 }]);
    await t.throwsAsync(paused.end(), { code: "LOCK_LOST" });
  },
);

// ---- mistakes -------------------------------------------------------------------------------------------

test.serial("guard() outside of a transaction is an error, even over a pool", async (t) => {
  const { lock, end } = await hold(newProcess(t), newKey());
  const pool = new Pool({ connectionString: server.url });
  t.teardown(() => pool.end());
  const expected = {
    code: "LOCK_MISCONFIGURED",
    message: /did not run in one transaction.*Fix: begin a transaction/,
  };
  await t.throwsAsync(
    lock.guard((sql, values) => pool.query(sql, values)),
    expected,
  );
  const client = await connect(server.url);
  t.teardown(() => client.end());
  await t.throwsAsync(lock.guard(over(client)), expected);
  await t.throwsAsync(end(), { code: "LOCK_LOST" });
});

test.serial("guard() in another database is an error, whether or not it has the schema", async (t) => {
  const { lock, end } = await hold(newProcess(t), newKey());
  await watcher.query("CREATE DATABASE other");
  const other = await connect(server.urlOf({ database: "other" }));
  t.teardown(() => other.end());
  const expected = { code: "LOCK_MISCONFIGURED", message: /another database than the locks/ };
  await other.query("BEGIN");
  await t.throwsAsync(lock.guard(over(other)), expected);
  await other.query("ROLLBACK");
  await other.query(migrationSql());
  await other.query("BEGIN");
  await t.throwsAsync(lock.guard(over(other)), expected);
  await other.query("ROLLBACK");
  await t.throwsAsync(end(), { code: "LOCK_LOST" });
});

test.serial("guard() in a read-only transaction is an error", async (t) => {
  const { lock, end } = await hold(newProcess(t), newKey());
  const tx = await begin(t, "BEGIN READ ONLY");
  await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_MISCONFIGURED", message: /is read-only/ });
  await t.throwsAsync(end(), { code: "LOCK_LOST" });
});

test.serial("guard() with a function that returns nothing is an error", async (t) => {
  const { lock, end } = await hold(newProcess(t), newKey());
  const tx = await begin(t);
  const run = async (sql: string): Promise<void> => void (await tx.query(sql));
  await t.throwsAsync(lock.guard(run), {
    code: "LOCK_MISCONFIGURED",
    message: /Fix: return what the query returns/,
  });
  await t.throwsAsync(end(), { code: "LOCK_LOST" });
});

test.serial("guard() of a lock that is not in PostgreSQL is an error", async (t) => {
  const { lock, end } = await hold(newProcess(t, memoryStore()), newKey());
  await t.throwsAsync(
    lock.guard(() => Promise.resolve()),
    {
      code: "LOCK_MISCONFIGURED",
      message: /needs a lock in PostgreSQL/,
    },
  );
  await t.throwsAsync(end(), { code: "LOCK_LOST" });
});

test.serial("guard() after the release is an error", async (t) => {
  const { lock, end } = await hold(newProcess(t), newKey());
  await end();
  const tx = await begin(t);
  await t.throwsAsync(lock.guard(over(tx)), { code: "LOCK_LOST" });
});

// ---- client libraries -----------------------------------------------------------------------------------

test.serial("guard() works in a transaction of postgres.js", async (t) => {
  const key = newKey();
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  t.teardown(() => sql.end());
  const { lock, end } = await hold(newProcess(t), key);
  await sql.begin(async (tx) => {
    await lock.guard((text) => tx.unsafe(text));
    await end();
    await assertClosed(t, key);
  });
  await until(
    async () => (await watcher.query("SELECT 1 FROM pg_locks WHERE mode = 'RowShareLock'")).rowCount === 0,
  );
  t.is(await newProcess(t).call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
});
