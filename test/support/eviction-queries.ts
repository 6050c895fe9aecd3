import type { ExecutionContext } from "ava";
import type { Redis } from "ioredis";

/** Counts the queries of a server's settings for evictions. Returns a function that returns their number so far. */
export async function countEvictionQueries(t: ExecutionContext, admin: Redis): Promise<() => number> {
  let count = 0;
  const monitor = await admin.monitor();
  t.teardown(() => monitor.disconnect());
  monitor.on("monitor", (_time, words: readonly string[]) => {
    if (words.join(" ") === "info memory") count += 1;
  });
  return () => count;
}
