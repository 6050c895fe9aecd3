import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis, type RedisOptions } from "ioredis";
import { createSentinel, type RedisSentinelType } from "redis";
import {
  freePort,
  LAUNCHES,
  launchRedis,
  remove,
  startRedis,
  startRedisAt,
  temporaryDirectory,
  type RedisServer,
} from "./redis-server";
import { until } from "./until";

/** A master with replicas, and the sentinels that promote a replica if the master fails. */
export interface SentinelGroup {
  readonly name: string;
  /** The master, then its replicas, in their roles at the start. */
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly RedisServer[];
  readonly url: string;
  /** Resolves to the port of the current master, as the sentinels report it. */
  masterPort(): Promise<number>;
  /** Returns a client that finds the master through the sentinels. `stop()` disconnects it. */
  client(options?: IoredisSentinelOptions): Redis;
  /** Returns a client of node-redis that finds the master through the sentinels, and is connecting. `stop()` closes it. */
  nodeRedis(options?: NodeRedisSentinelOptions): RedisSentinelType;
  /**
   * Makes the sentinels replace a master after a second of silence, until `calm()`. Otherwise they tolerate silence, because
   * a healthy master on a busy machine may be silent for that long.
   */
  alert(): Promise<void>;
  calm(): Promise<void>;
  /** Restarts a dead server without its data, as a replica of the current master. */
  restart(dead: RedisServer): Promise<RedisServer>;
  stop(): Promise<void>;
}

type IoredisSentinelOptions = Pick<RedisOptions, "natMap">;

type NodeRedisSentinelOptions = Pick<
  Parameters<typeof createSentinel>[0],
  "keyPrefix" | "nodeAddressMap" | "nodeClientOptions" | "masterPoolSize"
> & { readonly RESP?: 2 | 3 };

const NAME = "locks";
/** An alert sentinel considers the master down after this much silence. */
const DOWN_AFTER_MS = 1_000;
const CALM_MS = 600_000;
const REPLICA = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];

export async function startSentinelGroup(replicas = 2, sentinels = 3): Promise<SentinelGroup> {
  const dir = await temporaryDirectory();
  const master = await startRedis(...REPLICA);
  const following = ["--replicaof", "127.0.0.1", String(master.port), ...REPLICA];
  const servers = [
    master,
    ...(await Promise.all(Array.from({ length: replicas }, () => startRedis(...following)))),
  ];
  const watching: RedisServer[] = [];
  for (let nth = 0; nth < sentinels; nth += 1) {
    watching.push(await startSentinel(join(dir, `${nth}.conf`), dir, master.port, sentinels));
  }
  // One shared connection to each sentinel, because a sentinel accepts a limited number of clients.
  const admins = watching.map((sentinel) => sentinel.client());
  const know = async (sentinel: Redis): Promise<boolean> => {
    const told = (await sentinel.call("SENTINEL", "MASTER", NAME)) as string[];
    const valueOf = (field: string): number => Number(told[told.indexOf(field) + 1]);
    return valueOf("num-slaves") === replicas && valueOf("num-other-sentinels") === sentinels - 1;
  };
  await Promise.all(admins.map((sentinel) => until(() => know(sentinel))));
  const clients: Redis[] = [];
  const nodeRedisClients: RedisSentinelType[] = [];
  const restarted: RedisServer[] = [];
  const masterPort = async (): Promise<number> => {
    const address = await admins[0]?.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME);
    return Number((address as string[])[1]);
  };
  const failsAfter = async (silenceMs: number): Promise<void> => {
    const set = ["SET", NAME, "down-after-milliseconds", String(silenceMs)];
    await Promise.all(admins.map((sentinel) => sentinel.call("SENTINEL", ...set)));
  };
  await failsAfter(CALM_MS);
  return {
    masterPort,
    alert: () => failsAfter(DOWN_AFTER_MS),
    calm: () => failsAfter(CALM_MS),
    async restart(dead) {
      const args = ["--replicaof", "127.0.0.1", String(await masterPort()), ...REPLICA];
      const server = await startRedisAt(dead.port, ...args);
      restarted.push(server);
      return server;
    },
    name: NAME,
    servers,
    sentinels: watching,
    url: `redis+sentinel://${watching.map(({ port }) => `127.0.0.1:${port}`).join(",")}/${NAME}`,
    client(options = {}) {
      const addresses = watching.map(({ port }) => ({ host: "127.0.0.1", port }));
      const client = new Redis({ ...options, sentinels: addresses, name: NAME });
      client.on("error", () => {}); // Each command rejects with its own error.
      clients.push(client);
      return client;
    },
    nodeRedis({ RESP = 3, ...options } = {}) {
      const client = createSentinel({
        ...options,
        name: NAME,
        sentinelRootNodes: watching.map(({ port }) => ({ host: "127.0.0.1", port })),
        RESP,
      }) as RedisSentinelType;
      client.on("error", () => {}); // Each command rejects with its own error.
      nodeRedisClients.push(client);
      client.connect().catch(() => {}); // The group has stopped.
      return client;
    },
    async stop() {
      for (const client of clients) client.disconnect();
      for (const client of nodeRedisClients) await client.destroy();
      await Promise.all([...watching, ...servers, ...restarted].map((server) => server.stop()));
      await remove(dir);
    },
  };
}

/** Starts a sentinel with its own configuration file, because a sentinel writes its state into it. */
async function startSentinel(
  file: string,
  dir: string,
  masterPort: number,
  all: number,
): Promise<RedisServer> {
  for (let launch = 1; launch <= LAUNCHES; launch += 1) {
    const lines = [
      `sentinel monitor ${NAME} 127.0.0.1 ${masterPort} ${Math.floor(all / 2) + 1}`,
      `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `sentinel failover-timeout ${NAME} ${5 * DOWN_AFTER_MS}`,
      "",
    ];
    await writeFile(file, lines.join("\n"));
    const sentinel = await launchRedis(await freePort(), dir, [file, "--sentinel"]);
    if (sentinel !== undefined) return sentinel;
  }
  throw new Error(`a sentinel failed to start ${LAUNCHES} times`);
}
