import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { SHARES } from "./shares";

/**
 * What keys hold, without those of several whose time is over. (A script, since MGET tells nothing of a key with other data than text, and since a cluster client may
 * send a plain read to a replica.)
 *
 * KEYS: the locks.
 *
 * Reply: for each its text, nothing where it is free, or its error.
 */
export const LOOK = script(
  SERVER_TIME,
  SHARES,
  `
local replies = {}
for index, lock in ipairs(KEYS) do
  local value = redis.pcall("GET", lock)
  local shares = shares_in(value)
  replies[index] = shares and text_of(shares) or value
end
return replies
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
