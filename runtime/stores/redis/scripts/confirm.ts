import { script } from "./script";
import { MANY, REWRITE, VALUES } from "./values";

/**
 * Renews holds as RENEW does, but writes each hold again even if it has more time left. WAIT waits only for the writes of its own
 * connection.
 *
 * KEYS: the locks. ARGV: their requestIds in one string; the lock times in ms, or one for all.
 *
 * Reply: for each key 1 if it was renewed, otherwise { the value of the key }.
 */
export const CONFIRM = script(
  MANY,
  VALUES,
  REWRITE,
  `
local replies = {}
for index, lock in ipairs(KEYS) do
  local held = found(lock)
  if held[1] == id_of(index) then
    local left = redis.call("PTTL", lock)
    if left < 0 then
      redis.call("SET", lock, held[1])
    else
      rewrite(lock, held[1], math.max(left, tonumber(lock_time_of(index))))
    end
    replies[index] = 1
  else
    replies[index] = held
  end
end
return replies
`,
);
