import type { Redis } from "ioredis";
import { holdInside, type Enter } from "./contestant";

/** The part of the package that is used here. The package is installed only when the benchmark runs. */
interface RedlockUniversal {
  readonly IoredisAdapter: new (client: Redis) => object;
  readonly createLock: (options: {
    readonly adapter: object;
    readonly key: string;
    readonly ttl: number;
    readonly retryAttempts: number;
  }) => { using(section: () => Promise<void>): Promise<void> };
}

export const enterRedlockUniversal: Enter = async (redis, lockTimeMs) => {
  const { IoredisAdapter, createLock } = require("redlock-universal") as RedlockUniversal;
  const adapter = new IoredisAdapter(redis);
  // The key of a lock object is fixed, so each key needs a new object.
  const using = (key: string, section: () => Promise<void>): Promise<void> =>
    createLock({ adapter, key, ttl: lockTimeMs, retryAttempts: Number.MAX_SAFE_INTEGER }).using(section);
  return {
    run: using,
    hold: (key) => holdInside((section) => using(key, section)),
    async close() {
      await redis.quit();
    },
  };
};
