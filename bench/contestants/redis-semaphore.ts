import type { Redis } from "ioredis";
import type { Enter } from "./contestant";

/** The part of the package that is used here. The package is installed only when the benchmark runs. */
interface RedisSemaphore {
  readonly Mutex: new (
    client: Redis,
    key: string,
    options: { readonly lockTimeout: number; readonly acquireTimeout: number },
  ) => { acquire(): Promise<void>; release(): Promise<void> };
}

export const enterRedisSemaphore: Enter = async (redis, lockTimeMs) => {
  const { Mutex } = require("redis-semaphore") as RedisSemaphore;
  const options = { lockTimeout: lockTimeMs, acquireTimeout: Infinity };
  return {
    async run(key, section) {
      const mutex = new Mutex(redis, key, options);
      await mutex.acquire();
      try {
        await section();
      } finally {
        await mutex.release();
      }
    },
    async hold(key) {
      const mutex = new Mutex(redis, key, options);
      await mutex.acquire();
      return mutex;
    },
    async close() {
      await redis.quit();
    },
  };
};
