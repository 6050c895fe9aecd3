import { resolve, sep } from "node:path";
import type { Redis } from "ioredis";
import type * as Lockweave from "../../runtime";
import type { Contestant, Enter } from "./contestant";

/** The environment variable with the path of another, built checkout of Lockweave to measure alongside this one. */
export const BEFORE = "LOCKWEAVE_BEFORE";

export const enterLockweave: Enter = (redis, lockTimeMs) =>
  enterBuilt(resolve(__dirname, "../.."), redis, lockTimeMs);

export const enterBefore: Enter = (redis, lockTimeMs) => {
  const checkout = process.env[BEFORE];
  if (checkout === undefined) throw new Error(`Expected ${BEFORE} to name a checkout`);
  return enterBuilt(checkout, redis, lockTimeMs);
};

/** Creates a client from the built package through its public functions, as an application does. */
async function enterBuilt(checkout: string, redis: Redis, lockTimeMs: number): Promise<Contestant> {
  const { configure, withLock, obtain, lockKey, shutdown } = freshRuntime(checkout);
  configure({ redis, woven: false, defaults: { lockTime: `${lockTimeMs}ms`, retryTimes: 100 } });
  return {
    run: (key, section) => withLock(lockKey("bench", key), {}, section),
    runWithoutWaiting: (key, section) => withLock(lockKey("bench", key), { release: "background" }, section),
    hold: (key) => obtain(lockKey("bench", key)),
    async close() {
      await shutdown();
      await redis.quit();
    },
  };
}

/** Loads a new copy of the package. `configure` applies to the whole process, so each client in one process needs its own copy. */
function freshRuntime(checkout: string): typeof Lockweave {
  const dist = resolve(checkout, "dist/runtime");
  for (const file of Object.keys(require.cache)) {
    if (file.startsWith(dist + sep)) Reflect.deleteProperty(require.cache, file);
  }
  Reflect.deleteProperty(globalThis, Symbol.for("lockweave.copies")); // Copies of one version share one configuration.
  return require(dist) as typeof Lockweave;
}
