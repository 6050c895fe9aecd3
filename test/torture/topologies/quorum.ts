import { setTimeout as pause } from "node:timers/promises";
import { Masters } from "../../support/masters";
import type { RedisServer } from "../../support/redis-server";
import { quorumStore } from "../../../runtime/stores/quorum/quorum-store";
import type { SeededRandom } from "../../support/seeded-random";
import { leftoversIn } from "../leftovers";
import { openRoutes } from "../route";
import { QUORUM } from "../target";
import type { Topology } from "../topology";
import { redisFaults } from "./redis-faults";

const MASTERS = 5;

/** Five masters that know nothing of each other. */
export async function startQuorum(): Promise<Topology> {
  const masters = await Masters.start(MASTERS);
  const servers = (): RedisServer[] => Array.from({ length: MASTERS }, (_, n) => masters.server(n));
  /** Returns up to `most` of the masters, in any order. */
  const some = (random: SeededRandom, most: number): number[] => {
    const first = random.below(MASTERS);
    return Array.from({ length: 1 + random.below(most) }, (_, nth) => (first + nth) % MASTERS);
  };
  return {
    options: { replicas: 0 },
    hasSharedLocks: false,
    configuration: { store: quorumStore(masters.urls, QUORUM) },
    faults: {
      ...redisFaults((random) => {
        const server = masters.server(random.below(MASTERS));
        return { pid: server.pid, admin: server.client() };
      }),
      async "frozen masters"(random) {
        const which = some(random, MASTERS);
        masters.hang(...which);
        await pause(random.below(2_000));
        masters.moveOn(...which);
      },
      /** All of them may lose their data. */
      async "masters restarted empty"(random) {
        const which = some(random, MASTERS);
        await masters.kill(...which);
        await pause(random.below(1_000));
        await masters.revive(...which);
      },
    },
    mayRepeatCommands: true,
    async connect() {
      const routes = await openRoutes(masters.ports);
      const urls = routes.map(({ port }) => `redis://127.0.0.1:${port}`);
      return { routes, target: { kind: "quorum", urls } };
    },
    async leftovers() {
      return (await Promise.all(servers().map((server) => leftoversIn(server.client())))).flat();
    },
    async clear() {
      for (const server of servers()) await server.client().flushall();
    },
    stop: () => masters.stop(),
  };
}
