import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "pg";
import type * as Lockweave from "../runtime";
import { BEFORE } from "./contestants/lockweave";
import type { Contestant } from "./contestants/contestant";

/** The contestants in the order of the report. All are compared with the hand-written lock. */
export const POSTGRES_CONTESTANTS = ["by hand", "lockweave", "before", "session", "advisory-lock"] as const;
export type PostgresContestant = (typeof POSTGRES_CONTESTANTS)[number];

export function isPostgresContestant(name: string | undefined): name is PostgresContestant {
  return POSTGRES_CONTESTANTS.some((contestant) => contestant === name);
}

/** Each contestant has a database of its own, so that none pays for what another one left behind. */
export function databaseOf(name: PostgresContestant): string {
  return `bench_${name.replaceAll(/\W/g, "_")}`;
}

export function urlOf(port: number, database: string): string {
  return `postgres://postgres@127.0.0.1:${port}/${database}`;
}

/** Creates a client of the lock. */
export function enter(name: PostgresContestant, port: number, lockTimeMs: number): Contestant {
  return ENTER[name](urlOf(port, databaseOf(name)), lockTimeMs);
}

type EnterPostgres = (url: string, lockTimeMs: number) => Contestant;

const ENTER: Record<PostgresContestant, EnterPostgres> = {
  "by hand": byHand,
  lockweave: (url, lockTimeMs) => built(resolve(__dirname, ".."), url, lockTimeMs),
  before: (url, lockTimeMs) => built(process.env[BEFORE] ?? "", url, lockTimeMs),
  session: bySession,
  "advisory-lock": byAdvisoryLock,
};

/** The interval in which a waiter for the hand-written lock asks again. */
const POLL_MS = 10;

export const LEASE_TABLE = `CREATE TABLE lease (
  key text PRIMARY KEY, token uuid NOT NULL, expires_at timestamptz NOT NULL)`;
const ACQUIRE = `INSERT INTO lease (key, token, expires_at)
  VALUES ($1, $2, clock_timestamp() + $3 * interval '1 millisecond')
  ON CONFLICT (key) DO UPDATE SET token = excluded.token, expires_at = excluded.expires_at
    WHERE lease.expires_at <= clock_timestamp()`;
const RENEW = `UPDATE lease SET expires_at = clock_timestamp() + $3 * interval '1 millisecond'
  WHERE key = $1 AND token = $2 AND expires_at > clock_timestamp()`;
const RELEASE = "DELETE FROM lease WHERE key = $1 AND token = $2";

/** The baseline: a hand-written lease row, as a programmer who knows PostgreSQL would write it. Each step is one statement over the pool. */
function byHand(url: string, lockTimeMs: number): Contestant {
  const pool = new Pool({ connectionString: url });

  const acquire = async (key: string): Promise<string> => {
    const token = randomUUID();
    while ((await pool.query(ACQUIRE, [key, token, lockTimeMs])).rowCount !== 1) await pause(POLL_MS);
    return token;
  };

  return {
    async run(key, section) {
      const token = await acquire(key);
      try {
        await section();
      } finally {
        await pool.query(RELEASE, [key, token]);
      }
    },
    async hold(key) {
      const token = await acquire(key);
      const renewal = setInterval(() => void pool.query(RENEW, [key, token, lockTimeMs]), 0.8 * lockTimeMs);
      return {
        release: () => {
          clearInterval(renewal);
          return pool.query(RELEASE, [key, token]);
        },
      };
    },
    close: () => pool.end(),
  };
}

/** Uses a built package through its public functions, as an application does. It connects with the options of the same pool. */
function built(checkout: string, url: string, lockTimeMs: number): Contestant {
  const { configure, withLock, obtain, lockKey, shutdown } = require(
    resolve(checkout, "dist/runtime"),
  ) as typeof Lockweave;
  const pool = new Pool({ connectionString: url });
  configure({
    postgres: pool,
    woven: false,
    defaults: { lockTime: `${lockTimeMs}ms`, retryTimes: 100 },
  });
  return {
    run: (key, section) => withLock(lockKey("bench", key), {}, section),
    hold: (key) => obtain(lockKey("bench", key)),
    async close() {
      await shutdown();
      await pool.end();
    },
  };
}

/** An advisory lock of the session, by hand: a caller keeps a connection of the pool while it waits and while it holds the lock. */
function bySession(url: string): Contestant {
  const pool = new Pool({ connectionString: url });
  return {
    async run(key, section) {
      const client = await pool.connect();
      try {
        await client.query("SELECT pg_advisory_lock(hashtextextended($1, 0))", [key]);
        try {
          await section();
        } finally {
          await client.query("SELECT pg_advisory_unlock(hashtextextended($1, 0))", [key]);
        }
      } finally {
        client.release();
      }
    },
    hold: () => Promise.reject(new Error("a held lock would need a connection of its own")),
    close: () => pool.end(),
  };
}

/** The package `advisory-lock`. It opens a connection for each lock. */
function byAdvisoryLock(url: string): Contestant {
  type AdvisoryLock = (
    url: string,
  ) => (name: string) => { withLock(section: () => Promise<void>): Promise<void> };
  const { default: advisoryLock } = require("advisory-lock") as { readonly default: AdvisoryLock };
  const createMutex = advisoryLock(url);
  return {
    run: (key, section) => createMutex(key).withLock(section),
    hold: () => Promise.reject(new Error("a held lock would need a connection of its own")),
    close: async () => {},
  };
}
