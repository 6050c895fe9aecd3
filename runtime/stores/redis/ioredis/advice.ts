import type { Advice } from "../client-port";

export const ADVICE: Advice = {
  deadRoute:
    "Redis answers on a new connection, but not on the client's, so that connection is dead. The client keeps it until the operating system closes it, after about 15 minutes. Fix: set socketTimeout in the client's options, such as new Redis({ socketTimeout: 10_000 })",
  demoted:
    'Redis answers READONLY: the client is connected to a replica, which may have been the master before a failover. Fix: make the client reconnect: set reconnectOnError: (error) => error.message.includes("READONLY") in its options',
  useCluster: "use `new Cluster([...])` of ioredis or iovalkey instead of a URL or a client of one node",
};
