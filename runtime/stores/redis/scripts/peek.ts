import { script } from "./script";
import { SERVER_TIME } from "./server-time";

/**
 * What keys hold. (A script, since MGET tells nothing of a key with other data than text, and since a cluster client may
 * send a plain read to a replica.)
 *
 * KEYS: the locks.
 *
 * Reply: for each its text, nothing where it is free, or its error.
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
 * What one key holds, for people.
 *
 * KEYS: lock, and its queue where there can be one.
 *
 * Reply: { its text or nothing, how long it lives as PTTL says it, how many have a place in the queue, as far as
 * 1,000 }.
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
 * How long a key lives. (A script, since a cluster client may send a plain read to a replica.)
 *
 * KEYS: lock.
 *
 * Reply: as that of PTTL.
 */
export const TIME_LEFT = script(`return redis.call("PTTL", KEYS[1])`);
