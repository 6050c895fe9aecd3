// A new process for `npm run bench -- cold`. It runs no TypeScript, because a compiler in the process would change all of its figures.
import { randomUUID } from "node:crypto";

/** @type {{ contestant: string, checkout: string, port: number, lockTimeMs: number, sections: number }} */
const { contestant, checkout, port, lockTimeMs, sections } = JSON.parse(process.argv[2] ?? "");

const RELEASE = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`;

/**
 * Imports a library. Returns a function that prepares its locks, and returns a function that runs a section under the lock of a key.
 *
 * @type {Record<string, () => Promise<(redis: import("ioredis").Redis) => (key: string, section: () => void) => Promise<void>>>}
 */
const CONTESTANTS = {
  raw: async () => (redis) => {
    redis.defineCommand("release", { numberOfKeys: 1, lua: RELEASE });
    return async (key, section) => {
      const token = randomUUID();
      if ((await redis.set(key, token, "PX", lockTimeMs, "NX")) !== "OK") throw new Error("the key is held");
      try {
        section();
      } finally {
        await Reflect.apply(Reflect.get(redis, "release"), redis, [key, token]);
      }
    };
  },
  lockweave: openLockweave,
  before: openLockweave,
  async "redis-semaphore"() {
    const { Mutex } = await import("redis-semaphore");
    return (redis) => async (key, section) => {
      const mutex = new Mutex(redis, key, { lockTimeout: lockTimeMs });
      await mutex.acquire();
      try {
        section();
      } finally {
        await mutex.release();
      }
    };
  },
};

/** Runs the statements that the weave generates. */
async function openLockweave() {
  const lockweave = await import(`${checkout}/dist/runtime/index.mjs`);
  return (/** @type {import("ioredis").Redis} */ redis) => {
    lockweave.configure({ redis, woven: false });
    const lockTime = `${lockTimeMs}ms`;
    return async (/** @type {string} */ key, /** @type {() => void} */ section) => {
      const lock = lockweave.open({ site: "OrderService.pay", businessFlag: "payOrder", lockTime }, key);
      while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
      try {
        lockweave.assertHeld(lock);
        section();
      } catch (error) {
        throw lockweave.fail(lock, error);
      } finally {
        await lockweave.release(lock);
      }
    };
  };
}

const startedAt = performance.now();
const { Redis } = await import("ioredis");
const prepare = await CONTESTANTS[contestant]();
const figures = { import: performance.now() - startedAt };

const redis = new Redis({ port, lazyConnect: true });
await redis.connect();

const cpuBefore = process.cpuUsage();
const connectedAt = performance.now();
const run = prepare(redis);
for (let nth = 1; nth <= sections; nth += 1) {
  await run(`${process.pid}:${nth}`, () => {
    if (nth === 1) figures.firstGrant = performance.now() - connectedAt;
  });
  if (nth === 1 || nth === 100 || nth === 1_000) figures[`first${nth}`] = performance.now() - connectedAt;
}
const { user, system } = process.cpuUsage(cpuBefore);
const whole = process.cpuUsage();
figures.cpu = (user + system) / 1_000;
figures.wholeCpu = (whole.user + whole.system) / 1_000;
process.send?.(figures, () => process.exit());
