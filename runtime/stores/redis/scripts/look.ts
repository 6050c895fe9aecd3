import { script } from "./script";

/**
 * What keys hold. (A script, since MGET tells nothing of a key with other data than text, and since a cluster client may
 * send a plain read to a replica.)
 *
 * KEYS: the locks.
 *
 * Reply: for each its text, nothing where it is free, or its error.
 */
export const LOOK = script(`
local replies = {}
for index, lock in ipairs(KEYS) do
  replies[index] = redis.pcall("GET", lock)
end
return replies
`);

/**
 * How long a key lives. (A script, since a cluster client may send a plain read to a replica.)
 *
 * KEYS: lock.
 *
 * Reply: as that of PTTL.
 */
export const TIME_LEFT = script(`return redis.call("PTTL", KEYS[1])`);
