import { createRequire } from "node:module";
import { join } from "node:path";
import type { ExecutionContext } from "ava";
import test from "ava";
import { Pool } from "pg";
import { migrationSql } from "../../../runtime/stores/postgres/migration";
import { postgresStore } from "../../../runtime/stores/postgres/postgres-store";
import type { RunSql } from "../../../runtime/stores/port";
import { installed } from "../../hosts/installed";
import { FleetProcess } from "../../support/fleet";
import { startPostgres, type PostgresServer } from "../../support/postgres-server";
import { retire } from "../../support/retire";
import { inMatrix, isMatrix } from "../../support/suites";
import { until } from "../../support/until";
import { portOf } from "./kinds";
import { openPrisma } from "./prisma";

// The guard in a transaction of each library, as its users write it. Only the line with `guard` is ours.

let server: PostgresServer;

test.before(async () => {
  if (!isMatrix) return;
  server = await startPostgres();
  const pool = new Pool({ connectionString: server.url });
  await pool.query(migrationSql());
  await pool.query("CREATE TABLE account (id text PRIMARY KEY, balance integer NOT NULL)");
  await pool.end();
});

test.after.always(() => server?.stop());

interface Guarding {
  guard(run: RunSql): Promise<void>;
}

/** Withdraws 1 in a guarded transaction. */
type Withdraw = (lock: Guarding, id: string) => Promise<unknown>;

/** A body that guards its lock only after it has lost it. */
type LateGuard = (
  lock: Guarding,
  lose: () => Promise<void>,
  withdrawGuardedBy: (guarding: Guarding) => Promise<unknown>,
) => Promise<unknown>;

const LATE_GUARDS: Record<string, LateGuard> = {
  async plainly(lock, lose, withdraw) {
    await lose();
    await withdraw(lock);
  },
  /** The server rejects the guard with the error 40001. */
  "with an earlier snapshot": (lock, lose, withdraw) =>
    withdraw({
      async guard(run) {
        await run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", []);
        await run("SELECT 1 AS held FROM lockweave.hold", []);
        await lose();
        await lock.guard(run);
      },
    }),
  /** In several libraries, the commit of a failed transaction resolves. */
  async "and catches every error"(lock, lose, withdraw) {
    await lose();
    await withdraw({ guard: (run) => lock.guard(run).catch(() => {}) }).catch(() => {});
  },
};

/** Loads a package that is installed only for this test. */
type Load = (name: string) => unknown;

interface Library {
  readonly withdraw: Withdraw;
  close(): unknown;
}

const SQL = (id: string): string => `UPDATE account SET balance = balance - 1 WHERE id = '${id}'`;

