import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { SeededRandom } from "../../support/seeded-random";
import type { ServerFault } from "../topology";

/** A server with a connection for the commands of the torture itself. */
export interface AdminOfServer {
  readonly pid: number;
  readonly admin: Redis;
}

/**
 * Faults of one Redis server, which loses no data by them.
 *
 * @param anyServer returns one of the servers that run
 */
export function redisFaults(
  anyServer: (random: SeededRandom) => AdminOfServer,
): Readonly<Record<string, ServerFault>> {
  return {
    "CLIENT KILL": async (random) => {
      const type = random.oneOf("normal", "pubsub");
      await anyServer(random).admin.call("CLIENT", "KILL", "TYPE", type, "SKIPME", "yes");
    },
    "SCRIPT FLUSH": async (random) => void (await anyServer(random).admin.script("FLUSH")),
    "CLIENT PAUSE": async (random) => {
      const mode = random.oneOf("WRITE", "ALL");
      await anyServer(random).admin.call("CLIENT", "PAUSE", String(random.below(800)), mode);
    },
    "frozen server": (random) => freeze(anyServer(random).pid, random.below(2_000)),
  };
}

/** Stops a process for some time, without ending it. */
export async function freeze(pid: number, ms: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await pause(ms);
  process.kill(pid, "SIGCONT");
}
