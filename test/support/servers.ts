import { startRedisCluster } from "./redis-cluster";
import { startRedis } from "./redis-server";
import { startSentinelGroup } from "./redis-sentinel";

// npm run servers
//
// Starts the servers of the tests for experiments: a cluster, a group with Sentinel, and independent masters. They keep
// nothing on disk, and stop with this process.

async function main(): Promise<void> {
  // Ctrl-C reaches all processes of the terminal, including the servers, so they stop in any case.
  const ended = new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve());
  });
  const startedAt = performance.now();
  const [cluster, group, masters] = await Promise.all([
    startRedisCluster(3, 3),
    startSentinelGroup(2, 3),
    Promise.all(Array.from({ length: 5 }, () => startRedis())),
  ]);
  await group.alert(); // So that a failover follows if somebody stops the master.
  const nodes = cluster.nodes.map(({ port }) => port);
  const sentinels = group.sentinels.map(({ port }) => port);
  const hosts = (ports: readonly number[]): string =>
    `[${ports.map((port) => `{ host: "127.0.0.1", port: ${port} }`).join(", ")}]`;
  const urls = masters.map(({ url }) => `"${url}"`).join(", ");
  console.log(`All servers run, after ${((performance.now() - startedAt) / 1000).toFixed(1)} s. Ctrl-C ends them.

A cluster of three masters (ports ${nodes.slice(0, 3).join(", ")}) and a replica of each (${nodes.slice(3).join(", ")}):

  configure({ redis: new Cluster(${hosts(nodes.slice(0, 3))}) });
  redis-cli -c -p ${nodes[0]}

A master (port ${group.servers[0]?.port}) with two replicas (${group.servers
    .slice(1)
    .map(({ port }) => port)
    .join(", ")}), watched by three sentinels (${sentinels.join(", ")}):

  configure({ redis: "${group.url}" });
  configure({ redis: new Redis({ name: "${group.name}", sentinels: ${hosts(sentinels)} }) });
  redis-cli -p ${sentinels[0]} sentinel get-master-addr-by-name ${group.name}

Five masters that know nothing of one another, as a quorum:

  configure({ redis: [${urls}] });

They count once they have run for a minute, or for the \`longestLockTime\` of quorumStore(): docs/deployment.md says why.

A node that fails: redis-cli -p <port> shutdown nosave
A node that hangs: pkill -STOP -f 'redis-server 127.0.0.1:<port>', until the same with -CONT
`);
  await ended;
  await Promise.all([cluster.stop(), group.stop(), ...masters.map((server) => server.stop())]);
}

void main();
