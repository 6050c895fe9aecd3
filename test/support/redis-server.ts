import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { Redis, type RedisOptions } from "ioredis";

/** A redis-server of the test's own: nothing in it but what the test put there. */
export interface RedisServer {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  /** A client that is disconnected at `stop()`. */
  client(options?: ClientOptions): Redis;
  /** Ends the server, and resolves when it has ended. */
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
>;

/** So often a server is launched that ends at its start. */
export const LAUNCHES = 5;
const NOT_ON_DISK = ["--save", "", "--appendonly", "no"];

/**
 * Becomes the server, beside a guard that ends the server when the other end of descriptor 3 closes without
 * a word: however this process ends, killed or by a test runner's time-out, no server outlives it.
 */
const TIED_TO_US = '(read -r _ <&3 || kill -9 $$) & exec redis-server "$@" 3<&-';

export function startRedis(...args: string[]): Promise<RedisServer> {
  return start(freePort, args);
}

/** A server where one was before, as after a restart: its clients find it again, and it has no data. */
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
  throw new Error(`redis-server ended at its start ${LAUNCHES} times: redis-server ${args.join(" ")}`);
}

export function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), "redis-"));
}

export function remove(dir: string): Promise<void> {
  return rm(dir, { recursive: true, force: true });
}

/**
 * A server in a directory that stays when it has ended.
 *
 * @param args options, after the name of a configuration file where there is one
 * @returns undefined when it did not start: the port was taken between the probe and the start
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

  const server: RedisServer = {
    port,
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid ?? NaN, // No process: to signal it throws.
    client(options = {}) {
      const client = new Redis({ port, host: "127.0.0.1", ...options });
      client.on("error", () => {}); // Each command tells its own failure.
      clients.push(client);
      return client;
    },
    async stop() {
      for (const client of clients) client.disconnect();
      tie.end("stopped in good order\n");
      child.kill("SIGKILL"); // Which also ends one that stands still, is busy, or may not save what it has.
      await ended;
    },
  };

  if (await answersPing(port, child)) return server;
  await server.stop();
  return undefined;
}

const STARTED_WITHIN_MS = 60_000;
const ANSWERS_WITHIN_MS = 5_000;

/** Whether the server came up; false when it ended instead. A server that asks for a password is up too. */
async function answersPing(port: number, child: ChildProcess): Promise<boolean> {
  const givesUpAt = performance.now() + STARTED_WITHIN_MS;
  const probe = new Redis(port, "127.0.0.1", {
    enableReadyCheck: false,
    retryStrategy: () => 10,
    commandTimeout: ANSWERS_WITHIN_MS,
  });
  probe.on("error", () => {}); // Until it listens, connections are refused.
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
 * Below those that systems give to outgoing connections. One of these would take the port of a server that is down for a
 * while; and a client that tries again and again to reach such a server would in the end be connected with itself.
 */
const PORTS = { from: 12_000, count: 20_000 };
const PROBES = 100;

/** A port on loopback that nobody listens to at this moment. */
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
