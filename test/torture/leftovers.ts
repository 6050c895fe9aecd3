import type { Redis } from "ioredis";
import { RESERVED_NAMESPACE } from "../../runtime/base/limits";
import { LONGEST_LOCK_MS } from "./plan";

const HOUR_MS = 3_600_000;
/** For queues, and for what processes announce about themselves. */
const BESIDE_MS = 60_000;

/** Returns the keys that would stay too long after all processes have ended. Reads their times to live, and does not wait. */
export async function leftoversIn(redis: Redis): Promise<string[]> {
  const problems: string[] = [];
  for (const key of await redis.keys("*")) {
    const leftMs = await redis.pttl(key);
    const most = longestFor(key);
    if (leftMs > most) problems.push(`${key} stays for ${leftMs} ms, and may stay for ${most} ms at most`);
    if (leftMs === -1) problems.push(`${key} stays forever`);
  }
  return problems;
}

function longestFor(key: string): number {
  if (!key.startsWith(RESERVED_NAMESPACE)) return LONGEST_LOCK_MS;
  return key.includes(":fence") ? HOUR_MS + LONGEST_LOCK_MS : BESIDE_MS;
}
