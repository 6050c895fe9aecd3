import type { Advice } from "../client-port";

/** The fix for a client without the options that a second connection needs. */
const WITH_CONFIG = "pass { glide: client, config } to configure(), with the config that createClient() got";

export const ADVICE: Advice = {
  deadRoute:
    "Redis answers on a new connection, but not on the client's, so that connection is dead, or a blocking command of the application holds it, such as BLPOP, which needs a client of its own. On Linux, GLIDE closes a dead one 5 s after a command without an answer. Fix: if it stays dead for longer, create a new client",
  demoted:
    "Redis answers READONLY: the client is connected to a replica, which may have been the master before a failover. GLIDE does not reconnect by itself. Fix: npm install ioredis, and give Lockweave a redis+sentinel:// URL, which follows a failover",
  useCluster: "pass { glide: client, config } with a GlideClusterClient instead of the GlideClient",
  secondConnection: WITH_CONFIG,
};

export const CLUSTER_ADVICE: Advice = {
  ...ADVICE,
  secondConnection:
    "pass a `new Cluster([...])` of ioredis or a `createCluster({...})` of node-redis instead of the client of GLIDE",
};
