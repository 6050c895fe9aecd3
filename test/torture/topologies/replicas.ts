import { setTimeout as pause } from "node:timers/promises";
import { startMovingAddress } from "../../support/moving-address";
import { startRedis, type RedisServer } from "../../support/redis-server";
import { until } from "../../support/until";
import { leftoversIn } from "../leftovers";
import { openRoute, type Route } from "../route";
import type { Topology } from "../topology";
import { freeze, redisFaults } from "./redis-faults";

const SETTINGS = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"];

/** A master and its replica, which an operator promotes. An address leads to the current master. */
export async function startReplicas(): Promise<Topology> {
  let master = await startRedis(...SETTINGS);
  let replica = await startReplicaOf(master);
  const address = await startMovingAddress(master.port);
  const routes: Route[] = [];

  const promote = async (): Promise<void> => {
    await replica.client().replicaof("NO", "ONE");
    master = replica;
    address.moveTo(master.port);
    for (const route of routes) route.moveTo(master.port);
    address.cut();
  };
  return {
    options: { replicas: 1 },
    hasSharedLocks: false,
    configuration: { redis: `redis://127.0.0.1:${address.port}` },
    faults: {
      ...redisFaults(() => ({ pid: master.pid, admin: master.client() })),
      "frozen replica": (random) => freeze(replica.pid, random.below(2_000)),
      async "restarted replica"() {
        await replica.stop();
        replica = await startReplicaOf(master);
      },
      async "killed master"() {
        await master.stop();
        await promote();
        replica = await startReplicaOf(master);
      },
      /** Its clients keep their connections, and still reach it when it continues. */
      async "frozen master, replaced"(random) {
        const old = master;
        process.kill(old.pid, "SIGSTOP");
        await pause(random.below(1_000));
        await promote();
        process.kill(old.pid, "SIGCONT");
        await pause(random.below(1_000));
        for (const route of routes) route.reset();
        await old.stop();
        replica = await startReplicaOf(master);
      },
    },
    mayRepeatCommands: true,
    async connect(random) {
      const route = await openRoute(master.port);
      routes.push(route);
      const url = `redis://127.0.0.1:${route.port}`;
      return { routes: [route], target: { kind: random.oneOf("url", "client"), url } };
    },
    leftovers: () => leftoversIn(master.client()),
    async clear() {
      routes.length = 0;
      await master.client().flushall();
    },
    async stop() {
      await address.stop();
      await replica.stop();
      await master.stop();
    },
  };
}

/** Resolves when the replica has all data of the master, so that it can confirm locks. */
async function startReplicaOf(master: RedisServer): Promise<RedisServer> {
  const replica = await startRedis("--replicaof", "127.0.0.1", String(master.port), ...SETTINGS);
  const admin = replica.client();
  await until(async () => (await admin.role())[3] === "connected");
  return replica;
}
