import type { Advice } from "../client-port";
import { permanent } from "../states";
import type { NodeRedisOptions } from "./client";

export const ADVICE: Advice = {
  deadRoute:
    "Redis answers on a new connection, but not on the client's, so that connection is dead, or a blocking command of the application holds it, such as BLPOP, which needs a client of its own. node-redis keeps a dead one until the operating system closes it, after about 15 minutes. Its socketTimeout does not help, because each command starts it again. Fix: pass a redis:// URL to configure() instead of the client. Then Lockweave replaces a dead connection itself",
  demoted:
    "Redis answers READONLY: the client is connected to a replica, which may have been the master before a failover. node-redis does not reconnect by itself. Fix: give Lockweave a client that createSentinel() or createClientPool() made, or a redis+sentinel:// URL. All of them follow a failover",
  useCluster: "pass a client that createCluster() made, instead of a URL or a client of one node",
};

export const CLUSTER_OF_VERSION_5 =
  "a cluster client of node-redis 5 may mix up replies if a connection breaks while a command is about to be written. Then commands fail, or a master stays unreachable until you create a new client. Fix: npm install redis@6";

/**
 * Whether the client closes for good once it is idle. Its `socketTimeout` also counts while no command waits for a reply, and the default
 * `reconnectStrategy` does not reconnect after it.
 */
export function endsWhenIdle({ pingInterval, socket }: NodeRedisOptions = {}): boolean {
  const { socketTimeout = 0, reconnectStrategy } = socket ?? {};
  const isIdleInTime = pingInterval === undefined || pingInterval <= 0 || pingInterval >= socketTimeout;
  return socketTimeout > 0 && reconnectStrategy === undefined && isIdleInTime;
}

const REMOVE_TIMEOUT =
  "remove socketTimeout from its options, or set a socket.reconnectStrategy that returns a number";
export const ENDS_WHEN_IDLE = `the socketTimeout of the Redis client also counts while the client is idle, and then closes it for good. Fix: ${REMOVE_TIMEOUT}`;
export const ENDED_IDLE = permanent(
  "the Redis client was closed, probably by its socketTimeout, which also counts while the client is idle",
  `${REMOVE_TIMEOUT}, and create a new client`,
);
