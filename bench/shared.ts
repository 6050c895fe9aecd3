/**
 * Measures shared locks at the sizes that they are designed for, alongside an unrelated client.
 *
 *     npm run bench -- shared [<part of a title>]
 *
 * A section is one turn of the event loop or empty, and its caller comes again immediately. All processes, the server, and the unrelated
 * client share the cores of this machine. So the CPU time of a section says more about a busy machine than the number of sections in a
 * second. The latency of the unrelated client is measured twice: with all processes on the same cores, and with the callers on their own
 * core, so that the client waits only for Redis. It does not cover a Redis on another machine, writers among the readers, or real work.
 */
import { fork, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { LockOptions } from "../runtime";
import { redisStore, type WholeStore } from "../runtime";
import { startRedis, type RedisServer } from "../test/support/redis-server";
import { quartiles } from "./quantiles";

const [, , only = ""] = process.argv;

const ROUNDS = 3;
const TURN_MS = 2_500;
const LONGEST_JOB_MS = 90_000;
const KEY = "LOCK_shared";

interface Load {
  readonly title: string;
  readonly goal: string;
  readonly processes: number;
  /** The number of callers in each process. */
  readonly callers: number;
  /** Without options, the callers use no lock. */
  readonly options?: LockOptions;
  /** Options of Node for each process. */
  readonly execArgv?: readonly string[];
  /** By default, each caller has its own key. */
  readonly key?: string;
  /** By default, a body is one turn of the event loop. */
  readonly hasEmptyBody?: boolean;
}

const PATIENT = { retryTimes: 1_000 } as const;
const READ = { ...PATIENT, mode: "read" } as const;

const LOADS: readonly Load[] = [
  {
    title: "64 callers with distinct keys, for comparison",
    goal: "none",
    processes: 1,
    callers: 64,
    options: PATIENT,
  },
  {
    title: "10,000 readers in one process",
    goal: "50,000 sections/s",
    processes: 1,
    callers: 10_000,
    options: READ,
    key: KEY,
  },
  {
    title: "10,000 readers in one process, node --max-semi-space-size=64",
    goal: "50,000 sections/s",
    processes: 1,
    callers: 10_000,
    options: READ,
    execArgv: ["--max-semi-space-size=64"],
    key: KEY,
  },
  {
    title: "10,000 readers in one process, empty bodies",
    goal: "50,000 sections/s",
    processes: 1,
    callers: 10_000,
    options: READ,
    key: KEY,
    hasEmptyBody: true,
  },
  { title: "10,000 callers without a lock, for comparison", goal: "none", processes: 1, callers: 10_000 },
  {
    title: "32 processes with 300 readers each",
    goal: "20,000 sections/s",
    processes: 32,
    callers: 300,
    options: READ,
    key: KEY,
  },
  {
    title: "permits=500 for 2,000 callers in one process",
    goal: "15,000 sections/s",
    processes: 1,
    callers: 2_000,
    options: { ...PATIENT, permits: 500 },
    key: KEY,
  },
  {
    title: "permits=500 for 2,000 callers in 4 processes",
    goal: "none",
    processes: 4,
    callers: 500,
    options: { ...PATIENT, permits: 500 },
    key: KEY,
  },
];

interface Played {
  readonly sections: number;
  readonly failures: number;
  /** Warnings, for example that a release was not confirmed in time. */
  readonly warnings: number;
  readonly tookMs: number;
  readonly cpuMs: number;
  readonly maxRSS: number;
}

// ---- processes of callers -------------------------------------------------------------------------------

class Callers implements AsyncDisposable {
  readonly #children: readonly ChildProcess[];

  private constructor(children: readonly ChildProcess[]) {
    this.#children = children;
  }

  static async start(
    url: string,
    { processes, execArgv = [], ...of }: Omit<Load, "title" | "goal">,
  ): Promise<Callers> {
    const children = Array.from({ length: processes }, () =>
      fork(join(__dirname, "shared-callers.mjs"), [JSON.stringify({ url, ...of })], {
        execArgv: [...execArgv],
      }),
    );
    await Promise.all(children.map((child) => nextMessage(child)));
    return new Callers(children);
  }

  get pids(): readonly number[] {
    return this.#children.flatMap(({ pid }) => pid ?? []);
  }

  /**
   * Lets the callers run.
   *
   * @param forMs the duration. With 0, each caller comes once.
   */
  async play(forMs: number): Promise<readonly Played[]> {
    return await Promise.all(
      this.#children.map(async (child) => {
        child.send(forMs);
        return (await nextMessage(child)) as Played;
      }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null) return;
        const ended = once(child, "exit");
        child.disconnect();
        await ended;
      }),
    );
  }
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(LONGEST_JOB_MS)]);
  const exited = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`a process of callers ended: ${String(code)}`);
  });
  try {
    const [message] = (await Promise.race([once(child, "message", { signal }), exited])) as [unknown];
    return message;
  } finally {
    over.abort();
    exited.catch(() => {});
  }
}

// ---- the unrelated client -------------------------------------------------------------------------------

