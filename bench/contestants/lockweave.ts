import { resolve, sep } from "node:path";
import type { Redis } from "ioredis";
import type * as Lockweave from "../../runtime";
import type { Contestant, Enter } from "./contestant";

/** Where another checkout of lockweave stands, built, that is to be measured beside this one. */
export const BEFORE = "LOCKWEAVE_BEFORE";

export const enterLockweave: Enter = (redis, lockTimeMs) =>
  enterBuilt(resolve(__dirname, "../.."), redis, lockTimeMs);

export const enterBefore: Enter = (redis, lockTimeMs) => {
  const checkout = process.env[BEFORE];
  if (checkout === undefined) throw new Error(`Expected ${BEFORE} to name a checkout`);
  return enterBuilt(checkout, redis, lockTimeMs);
};

/** The built package by its public functions, as an application uses it. */
async function enterBuilt(checkout: string, redis: Redis, lockTimeMs: number): Promise<Contestant> {
  const { configure, withLock, obtain, lockKey, shutdown } = freshRuntime(checkout);
  configure({ redis, woven: false, defaults: { lockTime: `${lockTimeMs}ms`, retryTimes: 100 } });
  return {
    run: (key, section) => withLock(lockKey("bench", key), {}, section),
    runAndLeave: (key, section) => withLock(lockKey("bench", key), { release: "background" }, section),
    hold: (key) => obtain(lockKey("bench", key)),
    async close() {
      await shutdown();
      await redis.quit();
    },
  };
}

/** `configure` is for the whole process: several clients in one process load the package as often. */
function freshRuntime(checkout: string): typeof Lockweave {
  const dist = resolve(checkout, "dist/runtime");
  for (const file of Object.keys(require.cache)) {
    if (file.startsWith(dist + sep)) Reflect.deleteProperty(require.cache, file);
  }
  Reflect.deleteProperty(globalThis, Symbol.for("lockweave.copies")); // Copies of one version share one configuration.
  return require(dist) as typeof Lockweave;
}
