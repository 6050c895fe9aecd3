import type { SeededRandom } from "../../support/seeded-random";
import { startRedisCluster, type ClusterNode } from "../../support/redis-cluster";
import { migrateSlot } from "../../support/reshard";
import { until } from "../../support/until";
import { leftoversIn } from "../leftovers";
import { openRoutes } from "../route";
import type { ServerFault, Topology } from "../topology";
import { natMapOf } from "./nat-map";
import { redisFaults } from "./redis-faults";

/** A replica gives up a manual failover after five seconds. */
const ASKED_AGAIN_MS = 6_000;

/** Three masters, each with a replica that replaces it. */
export function startCluster(): Promise<Topology> {
  return start(true);
}

/** Three masters that lose no data. Slots move between them, and a replica takes over only if an operator asks it to. */
export function startResharding(): Promise<Topology> {
  return start(false);
}

async function start(losesMasters: boolean): Promise<Topology> {
  const cluster = await startRedisCluster(3, 3);
  const ports = cluster.nodes.map(({ port }) => port);
  await cluster.setFailovers(losesMasters);
  const masters = async (): Promise<ClusterNode[]> => {
    const roles = await Promise.all(cluster.nodes.map((node) => node.info("replication", "role")));
    return cluster.nodes.filter((_, nth) => roles[nth] === "master");
  };
  const masterOfAny = (random: SeededRandom, keys: readonly string[]): Promise<ClusterNode> =>
    cluster.masterOf(oneOf(random, keys));
  const isReplaced = async (old: ClusterNode, key: string): Promise<void> => {
    await until(async () => (await cluster.masterOf(key)) !== old && (await cluster.isWhole()));
  };
  const losses: Readonly<Record<string, ServerFault>> = {
    async "killed master"(random, keys) {
      const key = oneOf(random, keys);
      const master = await cluster.masterOf(key);
      await master.kill();
      await isReplaced(master, key);
      await restart(master);
      await until(() => cluster.isWhole());
    },
    async "frozen master, replaced"(random, keys) {
      const key = oneOf(random, keys);
      const master = await cluster.masterOf(key);
      master.freeze();
      await isReplaced(master, key);
      master.thaw();
      await until(async () => (await master.info("replication", "role")) === "slave");
      await until(() => cluster.isWhole());
    },
  };
  return {
    options: losesMasters ? { replicas: 1 } : {},
    hasSharedLocks: !losesMasters,
    configuration: { redis: cluster.cluster() },
    faults: {
      ...redisFaults((random) => oneOf(random, cluster.nodes)),
      ...(losesMasters && losses),
      async "manual failover"(random, keys) {
        const master = await masterOfAny(random, keys);
        const [, , replicas] = (await master.admin.role()) as [string, number, [string, string][]];
        const replica = cluster.nodes.find(({ port }) => String(port) === replicas[0]?.[1]);
        if (replica === undefined) return;
        let askedAt = -Infinity;
        await until(async () => {
          if ((await replica.info("replication", "role")) === "master") return true;
          if (performance.now() - askedAt > ASKED_AGAIN_MS) {
            askedAt = performance.now();
            await replica.admin.cluster("FAILOVER");
          }
          return false;
        });
        await until(() => cluster.isWhole());
      },
      async "moved slot"(random, keys) {
        const key = oneOf(random, keys);
        const from = await cluster.masterOf(key);
        const [first, ...others] = (await masters()).filter((node) => node !== from);
        if (first !== undefined) await migrateSlot(cluster, key, random.oneOf(first, ...others));
      },
    },
    mayRepeatCommands: true,
    async connect(random) {
      const routes = await openRoutes(ports);
      const library = random.oneOf("ioredis", "redis");
      const target = { kind: "cluster", library, nodes: ports, natMap: natMapOf(ports, routes) } as const;
      return { routes, target };
    },
    async leftovers() {
      return (await Promise.all((await masters()).map(({ admin }) => leftoversIn(admin)))).flat();
    },
    async clear() {
      for (const { admin } of await masters()) await admin.flushall();
    },
    stop: () => cluster.stop(),
  };
}

async function restart(node: ClusterNode): Promise<void> {
  if (!(await node.start())) throw new Error(`the node at port ${node.port} did not start again`);
}

function oneOf<T>(random: SeededRandom, all: readonly T[]): T {
  const one = all[random.below(all.length)];
  if (one === undefined) throw new Error("nothing to choose from");
  return one;
}