/** Returns the latencies of a client that uses no locks and sends one command after the other. */
async function latencies(client: Redis, whileRunning: Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  const running = { isOver: false };
  const end = (): void => void (running.isOver = true);
  whileRunning.then(end, end);
  while (!running.isOver) {
    const sentAt = performance.now();
    await client.set("unrelated", "1");
    took.push(performance.now() - sentAt);
    await pause(1);
  }
  return took;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
}

/**
 * Runs the callers on the first core, and Redis and this process on the second. If the callers kept both cores busy, every process would
 * wait for a core, whatever the callers do.
 *
 * @returns whether this machine has `taskset` and two cores
 */
function keepApart(callers: Callers, server: RedisServer): boolean {
  return callers.pids.every((pid) => runOn("0", pid)) && runOn("1", server.pid) && runOn("1", process.pid);
}

function keepTogether(callers: Callers, server: RedisServer): void {
  const all = `0-${availableParallelism() - 1}`;
  for (const pid of [...callers.pids, server.pid, process.pid]) runOn(all, pid);
}

/** Assigns all threads of a process to cores. */
function runOn(cores: string, pid: number): boolean {
  return spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", cores, String(pid)]).status === 0;
}

async function cpuOf(client: Redis): Promise<number> {
  const info = await client.info("cpu");
  const seconds = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
  return (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1_000;
}

async function playLoad(server: RedisServer, client: Redis, load: Load): Promise<void> {
  await using callers = await Callers.start(server.url, load);
  await callers.play(500);
  const [rates, alone, beside, clientUs, serverUs]: number[][] = [[], [], [], [], []];
  let [failures, warnings] = [0, 0];
  await client.config("SET", "slowlog-log-slower-than", "1000");
  await client.call("SLOWLOG", "RESET");
  for (let round = 0; round < ROUNDS; round += 1) {
    alone?.push(percentile(await latencies(client, pause(TURN_MS / 2)), 0.99));
    const cpuBefore = await cpuOf(client);
    const played = callers.play(TURN_MS);
    beside?.push(percentile(await latencies(client, played), 0.99));
    const all = await played;
    const sections = all.reduce((sum, one) => sum + one.sections, 0);
    failures += all.reduce((sum, one) => sum + one.failures, 0);
    warnings += all.reduce((sum, one) => sum + one.warnings, 0);
    rates?.push(all.reduce((sum, one) => sum + one.sections / (one.tookMs / 1_000), 0));
    clientUs?.push((all.reduce((sum, one) => sum + one.cpuMs, 0) * 1_000) / sections);
    serverUs?.push((((await cpuOf(client)) - cpuBefore) * 1_000) / sections);
  }
  console.log(`\n${load.title} (goal: ${load.goal})`);
  console.log(
    `  ${formatted(rates, 0)} sections/s; CPU of a section: ${formatted(clientUs, 1)} µs of callers, ${formatted(serverUs, 1)} µs of Redis; ${failures} calls failed, ${warnings} warnings`,
  );
  console.log(
    `  p99 of an unrelated client on the same cores: ${compared(alone, beside)}; the longest command took ${await longestCommand(client)} ms`,
  );
  if (keepApart(callers, server)) await playApart(client, callers);
  else
    console.log(
      "  not measured with the callers on their own core: this machine has no `taskset`, or only one core",
    );
  keepTogether(callers, server);
}

async function playApart(client: Redis, callers: Callers): Promise<void> {
  const [rates, alone, beside]: number[][] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    alone?.push(percentile(await latencies(client, pause(TURN_MS)), 0.99));
    const played = callers.play(TURN_MS);
    beside?.push(percentile(await latencies(client, played), 0.99));
    rates?.push((await played).reduce((sum, one) => sum + one.sections / (one.tookMs / 1_000), 0));
  }
  console.log(
    `  with the callers on their own core: ${formatted(rates, 0)} sections/s; p99 of an unrelated client: ${compared(alone, beside)} (goal: below 2)`,
  );
}

function compared(alone: readonly number[] | undefined, beside: readonly number[] | undefined): string {
  const ratios = (beside ?? []).map((one, round) => one / (alone?.[round] ?? NaN));
  return `alone ${formatted(alone, 2)} ms, beside ${formatted(beside, 2)} ms, ratio ${formatted(ratios, 2)}`;
}

/** Returns the longest elapsed time of a command in Redis in milliseconds, since the log was reset. */
async function longestCommand(client: Redis): Promise<string> {
  const slow = (await client.call("SLOWLOG", "GET", "128")) as [number, number, number, string[]][];
  const longest = Math.max(0, ...slow.map(([, , us]) => us / 1_000));
  return longest === 0 ? "less than 1" : longest.toFixed(1);
}

function formatted(values: readonly number[] | undefined, digits: number): string {
  const { low, median, high } = quartiles(values ?? []);
  return `${median.toFixed(digits)} (${low.toFixed(digits)} to ${high.toFixed(digits)})`;
}

// ---- queues full of dead entries ------------------------------------------------------------------------

const ENTRIES = 1_000_000;

/**
 * Adds dead waiters. KEYS: queue. ARGV: from, to, and the deadline of each waiter in µs as a negative score. Each waiter has its two
 * entries.
 */