const LIBRARIES: Record<string, (load: Load, url: string) => Library | Promise<Library>> = {
  pg(load, url) {
    const { Pool: PoolClass } = load("pg") as typeof import("pg");
    const pool = new PoolClass({ connectionString: url });
    return {
      async withdraw(lock, id) {
        const tx = await pool.connect();
        try {
          await tx.query("BEGIN");
          await lock.guard((sql) => tx.query(sql));
          await tx.query(SQL(id));
          await tx.query("COMMIT");
        } catch (error) {
          await tx.query("ROLLBACK");
          throw error;
        } finally {
          tx.release();
        }
      },
      close: () => pool.end(),
    };
  },
  "postgres.js"(load, url) {
    const sql = (load("postgres") as typeof import("postgres"))(url);
    return {
      withdraw: (lock, id) =>
        sql.begin(async (tx) => {
          await lock.guard((text) => tx.unsafe(text));
          await tx.unsafe(SQL(id));
        }),
      close: () => sql.end(),
    };
  },
  "Drizzle over pg"(load, url) {
    const { drizzle } = load("drizzle-orm/node-postgres") as { drizzle(url: string): DrizzleDatabase };
    return drizzleOver(load, drizzle(url));
  },
  "Drizzle over postgres.js"(load, url) {
    const { drizzle } = load("drizzle-orm/postgres-js") as { drizzle(url: string): DrizzleDatabase };
    return drizzleOver(load, drizzle(url));
  },
  async TypeORM(load, url) {
    const { DataSource } = load("typeorm") as { DataSource: new (options: object) => TypeOrmSource };
    const source = new DataSource({ type: "postgres", url });
    await source.initialize();
    return {
      withdraw: (lock, id) =>
        source.transaction(async (manager) => {
          await lock.guard((sql) => manager.query(sql));
          await manager.query(SQL(id));
        }),
      close: () => source.destroy(),
    };
  },
  Kysely(load, url) {
    const { Kysely, PostgresDialect, CompiledQuery } = load("kysely") as KyselyModule;
    const { Pool: PoolClass } = load("pg") as typeof import("pg");
    const db = new Kysely({
      dialect: new PostgresDialect({ pool: new PoolClass({ connectionString: url }) }),
    });
    return {
      withdraw: (lock, id) =>
        db.transaction().execute(async (trx) => {
          await lock.guard((sql) => trx.executeQuery(CompiledQuery.raw(sql)));
          await trx.executeQuery(CompiledQuery.raw(SQL(id)));
        }),
      close: () => db.destroy(),
    };
  },
  Knex(load, url) {
    const knex = (load("knex") as (options: object) => KnexClient)({ client: "pg", connection: url });
    return {
      withdraw: (lock, id) =>
        knex.transaction(async (trx) => {
          await lock.guard((sql) => trx.raw(sql));
          await trx.raw(SQL(id));
        }),
      close: () => knex.destroy(),
    };
  },
  Sequelize(load, url) {
    const { Sequelize } = load("sequelize") as {
      Sequelize: new (url: string, options: object) => SequelizeClient;
    };
    const sequelize = new Sequelize(url, { logging: false });
    return {
      withdraw: (lock, id) =>
        sequelize.transaction(async (transaction) => {
          await lock.guard((sql) => sequelize.query(sql, { transaction }));
          await sequelize.query(SQL(id), { transaction });
        }),
      close: () => sequelize.close(),
    };
  },
  async Prisma(_load, url) {
    const { prisma, close } = await openPrisma(url);
    return {
      withdraw: (lock, id) =>
        prisma.$transaction(async (tx) => {
          await lock.guard((sql) => tx.$queryRawUnsafe(sql));
          await tx.$executeRawUnsafe(SQL(id));
        }),
      close,
    };
  },
};

interface DrizzleDatabase {
  transaction(use: (tx: { execute(query: unknown): PromiseLike<unknown> }) => Promise<void>): Promise<void>;
  readonly $client: { end(): unknown };
}

function drizzleOver(load: Load, db: DrizzleDatabase): Library {
  const { sql } = load("drizzle-orm") as { sql: { raw(text: string): unknown } };
  return {
    withdraw: (lock, id) =>
      db.transaction(async (tx) => {
        await lock.guard((text) => tx.execute(sql.raw(text)));
        await tx.execute(sql.raw(SQL(id)));
      }),
    close: () => db.$client.end(),
  };
}

interface TypeOrmSource {
  initialize(): Promise<unknown>;
  transaction(use: (manager: { query(text: string): Promise<unknown> }) => Promise<void>): Promise<void>;
  destroy(): Promise<void>;
}

interface KyselyModule {
  readonly Kysely: new (options: object) => {
    transaction(): {
      execute(use: (trx: { executeQuery(query: unknown): Promise<unknown> }) => Promise<void>): Promise<void>;
    };
    destroy(): Promise<void>;
  };
  readonly PostgresDialect: new (options: object) => object;
  readonly CompiledQuery: { raw(text: string): unknown };
}

interface KnexClient {
  transaction(use: (trx: { raw(text: string): PromiseLike<unknown> }) => Promise<void>): Promise<void>;
  destroy(): Promise<void>;
}

interface SequelizeClient {
  transaction(use: (transaction: unknown) => Promise<void>): Promise<void>;
  query(text: string, options: object): Promise<unknown>;
  close(): Promise<void>;
}

