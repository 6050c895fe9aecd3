import { script } from "./script";
import { SERVER_TIME } from "./server-time";

/**
 * Returns the values of keys. It is a script for two reasons: MGET returns nothing for a key whose data is not text, and a cluster client
 * may send a plain read to a replica.
 *
 * KEYS: the locks.
 *
 * Reply: for each key its text, nothing if it is free, or an error.
 */
export const PEEK = script(
  `
local replies = {}
for index, lock in ipairs(KEYS) do
  replies[index] = redis.pcall("GET", lock)
end
return replies
`,
);

/**
 * Returns the state of one key, for people.
 *
 * KEYS: lock, and its queue if it can have one.
 *
 * Reply: { its text or nothing, the reply of PTTL, the number of waiters, at most 1,000 }.
 */
export const INSPECT = script(
  SERVER_TIME,
  `
local waiting = 0
if KEYS[2] then
  local ends = string.format("(%.0f", -now_us())
  waiting = #redis.call("ZRANGEBYSCORE", KEYS[2], "-inf", ends, "LIMIT", 0, 1000)
end
return { redis.call("GET", KEYS[1]), redis.call("PTTL", KEYS[1]), waiting }
`,
);

/**
 * Returns the time to live of a key. It is a script because a cluster client may send a plain read to a replica.
 *
 * KEYS: lock.
 *
 * Reply: the reply of PTTL.
 */
export const TIME_LEFT = script(`return redis.call("PTTL", KEYS[1])`);
