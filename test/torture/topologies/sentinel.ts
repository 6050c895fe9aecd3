import type { RedisServer } from "../../support/redis-server";
import { startSentinelGroup } from "../../support/redis-sentinel";
import { until } from "../../support/until";
import { leftoversIn } from "../leftovers";
import { openRoutes } from "../route";
import type { Topology } from "../topology";
import { natMapOf } from "./nat-map";
import { freeze, redisFaults } from "./redis-faults";

/** A master and its replica, which Sentinel promotes. */
export async function startSentinel(): Promise<Topology> {
  const group = await startSentinelGroup(1, 3);
  const [first, second] = group.servers;
  if (first === undefined || second === undefined) throw new Error("the master or its replica is missing");
  let [master, replica]: [RedisServer, RedisServer] = [first, second];
  const sentinels = group.sentinels.map(({ port }) => port);

  const isReplaced = async (): Promise<void> => {
    const admin = replica.client();
    await until(async () => (await group.masterPort()) === replica.port);
    await until(async () => (await admin.role())[0] === "master");
    await group.calm();
  };
  const follows = async (follower: RedisServer): Promise<void> => {
    const admin = follower.client();
    await until(async () => (await admin.role())[3] === "connected");
    [master, replica] = [replica, follower];
  };
  return {
    options: { replicas: 1 },
    hasSharedLocks: false,
    configuration: { redis: group.url },
    faults: {
      ...redisFaults(() => ({ pid: master.pid, admin: master.client() })),
      "frozen replica": (random) => freeze(replica.pid, random.below(2_000)),
      async "killed master"() {
        await group.alert();
        await master.stop();
        await isReplaced();
        await follows(await group.restart(master));
      },
      /** The sentinels demote it some seconds after it continues. */
      async "frozen master, replaced"() {
        await group.alert();
        process.kill(master.pid, "SIGSTOP");
        await isReplaced();
        process.kill(master.pid, "SIGCONT");
        await follows(master);
      },
    },
    mayRepeatCommands: true,
    async connect(random) {
      if (random.happens(0.5)) {
        const routes = await openRoutes(sentinels);
        const hosts = routes.map(({ port }) => `127.0.0.1:${port}`).join(",");
        return { routes, target: { kind: "url", url: `redis+sentinel://${hosts}/${group.name}` } };
      }
      const ports = [first.port, second.port];
      const routes = await openRoutes(ports);
      const natMap = natMapOf(ports, routes);
      return { routes, target: { kind: "sentinel", name: group.name, sentinels, natMap } };
    },
    leftovers: () => leftoversIn(master.client()),
    clear: async () => void (await master.client().flushall()),
    stop: () => group.stop(),
  };
}
