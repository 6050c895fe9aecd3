import { script } from "./script";
import { MANY, OF_ALL } from "./values";

/**
 * Takes those of many keys that are free, as a plain SET would each.
 *
 * KEYS: the locks. ARGV: their requestIds; the lock times in ms, or one for all.
 *
 * Reply: 1 where all were taken. Otherwise for each nothing where it was taken, what it holds where it was not, or its error; where the
 * server takes no writes, that alone.
 */
export const ACQUIRE_MANY = script(
  MANY,
  OF_ALL,
  `
local replies, all_taken = {}, true
for index, lock in ipairs(KEYS) do
  replies[index] = redis.pcall("SET", lock, id_of(index), "PX", lock_time_of(index), "NX", "GET")
  all_taken = all_taken and not replies[index]
end
return all_taken and 1 or of_all(replies)
`,
);
