import type { Cluster as IoredisCluster, Redis } from "ioredis";
import { optionsOf } from "../../../runtime/stores/redis/ioredis/options";
import { TIMEOUT_MS, type Cluster, type OpenClient, type Server } from "./server";

type Ioredis = typeof import("ioredis");

const OPTIONS = {
  // Ends the command if a server hangs.
  maxRetriesPerRequest: 1,
  commandTimeout: TIMEOUT_MS,
  connectTimeout: TIMEOUT_MS,
  // The ready check is off because ioredis would print the server's reply to it unescaped.
  enableReadyCheck: false,
};

/** Returns a function that creates clients of ioredis. */
export function clientsOfIoredis(ioredis: Ioredis): OpenClient {
  return (connection) => {
    let isConnected = false;
    let trouble: unknown;
    const client = new ioredis.Redis({
      ...optionsOf(connection),
      ...OPTIONS,
      lazyConnect: true,
      // The first connection does not wait for missing sentinels. A later connection retries until the command ends.
      sentinelRetryStrategy: (attempt: number): number | null =>
        isConnected ? Math.min(attempt * 100, 1_000) : null,
    });
    client.on("error", (error) => void (trouble ??= error));
    return {
      ...serverOf(client),
      redis: client,
      get trouble() {
        return trouble;
      },
      async connect() {
        await client.connect();
        isConnected = true;
      },
      async prefixed(keyPrefix) {
        const other = client.duplicate({ keyPrefix }).on("error", () => {});
        return { redis: other, close: () => other.disconnect() };
      },
      openCluster: () => openCluster(ioredis, client),
      close: () => client.disconnect(),
    };
  };
}

function serverOf(client: Redis): Server {
  return {
    send: (...words) => client.call(...words),
    async sendAll(commands) {
      const pipeline = client.pipeline();
      for (const words of commands) pipeline.call(...words);
      const replies = (await pipeline.exec()) ?? [];
      return replies.map(([error, reply]) => error ?? reply);
    },
  };
}

async function openCluster(ioredis: Ioredis, node: Redis): Promise<Cluster> {
  const { host = "localhost", port = 6379, username, password, tls } = node.options;
  const redisOptions = { ...OPTIONS, username, password, tls };
  const cluster = new ioredis.Cluster([{ host, port }], { redisOptions });
  cluster.on("error", () => {});
  await new Promise<void>((resolve, reject) => {
    cluster.once("ready", resolve);
    cluster.once("end", () => reject(new Error("the cluster cannot be reached")));
  });
  return {
    redis: cluster,
    masters: () => mastersOf(cluster),
    send: (...words) => cluster.call(...words),
    async prefixed(keyPrefix) {
      const other = cluster.duplicate([], { redisOptions: { ...redisOptions, keyPrefix } });
      return { redis: other, close: () => other.disconnect() };
    },
    close: () => cluster.disconnect(),
  };
}

/** The scanner remembers each server, so there is one object for each. */
const servers = new WeakMap<Redis, Server>();

function mastersOf(cluster: IoredisCluster): Server[] {
  return cluster.nodes("master").map((node) => {
    const server = servers.get(node) ?? serverOf(node);
    servers.set(node, server);
    return server;
  });
}
