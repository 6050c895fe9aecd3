import type { Advice } from "../client-port";

export const ADVICE: Advice = {
  deadRoute:
    "Redis answers on a new connection, but not on the client's, so that connection is dead, or a blocking command of the application holds it, such as BLPOP, which needs a client of its own. Fix: npm install ioredis, or npm install redis, and pass a redis:// URL to configure() instead of the client. Then Lockweave replaces a dead connection itself",
  demoted:
    "Redis answers READONLY: the client is connected to a replica, which may have been the master before a failover. Bun's RedisClient does not reconnect by itself. Fix: npm install ioredis, and give Lockweave a redis+sentinel:// URL, which follows a failover",
  useCluster:
    "pass a `new Cluster([...])` of ioredis or a `createCluster({...})` of node-redis instead of Bun's RedisClient",
};
