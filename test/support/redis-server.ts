import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { Redis, type RedisOptions } from "ioredis";
import { createClient, createClientPool, type RedisClientPoolType, type RedisClientType } from "redis";

/** A redis-server for one test. It contains only the data of that test. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  /** Returns a client. `stop()` disconnects it. */
  client(options?: ClientOptions): Redis;
  /** Returns a client of node-redis, which is not connected yet. `stop()` closes it. */
  nodeRedis(options?: NodeRedisOptions): RedisClientType;
  /** Returns a pool of node-redis, which is not connected yet. `stop()` closes it. */
  nodeRedisPool(options?: NodeRedisOptions): RedisClientPoolType;
  /** Stops the server, and resolves when it has exited. */
  stop(): Promise<void>;
}

export type ClientOptions = Pick<
  RedisOptions,
  | "port"
  | "db"
  | "keyPrefix"
  | "username"
  | "password"
  | "connectionName"
  | "enableReadyCheck"
  | "enableOfflineQueue"
  | "maxRetriesPerRequest"
  | "autoResendUnfulfilledCommands"
  | "lazyConnect"
  | "readOnly"
>;

/** Options that all client libraries have, by one name. */
export interface LibraryOptions {
  readonly port?: number;
  readonly database?: number;
  readonly keyPrefix?: string;
  readonly username?: string;
  readonly password?: string;
  readonly name?: string;
}

export interface NodeRedisOptions extends LibraryOptions {
  readonly RESP?: 2 | 3;
  readonly commandOptions?: object;
  readonly disableOfflineQueue?: boolean;
  readonly reconnectStrategy?: false;
  readonly socketTimeout?: number;
}

/** The number of attempts to start a server. */
export const LAUNCHES = 5;
const NOT_ON_DISK = ["--save", "", "--appendonly", "no"];

/**
 * Runs the server, and a guard that kills it if the other end of descriptor 3 closes without a message. So no server
 * outlives this process, even if it is killed.
 */
const TIED_TO_US = '(read -r _ <&3 || kill -9 $$) & exec redis-server "$@" 3<&-';

export function startRedis(...args: string[]): Promise<RedisServer> {
  return start(freePort, args);
}

/** Starts an empty server at the port of an earlier one, as after a restart. Its clients reconnect to it. */
export function startRedisAt(port: number, ...args: string[]): Promise<RedisServer> {
  return start(async () => port, args);
}

async function start(choosePort: () => Promise<number>, args: string[]): Promise<RedisServer> {
  for (let launch = 1; launch <= LAUNCHES; launch += 1) {
    const dir = await temporaryDirectory();
    const server = await launchRedis(await choosePort(), dir, args);
    if (server === undefined) {
      await remove(dir);
      continue;
    }
    return {
      ...server,
      async stop() {
        await server.stop();
        await remove(dir);
      },
    };
  }
  throw new Error(`redis-server failed to start ${LAUNCHES} times: redis-server ${args.join(" ")}`);
}

export function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), "redis-"));
}

export function remove(dir: string): Promise<void> {
  return rm(dir, { recursive: true, force: true });
}

/**
 * Starts a server in a directory that remains after it has exited.
 *
 * @param args the options, optionally after the name of a configuration file
 * @returns `undefined` if it did not start, because another program took the port after the probe
 */
export async function launchRedis(
  port: number,
  dir: string,
  args: readonly string[],
): Promise<RedisServer | undefined> {
  const [first = ""] = args;
  const [file, rest] = first === "" || first.startsWith("--") ? [[], args] : [[first], args.slice(1)];
  const address = ["--bind", "127.0.0.1", "--port", String(port), "--dir", dir];
  const child = spawn(
    "sh",
    ["-c", TIED_TO_US, "redis-server", ...file, ...address, ...NOT_ON_DISK, ...rest],
    { stdio: ["ignore", "ignore", "ignore", "pipe"] },
  );
  const tie = child.stdio[3] as Writable;
  const ended = once(child, "exit");
  const clients: Redis[] = [];
  const nodeRedisClients: (RedisClientType | RedisClientPoolType)[] = [];

  const server: RedisServer = {
    port,
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid ?? NaN, // Without a process, sending a signal throws.
    client(options = {}) {
      const client = new Redis({ port, host: "127.0.0.1", ...options });
      client.on("error", () => {}); // Each command rejects with its own error.
      clients.push(client);
      return client;
    },
    nodeRedis(options = {}) {
      const client = createClient(nodeRedisOptions(port, options)) as RedisClientType;
      client.on("error", () => {}); // Each command rejects with its own error.
      nodeRedisClients.push(client);
      return client;
    },
    nodeRedisPool(options = {}) {
      const pool = createClientPool(nodeRedisOptions(port, options)) as RedisClientPoolType;
      pool.on("error", () => {}); // Each command rejects with its own error.
      nodeRedisClients.push(pool);
      return pool;
    },
    async stop() {
      for (const client of clients) client.disconnect();
      for (const client of nodeRedisClients) if (client.isOpen) client.destroy();
      tie.end("stopped in good order\n");
      child.kill("SIGKILL"); // SIGKILL also ends a server that is stopped, busy, or unable to save its data.
      await ended;
    },
  };

  if (await answersPing(port, child)) return server;
  await server.stop();
  return undefined;
}

function nodeRedisOptions(
  ofServer: number,
  { port = ofServer, reconnectStrategy, socketTimeout, RESP = 3, ...options }: NodeRedisOptions,
) {
  const socket = {
    port,
    host: "127.0.0.1",
    ...(reconnectStrategy !== undefined && { reconnectStrategy }),
    ...(socketTimeout !== undefined && { socketTimeout }),
  };
  return { ...options, RESP: RESP as 3, socket };
}

const STARTED_WITHIN_MS = 60_000;
const ANSWERS_WITHIN_MS = 5_000;

/** Whether the server started, or `false` if it exited. A server that requires a password has started as well. */
async function answersPing(port: number, child: ChildProcess): Promise<boolean> {
  const givesUpAt = performance.now() + STARTED_WITHIN_MS;
  const probe = new Redis(port, "127.0.0.1", {
    enableReadyCheck: false,
    retryStrategy: () => 10,
    commandTimeout: ANSWERS_WITHIN_MS,
  });
  probe.on("error", () => {}); // Connections are refused until the server listens.
  try {
    while (child.exitCode === null && child.signalCode === null && performance.now() < givesUpAt) {
      const answer = await Promise.race([probe.ping().catch(String), once(child, "exit")]);
      if (typeof answer === "string" && /PONG|NOAUTH/.test(answer)) return true;
    }
    return false;
  } finally {
    probe.disconnect();
  }
}

/**
 * These ports are below the range for outgoing connections. Such a connection could take the port of a server that is down,
 * and a client that keeps retrying to reach that server could even connect to itself.
 */
const PORTS = { from: 12_000, count: 20_000 };
const PROBES = 100;

/** Resolves to a port on loopback that is free at this moment. */
export async function freePort(): Promise<number> {
  for (let nth = 0; nth < PROBES; nth += 1) {
    const port = PORTS.from + randomInt(PORTS.count);
    const probe = createServer();
    const isFree = new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!(await isFree)) continue;
    probe.close();
    await once(probe, "close");
    return port;
  }
  throw new Error(`none of ${PROBES} ports is free`);
}
