import { script } from "./script";
import { MANY, REWRITE, VALUES } from "./values";

/**
 * As RENEW, but each hold is written anew whatever time it has left: WAIT waits for what its own connection has written.
 *
 * KEYS: the locks. ARGV: their requestIds; the lock times in ms, or one for all.
 *
 * Reply: for each 1 where it was renewed, otherwise { what it holds }.
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
