import { script } from "./script";
import { SERVER_TIME } from "./server-time";
import { TOKEN } from "./token";
import { MANY, VALUES } from "./values";

// PEXPIRE with GT would do, had it not come with Redis 7 only. A key without an expiry has more left than any lock time.
const PROLONG = `
local function prolong(lock, lock_time)
  local left = redis.call("PTTL", lock)
  if left >= 0 and left < tonumber(lock_time) then
    redis.call("PEXPIRE", lock, lock_time)
  end
end
`;

/**
 * Gives each hold its lock time again, and never less than it has left.
 *
 * KEYS: the locks. ARGV: their requestIds; the lock times in ms, or one for all.
 *
 * Reply: 1 where all were renewed. Otherwise for each 1 where it was renewed, or { what it holds }.
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
 * The same for one hold, with a new fencing token.
 *
 * KEYS: lock, fence. ARGV: requestId, lock time in ms.
 *
 * Reply: { 1, token } where it was renewed, otherwise { 0, what it holds }.
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
