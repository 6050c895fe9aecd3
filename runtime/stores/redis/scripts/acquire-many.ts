import { script } from "./script";
import { MANY, OF_ALL } from "./values";

/**
 * Acquires each of many keys that is free, as a plain SET with NX would.
 *
 * KEYS: the locks. ARGV: their requestIds in one string; the lock times in ms, or one for all.
 *
 * Reply: 1 if all keys were acquired. Otherwise for each key: nothing if it was acquired, its value if it was not, or an error. If the
 * server rejects writes, that error alone.
 */
export const ACQUIRE_MANY = script(
  MANY,
  OF_ALL,
  `
local replies, all_acquired = {}, true
for index, lock in ipairs(KEYS) do
  replies[index] = redis.pcall("SET", lock, id_of(index), "PX", lock_time_of(index), "NX", "GET")
  all_acquired = all_acquired and not replies[index]
end
return all_acquired and 1 or of_all(replies)
`,
);
