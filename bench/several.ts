/**
 * Measures locks with several holders or several keys: readers and writers, permits, and two keys at once. Compares Lockweave with the
 * libraries that support them, and with its own exclusive locks. One process with 64 callers, which come again immediately, runs them in
 * turns on one Redis.
 *
 *     npm run bench -- several [<rounds> <milliseconds of a turn>]
 *
 * It does not cover several processes, or a Redis on another machine.
 */
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import type { Redis } from "ioredis";
import { lockKey, withLock, configure, shutdown } from "../runtime";
import { SeededRandom } from "../test/support/seeded-random";
import { startRedis } from "../test/support/redis-server";
import { installPeers } from "./peers";

const [rounds = 5, turnMs = 2_000] = process.argv.slice(2).map(Number);

const CALLERS = 64;
const SECTION_MS = 1;
const ACCOUNTS = 20;
const PERMITS = 5;
const LOCK_TIME_MS = 30_000;
const PATIENT = { retryTimes: 100 } as const;

type Section = () => Promise<void>;
/** One call of a caller, which may choose at random. */
type Call = (section: Section, random: SeededRandom) => Promise<void>;

interface Situation {
  readonly title: string;
  /** The most callers that may be inside at once, which each section checks. `undefined` if that depends on the keys. */
  readonly most: number | undefined;
  /** The others are compared with the first one. */
  readonly contestants: Readonly<Record<string, Call>>;
}

interface Semaphore {
  acquire(): Promise<void>;
  release(): Promise<void>;
}
interface Redlock {
  using(resources: string[], ms: number, section: Section): Promise<void>;
}

function situations(redis: Redis): readonly Situation[] {
  const ofPeers = createRequire(__filename);
  const { Semaphore: SemaphoreOf } = ofPeers("redis-semaphore") as {
    readonly Semaphore: new (redis: Redis, name: string, limit: number, options: object) => Semaphore;
  };
  const { default: RedlockOf } = ofPeers("redlock") as {
    readonly default: new (clients: Redis[], options: object) => Redlock;
  };
  const redlock = new RedlockOf([redis], { retryCount: -1 });
  const twoOf = (random: SeededRandom, flag: string): [string, string] => {
    const from = random.below(ACCOUNTS);
    const to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    return [lockKey(flag, from), lockKey(flag, to)];
  };
  return [
    {
      title: "90% read, 10% write",
      most: undefined,
      contestants: {
        "an exclusive lock": (section) => withLock("LOCK_alone", PATIENT, section),
        "lockweave, mode=read and mode=write": (section, random) =>
          withLock("LOCK_shared", { ...PATIENT, mode: random.happens(0.9) ? "read" : "write" }, section),
      },
    },
    {
      title: `room for ${PERMITS} callers`,
      most: PERMITS,
      contestants: {
        "an exclusive lock": (section) => withLock("LOCK_one", PATIENT, section),
        [`lockweave, permits=${PERMITS}`]: (section) =>
          withLock("LOCK_permits", { ...PATIENT, permits: PERMITS }, section),
        async "redis-semaphore, Semaphore"(section) {
          const options = { lockTimeout: LOCK_TIME_MS, acquireTimeout: 1_000_000 };
          const semaphore = new SemaphoreOf(redis, "bench", PERMITS, options);
          await semaphore.acquire();
          try {
            await section();
          } finally {
            await semaphore.release();
          }
        },
      },
    },
    {
      title: `two of ${ACCOUNTS} keys`,
      most: undefined,
      contestants: {
        async "nested locks, in sorted order"(section, random) {
          const [first, second] = twoOf(random, "nested").toSorted();
          await withLock(first ?? "", PATIENT, () => withLock(second ?? "", PATIENT, section));
        },
        "lockweave, each": (section, random) => withLock(twoOf(random, "each"), PATIENT, section),
        "redlock, two resources": (section, random) =>
          redlock.using(twoOf(random, "redlock"), LOCK_TIME_MS, section),
      },
    },
  ];
}

interface Turn {
  readonly sectionsPerSecond: number;
  readonly cpuMs: number;
  readonly longestWaitMs: number;
}

async function play(call: Call, most: number | undefined, seed: number): Promise<Turn> {
  let [sections, inside, longestWaitMs] = [0, 0, 0];
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  const endsAt = startedAt + turnMs;
  const loop = async (caller: number): Promise<void> => {
    const random = new SeededRandom(seed * CALLERS + caller);
    while (performance.now() < endsAt) {
      const requestedAt = performance.now();
      await call(async () => {
        longestWaitMs = Math.max(longestWaitMs, performance.now() - requestedAt);
        inside += 1;
        if (most !== undefined && inside > most) throw new Error(`${inside} were inside at once`);
        await pause(SECTION_MS);
        inside -= 1;
        sections += 1;
      }, random);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, caller) => loop(caller)));
  const { user, system } = process.cpuUsage(cpuBefore);
  const tookS = (performance.now() - startedAt) / 1_000;
  return {
    sectionsPerSecond: sections / tookS,
    cpuMs: (user + system) / 1_000 / sections,
    longestWaitMs,
  };
}

async function main(): Promise<void> {
  installPeers();
  const server = await startRedis();
  configure({ redis: server.url, woven: false });
  for (const { title, most, contestants } of situations(server.client())) {
    const names = Object.keys(contestants);
    const turns = new Map(names.map((name) => [name, [] as Turn[]]));
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, call] of Object.entries(contestants))
        turns.get(name)?.push(await play(call, most, round));
    }
    console.log(`\n${title}: ${CALLERS} callers, sections of ${SECTION_MS} ms`);
    const [yardstick = []] = turns.values();
    for (const [name, played] of turns) {
      const ratio = median(
        played.map((turn, n) => turn.sectionsPerSecond / (yardstick[n]?.sectionsPerSecond ?? NaN)),
      );
      const medianOf = (figure: keyof Turn): number => median(played.map((turn) => turn[figure]));
      console.log(
        `  ${name}: ${Math.round(medianOf("sectionsPerSecond"))} sections/s (${ratio.toFixed(2)} x), ${medianOf("cpuMs").toFixed(2)} ms of client CPU a section, longest wait ${Math.round(medianOf("longestWaitMs"))} ms`,
      );
    }
  }
  await shutdown();
  await server.stop();
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? NaN;
}

void main();
