import { execFileSync } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { Pool } from "pg";
import type { WholeStore } from "../../runtime/stores/port";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import { redisStore } from "../../runtime/stores/redis/redis";
import { portOf } from "../stores/postgres/kinds";
import { startPostgresProxy } from "./postgres-proxy";
import { signalAll, startPostgres } from "./postgres-server";
import { startRedis } from "./redis-server";
import { isMatrix } from "./suites";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy";

/** The option of `configure()` that leads to a server. */
export type ServerTarget = { readonly redis: string } | { readonly postgres: string };

/** The faults that the proxies of all kinds of servers can cause. */
type LockProxy = Pick<TcpProxy, "port" | "blackHole" | "delayReplies" | "stop">;

/** A server of locks for one test file. Tests of faults that use it run over each kind of server. */
export interface LockServer {
  /** Starts a proxy in front of the server. */
  proxy(): Promise<LockProxy>;
  /** @param port that of a proxy, if there is one */
  target(port?: number): ServerTarget;
  /** Returns a new store with connections of its own. `stop()` closes it. */
  store(port?: number): WholeStore;
  /** Returns what the server keeps for the key, without what has expired. */
  traces(key: string): Promise<readonly string[]>;
  /** Returns all keys that the server has, once for each hold and once for each queue. */
  keys(): Promise<readonly string[]>;
  /** Lets another program hold the keys. */
  hold(keys: readonly string[]): Promise<void>;
  /** Returns the number of connections of others. */
  connections(): Promise<number>;
  /** Returns the number of channels on which others listen. Only Redis knows it. */
  readonly channels?: () => Promise<number>;
  /** Whether the server has the hold of the key. Blocks this process meanwhile. */
  isHeld(key: string): boolean;
  /** Lets the server answer nobody for this time. */
  stall(ms: number): Promise<void>;
  stop(): Promise<void>;
}

/** The kind of server that {@link startLockServer} starts: Redis in `npm test`, and PostgreSQL in the matrix. */
export const LOCK_SERVER = isMatrix ? "PostgreSQL" : "Redis";

export function startLockServer(): Promise<LockServer> {
  return isMatrix ? startPostgresOfLocks() : startRedisOfLocks();
}

async function startRedisOfLocks(): Promise<LockServer> {
  const server = await startRedis("--enable-debug-command", "yes");
  const watcher = server.client();
  const stores: WholeStore[] = [];
  return {
    proxy: () => startTcpProxy(server.port),
    target: (port = server.port) => ({ redis: `redis://127.0.0.1:${port}` }),
    store: (port = server.port) => kept(stores, redisStore(server.client({ port }))),
    traces: (key) => watcher.keys(`*${key}*`),
    keys: () => watcher.keys("*"),
    hold: async (keys) => void (await watcher.mset(Object.fromEntries(keys.map((key) => [key, "another"])))),
    connections: async () =>
      String(await watcher.call("CLIENT", "LIST"))
        .trim()
        .split("\n").length - 1,
    async channels() {
      const channels = await watcher.call("PUBSUB", "CHANNELS");
      return Array.isArray(channels) ? channels.length : NaN;
    },
    isHeld: (key) => run("redis-cli", "-p", String(server.port), "exists", key) === "1",
    stall: async (ms) => void (await watcher.call("DEBUG", "SLEEP", ms / 1_000)),
    async stop() {
      await closeAll(stores);
      await server.stop();
    },
  };
}

async function startPostgresOfLocks(): Promise<LockServer> {
  const server = await startPostgres();
  const watcher = new Pool({ connectionString: server.url, max: 1 });
  await watcher.query(migrationSql());
  const urlAt = (port: number): string => server.url.replace(`:${server.port}/`, `:${port}/`);
  const stores: WholeStore[] = [];
  return {
    proxy: () => startPostgresProxy(server.port),
    target: (port = server.port) => ({ postgres: urlAt(port) }),
    store: (port = server.port) => kept(stores, postgresStore(portOf(urlAt(port)))),
    async traces(key) {
      const rows = ["hold", "waiter"].map(
        (table) =>
          `SELECT '${table}' AS trace FROM lockweave.${table} WHERE key = $1 AND expires_at > clock_timestamp()`,
      );
      const result = await watcher.query<{ readonly trace: string }>(rows.join(" UNION ALL "), [key]);
      return result.rows.map(({ trace }) => trace);
    },
    async keys() {
      const text = "SELECT key FROM lockweave.hold UNION ALL SELECT DISTINCT key FROM lockweave.waiter";
      return (await watcher.query<{ readonly key: string }>(text)).rows.map(({ key }) => key);
    },
    async hold(keys) {
      const expiresAt = "clock_timestamp() + interval '1 hour'";
      const text = `INSERT INTO lockweave.hold (key, holder, expires_at) SELECT key, 'another', ${expiresAt} FROM unnest($1::text[]) key`;
      await watcher.query(text, [keys]);
    },
    async connections() {
      const text =
        "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
      return (await watcher.query(text)).rowCount ?? NaN;
    },
    isHeld: (key) =>
      run("psql", server.url, "-Atc", `SELECT count(*) FROM lockweave.hold WHERE key = '${key}'`) === "1",
    async stall(ms) {
      signalAll(server, "SIGSTOP");
      await pause(ms);
      signalAll(server, "SIGCONT");
    },
    async stop() {
      await closeAll(stores);
      await watcher.end();
      await server.stop();
    },
  };
}

function run(program: string, ...words: readonly string[]): string {
  return execFileSync(program, words, { encoding: "utf8" }).trim();
}

function kept(stores: WholeStore[], store: WholeStore): WholeStore {
  stores.push(store);
  return store;
}

async function closeAll(stores: readonly WholeStore[]): Promise<void> {
  await Promise.all(stores.map((store) => store.close()));
}
