import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { TOKEN } from "./token";
import { MANY, VALUES } from "./values";

// PEXPIRE with GT would do the same, but only Redis 7 and later have it. A key without an expiry has more time left than any lock time.
const PROLONG = `
local function prolong(lock, lock_time)
  local left = redis.call("PTTL", lock)
  if left >= 0 and left < tonumber(lock_time) then
    redis.call("PEXPIRE", lock, lock_time)
  end
end
`;

/**
 * Renews each hold for its lock time, and never shortens one.
 *
 * KEYS: the locks. ARGV: their requestIds in one string; the lock times in ms, or one for all.
 *
 * Reply: 1 if all holds were renewed. Otherwise for each key 1 if it was renewed, or { the value of the key }.
 */
export const RENEW = script(
  MANY,
  VALUES,
  PROLONG,
  `
local replies, all_renewed = {}, true
local holders = redis.call("MGET", unpack(KEYS))
for index, lock in ipairs(KEYS) do
  if holders[index] == id_of(index) then
    prolong(lock, lock_time_of(index))
    replies[index] = 1
  else
    replies[index] = found(lock)
    all_renewed = false
  end
end
return all_renewed and 1 or replies
`,
);

/**
 * Renews one hold, and draws a new fencing token.
 *
 * KEYS: lock, fence. ARGV: requestId, lock time in ms.
 *
 * Reply: { 1, token } if the hold was renewed, otherwise { 0, the value of the key }.
 */
export const RENEW_WITH_TOKEN = script(
  SERVER_TIME,
  TOKEN,
  VALUES,
  PROLONG,
  `
local holder = found(KEYS[1])[1]
if holder ~= ARGV[1] then
  return { 0, holder }
end
local token = draw_token(KEYS[2], ARGV[2])
prolong(KEYS[1], ARGV[2])
return { 1, token }
`,
);
