/**
 * Measures the cost of a section on a quorum of five masters, compared with a single node: the number of commands, and the time. The two
 * alternate.
 *
 *     npm run bench -- quorum [<sections> <turns>]
 */
import { setTimeout as pause } from "node:timers/promises";
import { redisStore, quorumStore, type RedisClient, type WholeStore } from "../runtime";
import { FleetProcess } from "../test/support/fleet";
import { counting } from "../test/support/counting-client";
import { startRedis } from "../test/support/redis-server";

const [sections = 300, turns = 7] = process.argv.slice(2).map(Number);

/** A quorum grants no locks until a majority of its masters has run for this long. */
const LONGEST_LOCK_TIME_MS = 10_000;

type Run = (processes: readonly FleetProcess[]) => Promise<void>;

const CASES: Record<string, Run> = {
  alone: async ([one]) => {
    for (let n = 0; n < sections; n += 1) await one?.call(`LOCK_${n}`, OPTIONS, () => {});
  },
  "alone, with a fencing token": async ([one]) => {
    for (let n = 0; n < sections; n += 1)
      await one?.call(`LOCK_${n}`, { ...OPTIONS, fencing: true }, () => {});
  },
  "all at once": async ([one]) => {
    const callers = Array.from(
      { length: sections },
      async (_, n) => await one?.call(`LOCK_${n}`, OPTIONS, () => {}),
    );
    await Promise.all(callers);
  },
  "two processes in turns": async (processes) => {
    const half = async (process: FleetProcess): Promise<void> => {
      for (let n = 0; n < sections / 2; n += 1) await process.call("LOCK_one", OPTIONS, () => {});
    };
    await Promise.all(processes.map(half));
  },
};

const OPTIONS = { lockTime: "10s" } as const;

interface Topology {
  readonly name: string;
  readonly processes: readonly FleetProcess[];
  /** Returns how many commands were sent since the last call. */
  readonly sent: () => number;
}

async function main(): Promise<void> {
  const servers = await Promise.all(Array.from({ length: 6 }, () => startRedis()));
  const [single, ...masters] = servers;
  if (single === undefined) throw new Error("there is no server");
  const stores: WholeStore[] = [];
  const topology = (
    name: string,
    at: typeof servers,
    storeOf: (clients: RedisClient[]) => WholeStore,
  ): Topology => {
    const counted = [1, 2].map(() => at.map((server) => counting(server.client())));
    return {
      name,
      processes: counted.map((clients) => {
        const store = storeOf(clients.map(({ client }) => client));
        stores.push(store);
        return new FleetProcess({ store });
      }),
      sent: () => counted.flat().reduce((sum, { commands }) => sum + commands().length, 0),
    };
  };
  const longestLockTime = `${LONGEST_LOCK_TIME_MS}ms` as const;
  const topologies = [
    topology("one node", [single], ([client]) => redisStore(client as RedisClient)),
    topology("quorum of five", masters, (clients) => quorumStore(clients, { longestLockTime })),
  ];
  await pause(LONGEST_LOCK_TIME_MS + 1_000);
  for (const [name, run] of Object.entries(CASES)) {
    const figures = new Map(topologies.map((one) => [one, { commands: 0, times: [] as number[] }]));
    for (const { processes } of topologies) await run(processes); // The first run loads scripts and opens connections.
    for (let turn = 0; turn < turns; turn += 1) {
      for (const one of topologies) {
        one.sent();
        const startedAt = performance.now();
        await run(one.processes);
        const tookMs = performance.now() - startedAt;
        const figure = figures.get(one);
        figure?.times.push(tookMs / sections);
        if (figure !== undefined) figure.commands += one.sent();
      }
    }
    for (const [{ name: where }, { commands, times }] of figures) {
      const [low, median, high] = [0.25, 0.5, 0.75].map((share) => quantile(times, share).toFixed(2));
      const each = (commands / (sections * turns)).toFixed(2);
      console.log(`${name}, ${where}: ${each} commands and ${median} ms a section (${low} to ${high})`);
    }
  }
  await Promise.all(stores.map((store) => store.close?.()));
  await Promise.all(servers.map((server) => server.stop()));
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
}

void main();
