import { until } from "../../support/until";
import { startRedis } from "../../support/redis-server";
import { leftoversIn } from "../leftovers";
import { openRoute } from "../route";
import type { Topology } from "../topology";
import { redisFaults } from "./redis-faults";

/** One node. Its replica confirms the locks that ask for it, and is never promoted. */
export async function startNode(): Promise<Topology> {
  const server = await startRedis("--repl-diskless-sync-delay", "0");
  const replica = await startRedis("--replicaof", "127.0.0.1", String(server.port));
  const admin = server.client();
  await until(async () => (await admin.info("replication")).includes("state=online"));
  return {
    options: {},
    hasSharedLocks: true,
    configuration: { redis: server.url },
    faults: redisFaults(() => ({ pid: server.pid, admin })),
    mayRepeatCommands: true,
    async connect(random) {
      const route = await openRoute(server.port);
      const url = `redis://127.0.0.1:${route.port}`;
      return { routes: [route], target: { kind: random.oneOf("url", "client"), url } };
    },
    leftovers: () => leftoversIn(admin),
    clear: async () => void (await admin.flushall()),
    async stop() {
      await replica.stop();
      await server.stop();
    },
  };
}