const FILL = `
for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  local waiter = string.format("%032x", n) .. " lockweave:1:inbox:nobody"
  redis.call("ZADD", KEYS[1], n, waiter, ARGV[3], "-" .. waiter)
end
redis.call("PEXPIRE", KEYS[1], 600000)
`;

/** Adds entries that are not waiters of Lockweave. KEYS: queue. ARGV: from, to. */
const FILL_HOSTILE = `
for n = tonumber(ARGV[1]), tonumber(ARGV[2]) do
  redis.call("ZADD", KEYS[1], n, "hostile " .. n)
end
redis.call("PEXPIRE", KEYS[1], 600000)
`;

const QUEUES: Readonly<Record<string, { readonly script: string; readonly args: readonly string[] }>> = {
  "dead waiters": { script: FILL, args: ["-2"] },
  "hostile entries": { script: FILL_HOSTILE, args: [] },
};

/** Lets callers of each kind come and go at a crowded queue. The server reports how long the longest of their commands took. */
async function playQueues(server: RedisServer, client: Redis): Promise<void> {
  const key = "LOCK_crowded";
  const queue = `lockweave:1:queue:{${key}}`;
  const store = redisStore(server.client());
  for (const [title, { script, args }] of Object.entries(QUEUES)) {
    for (let from = 1; from <= ENTRIES; from += 20_000)
      await client.eval(script, 1, queue, from, from + 19_999, ...args);
    for (const permits of [1, 5, Infinity]) {
      await client.config("SET", "slowlog-log-slower-than", "1000");
      await client.call("SLOWLOG", "RESET");
      const before = await client.zcard(queue);
      const cpuBefore = await cpuOf(client);
      const came = comeAndGo(store, key, permits);
      const beside = await latencies(client, came);
      const commands = await came;
      const cpuUs = (((await cpuOf(client)) - cpuBefore) * 1_000) / commands;
      const longest = await longestCommand(client);
      const left = await client.zcard(queue);
      const kind = permits === 1 ? "alone" : permits === Infinity ? "readers" : `permits=${permits}`;
      console.log(
        `  ${title}, ${kind}: ${before - left} of ${before} members removed by ${commands} commands, each ${cpuUs.toFixed(0)} µs of Redis, the longest ${longest} ms by the clock (goal: 5); an unrelated client waited ${percentile(beside, 0.99).toFixed(1)} ms at p99, at most ${Math.max(...beside).toFixed(1)} ms`,
      );
      await client.unlink(key, `lockweave:1:holds:{${key}}`);
    }
    await client.unlink(queue);
  }
  await store.close();
}

/** Acquires the key if possible, and leaves, over and over. Returns the number of commands. */
async function comeAndGo(store: WholeStore, key: string, permits: number): Promise<number> {
  const id = (n: number): string => n.toString(16).padStart(32, "0");
  const endsAt = performance.now() + 1_500;
  let commands = 0;
  while (performance.now() < endsAt) {
    const [requestId, ticket] = [id(2 * commands + 1), id(2 * commands + 2)];
    await store.queue.enqueue(
      { key, requestId, ticket, lockTimeMs: 60_000, fencing: false, permits },
      10_000,
    );
    await store.release({ key, requestId, permits }, 10_000);
    await store.queue.dequeue(key, ticket, 10_000);
    commands += 3;
  }
  return commands;
}

// ---- many keys ------------------------------------------------------------------------------------------

const KEYS = 50_000;

/** Measures many keys at once, and compares that with the same number of hand-written commands. */
async function playKeys(server: RedisServer, client: Redis): Promise<void> {
  await using callers = await Callers.start(server.url, { processes: 1, callers: KEYS, options: PATIENT });
  for (let round = 0; round < ROUNDS; round += 1) {
    const [played] = await callers.play(0);
    const startedAt = performance.now();
    await Promise.all(
      Array.from({ length: KEYS }, async (_, n) => {
        await client.set(`by-hand:${n}`, "1", "PX", 30_000, "NX");
        await client.del(`by-hand:${n}`);
      }),
    );
    const byHandMs = performance.now() - startedAt;
    if (played === undefined) return;
    const { tookMs, cpuMs, maxRSS } = played;
    console.log(
      `  ${KEYS} keys at once: ${(tookMs / 1_000).toFixed(2)} s, ${(cpuMs / 1_000).toFixed(2)} s of CPU, ${Math.round(maxRSS / 1_024)} MB at most; SET and DEL by hand: ${(byHandMs / 1_000).toFixed(2)} s`,
    );
  }
}

async function main(): Promise<void> {
  const server = await startRedis();
  const client = server.client();
  for (const load of LOADS) if (load.title.includes(only)) await playLoad(server, client, load);
  if ("a crowded queue".includes(only)) {
    console.log(`\na crowded queue: ${ENTRIES} entries without a waiter`);
    await playQueues(server, client);
  }
  if ("distinct keys".includes(only)) {
    console.log("\ndistinct keys, one for each caller of one process");
    await playKeys(server, client);
  }
  await server.stop();
}

void main();