async function loader(): Promise<Load> {
  const load = createRequire(join(await installed("postgres-libraries"), "x.js"));
  return (name) => load(name) as unknown;
}

async function balanceOf(id: string): Promise<number> {
  const pool = new Pool({ connectionString: server.url });
  const { rows } = await pool.query<{ balance: number }>("SELECT balance FROM account WHERE id = $1", [id]);
  await pool.end();
  return rows[0]?.balance ?? NaN;
}

async function prepare(
  t: ExecutionContext,
  id: string,
  open: (load: Load, url: string) => Library | Promise<Library>,
) {
  const pool = new Pool({ connectionString: server.url });
  await pool.query("INSERT INTO account VALUES ($1, 10)", [id]);
  const { withdraw, close } = await open(await loader(), server.url);
  const store = postgresStore(portOf(server.url));
  const process = new FleetProcess({ store, logger: { warn: () => {} } });
  t.teardown(async () => {
    await close();
    await pool.end();
    await retire(process);
  });
  return { withdraw, process, store, pool };
}

for (const [name, open] of Object.entries(LIBRARIES)) {
  inMatrix(
    `${name}: a guarded transaction commits while its caller holds the lock, but not after another caller has acquired it`,
    async (t) => {
      t.timeout(300_000);
      const id = name.replaceAll(/\W/g, "");
      const { withdraw, process, store, pool } = await prepare(t, id, open);
      await process.call(`LOCK_account_${id}`, {}, (lock) => withdraw(lock, id));
      t.is(await balanceOf(id), 9);

      for (const [how, guardLate] of Object.entries(LATE_GUARDS)) {
        const key = `LOCK_account_${id}_${how}`;
        const lose = async (): Promise<void> => {
          await pool.query("UPDATE lockweave.hold SET expires_at = clock_timestamp() WHERE key = $1", [key]);
          const other = { key, requestId: "f".repeat(32), lockTimeMs: 60_000, fencing: false };
          t.like(await store.acquire(other, 60_000), { acquired: true });
        };
        const paused = process.call(key, { watchdog: false }, (lock) =>
          guardLate(lock, lose, (guarding) => withdraw(guarding, id)),
        );
        await t.throwsAsync(paused, { code: "LOCK_LOST" }, how);
        t.is(await balanceOf(id), 9, how);
      }
    },
  );
}

inMatrix(
  "Prisma: a transaction that exceeds its timeout keeps its guard while a statement runs, and statement_timeout ends it",
  async (t) => {
    t.timeout(300_000);
    const { prisma, close } = await openPrisma(server.url);
    const store = postgresStore(portOf(server.url));
    const process = new FleetProcess({ store, logger: { warn: () => {} } });
    const pool = new Pool({ connectionString: server.url });
    t.teardown(async () => {
      await close();
      await pool.end();
      await retire(process);
    });
    const key = "LOCK_slow";
    const lock = process.lock(key);
    t.true(await lock.acquire());
    let isSettled = false;
    const transaction = prisma.$transaction(
      async (tx) => {
        await lock.guard((sql) => tx.$queryRawUnsafe(sql));
        await lock.release();
        await tx.$executeRawUnsafe("SET LOCAL statement_timeout = '4s'");
        await tx.$queryRawUnsafe("SELECT 1 AS slept FROM pg_sleep(60)");
      },
      { timeout: 1_000 },
    );
    const settled = transaction.catch(() => {}).then(() => (isSettled = true));
    const isOverdue = `SELECT 1 FROM pg_stat_activity
      WHERE query LIKE '%pg_sleep(60)' AND state = 'active' AND clock_timestamp() - xact_start > interval '2 s'`;
    await until(async () => (await pool.query(isOverdue)).rowCount === 1);
    const other = { key, requestId: "f".repeat(32), lockTimeMs: 60_000, fencing: false };
    t.like(await store.acquire(other, 60_000), { acquired: false });
    t.false(isSettled);
    await settled;
    await t.throwsAsync(transaction);
    t.is(await process.call(key, { waitTime: "1s", retryTimes: 20 }, () => "entered"), "entered");
  },
);
