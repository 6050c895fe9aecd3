import type { NodeRedisClient, RedisClient } from "../../runtime/stores/redis/client";
import type { LibraryName, RedisAddress } from "../../runtime/stores/redis/address";
import type { LibraryOptions, RedisServer } from "./redis-server";

/** A client library, over which a test runs. */
export interface ClientLibrary {
  /** The beginning of the titles of its tests. */
  readonly title: string;
  /** Returns a client of the server. It is connected, or connects by itself. */
  client(server: RedisServer, options?: LibraryOptions): Promise<RedisClient | NodeRedisClient>;
}

export const IOREDIS: ClientLibrary = {
  title: "",
  async client(server, { database, name, ...options } = {}) {
    return server.client({
      ...options,
      ...(database !== undefined && { db: database }),
      ...(name !== undefined && { connectionName: name }),
    });
  },
};

function nodeRedis(RESP: 2 | 3): ClientLibrary {
  return {
    title: `over node-redis with RESP ${RESP}: `,
    async client(server, options) {
      const client = server.nodeRedis({ RESP, ...options });
      await client.connect();
      return client;
    },
  };
}

export const NODE_REDIS_3 = nodeRedis(3);
export const NODE_REDIS: readonly ClientLibrary[] = [nodeRedis(2), NODE_REDIS_3];

/** A client library that connects to URLs. */
export interface UrlLibrary {
  /** The beginning of the titles of its tests. */
  readonly title: string;
  readonly name: LibraryName;
  /** Returns an address that this library connects to. */
  at(url: string, options?: { readonly tls?: object }): RedisAddress;
}

export const URL_LIBRARIES: readonly UrlLibrary[] = (["ioredis", "redis"] as const).map((client) => ({
  title: client === "ioredis" ? "" : "over node-redis: ",
  name: client,
  at: (url, options) => ({ url, client, ...options }),
}));

export const NODE_REDIS_POOL: ClientLibrary = {
  title: "over a pool of node-redis: ",
  async client(server, options) {
    const pool = server.nodeRedisPool(options);
    await pool.connect();
    return pool;
  },
};
