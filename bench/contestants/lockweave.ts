import { resolve, sep } from "node:path";
import type * as Lockweave from "../../runtime";
import type { Enter } from "./contestant";

/** The built package by its public functions, as an application uses it. */
export const enterLockweave: Enter = async (redis, lockTimeMs) => {
  const { configure, withLock, obtain, lockKey, shutdown } = freshRuntime();
  configure({ redis, woven: false, defaults: { lockTime: `${lockTimeMs}ms`, retryTimes: 100 } });
  return {
    run: (key, section) => withLock(lockKey("bench", key), {}, section),
    hold: (key) => obtain(lockKey("bench", key)),
    async close() {
      await shutdown();
      await redis.quit();
    },
  };
};

/** `configure` is for the whole process: several clients in one process load the package as often. */
function freshRuntime(): typeof Lockweave {
  const dist = resolve(__dirname, "../../dist/runtime");
  for (const file of Object.keys(require.cache)) {
    if (file.startsWith(dist + sep)) Reflect.deleteProperty(require.cache, file);
  }
  return require(dist) as typeof Lockweave;
}
