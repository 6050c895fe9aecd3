import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { installPeers } from "../../bench/peers";
import { configure, shutdown, withLock } from "../../runtime";
import { startRedis } from "../support/redis-server";

// Checks that programs with another library and programs with Lockweave exclude each other on one Redis key, as
// docs/migration.md says. Both kinds of callers acquire the lock again and again until each has held it often enough.

const SECTIONS_OF_EACH = 12;
const CALLERS_OF_EACH = 3;
const SECTION_MS = 5;
const AT_MOST_MS = 60_000;
const LOCK_TIME_MS = 10_000;

type Section = () => Promise<void>;

interface Peer {
  /** The peer's name of the lock. The peer makes `key` from it, which Lockweave uses as well. */
  readonly name: string;
  readonly key: string;
  readonly enter: (redis: Redis, name: string, section: Section) => Promise<void>;
}

interface Mutex {
  acquire(): Promise<void>;
  release(): Promise<void>;
}
interface Redlock {
  using(resources: string[], ms: number, section: Section): Promise<void>;
}

installPeers();
const ofPeers = createRequire(join(__dirname, "../../bench/package.json"));
const { Mutex: MutexOf } = ofPeers("redis-semaphore") as {
  readonly Mutex: new (redis: Redis, name: string, options: object) => Mutex;
};
const { default: RedlockOf } = ofPeers("redlock") as {
  readonly default: new (clients: Redis[], options: object) => Redlock;
};

const PEERS: Readonly<Record<string, Peer>> = {
  redlock: {
    name: "order:7",
    key: "order:7",
    enter: (redis, name, section) =>
      new RedlockOf([redis], { retryCount: -1 }).using([name], LOCK_TIME_MS, section),
  },
  "redis-semaphore": {
    name: "order:7",
    key: "mutex:order:7",
    async enter(redis, name, section) {
      const options = { lockTimeout: LOCK_TIME_MS, acquireTimeout: AT_MOST_MS };
      const mutex = new MutexOf(redis, name, options);
      await mutex.acquire();
      try {
        await section();
      } finally {
        await mutex.release();
      }
    },
  },
};

async function beside(port: number, { name, key, enter }: Peer): Promise<Record<"ours" | "theirs", number>> {
  const redis = new Redis(port);
  const sections = { ours: 0, theirs: 0 };
  let inside = 0;
  const section = async (whose: keyof typeof sections): Promise<void> => {
    inside += 1;
    await pause(SECTION_MS);
    if (inside !== 1) throw new Error(`${inside} callers held the lock at once`);
    inside -= 1;
    sections[whose] += 1;
  };
  const endsAt = performance.now() + AT_MOST_MS;
  const isEnough = (): boolean => Math.min(sections.ours, sections.theirs) >= SECTIONS_OF_EACH;
  const repeat = async (call: () => Promise<void>): Promise<void> => {
    while (!isEnough()) {
      if (performance.now() > endsAt) throw new Error(`not enough sections: ${JSON.stringify(sections)}`);
      await call();
      await pause(SECTION_MS);
    }
  };
  const ours = (): Promise<void> => withLock(key, { lockTime: "10s", retryTimes: 60 }, () => section("ours"));
  const theirs = (): Promise<void> => enter(redis, name, () => section("theirs"));
  const callers = Array.from({ length: CALLERS_OF_EACH }, () => [repeat(ours), repeat(theirs)]);
  await Promise.all(callers.flat());
  if ((await redis.exists(key)) !== 0) throw new Error(`${key} is left behind`);
  redis.disconnect();
  return sections;
}

async function main(): Promise<void> {
  const server = await startRedis();
  configure({ redis: server.url, woven: false });
  for (const [peer, how] of Object.entries(PEERS)) {
    const { ours, theirs } = await beside(server.port, how);
    console.log(
      `  ✔ ${peer}: ${theirs} sections of its own and ${ours} of Lockweave on ${how.key}, one at a time`,
    );
  }
  await shutdown();
  await server.stop();
}

void main();
