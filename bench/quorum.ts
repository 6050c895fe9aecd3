/**
 * What a section costs on a quorum of five masters, beside one node: commands that the servers carry out, and time.
 * The two are measured in turns.
 *
 *     npm run bench:quorum [-- <sections> <turns>]
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import { redisStore, quorumStore, type Store } from "../runtime";
import { FleetProcess } from "../test/support/fleet";
import { startRedis } from "../test/support/redis-server";

const [sections = 300, turns = 7] = process.argv.slice(2).map(Number);

/** Locks are had when a majority of the masters is so old. */
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
  "two processes in turns": async (processes) => {
    const half = async (process: FleetProcess): Promise<void> => {
      for (let n = 0; n < sections / 2; n += 1) await process.call("LOCK_one", OPTIONS, () => {});
    };
    await Promise.all(processes.map(half));
  },
};

const OPTIONS = { lockTime: "10s" } as const;

interface Home {
  readonly name: string;
  readonly processes: readonly FleetProcess[];
  readonly admins: readonly Redis[];
}

async function main(): Promise<void> {
  const servers = await Promise.all(Array.from({ length: 6 }, () => startRedis()));
  const [single, ...masters] = servers;
  if (single === undefined) throw new Error("there is no server");
  const stores: Store[] = [];
  const home = (name: string, at: typeof servers, storeOf: (clients: Redis[]) => Store): Home => ({
    name,
    processes: [1, 2].map(() => {
      const store = storeOf(at.map((server) => server.client()));
      stores.push(store);
      return new FleetProcess({ store });
    }),
    admins: at.map((server) => server.client()),
  });
  const longestLockTime = `${LONGEST_LOCK_TIME_MS}ms` as const;
  const homes = [
    home("one node", [single], ([client]) => redisStore(client as Redis)),
    home("quorum of five", masters, (clients) => quorumStore(clients, { longestLockTime })),
  ];
  await pause(LONGEST_LOCK_TIME_MS + 1_000);
  for (const [name, run] of Object.entries(CASES)) {
    const figures = new Map(homes.map((one) => [one, { commands: 0, times: [] as number[] }]));
    for (const { processes } of homes) await run(processes); // Scripts are loaded, and connections open.
    for (let turn = 0; turn < turns; turn += 1) {
      for (const one of homes) {
        const before = await commandsOf(one.admins);
        const startedAt = performance.now();
        await run(one.processes);
        const tookMs = performance.now() - startedAt;
        const figure = figures.get(one);
        figure?.times.push(tookMs / sections);
        if (figure !== undefined) figure.commands += (await commandsOf(one.admins)) - before;
      }
    }
    for (const [{ name: where }, { commands, times }] of figures) {
      const [low, median, high] = [0.25, 0.5, 0.75].map((share) => quantile(times, share).toFixed(2));
      const each = (commands / (sections * turns)).toFixed(2);
      console.log(`${name}, ${where}: ${each} commands and ${median} ms a section (${low} to ${high})`);
    }
  }
  await Promise.all(stores.map((store) => store.close()));
  await Promise.all(servers.map((server) => server.stop()));
}

/** What clients have sent, but for what is asked for here: a script counts once. */
async function commandsOf(admins: readonly Redis[]): Promise<number> {
  const counts = await Promise.all(
    admins.map(async (admin) => {
      const stats = await admin.info("commandstats");
      return [...stats.matchAll(/^cmdstat_(set|evalsha|eval):calls=(\d+)/gm)].map(([, , calls]) =>
        Number(calls),
      );
    }),
  );
  // In a script SET is counted as well.
  return counts.flat().reduce((sum, count) => sum + count, 0);
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
}

void main();
